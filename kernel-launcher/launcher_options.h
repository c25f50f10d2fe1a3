/* launcher_options - the launcher's command line; `holdcell serve` writes it. */
#ifndef HC_LAUNCHER_OPTIONS_H
#define HC_LAUNCHER_OPTIONS_H

#include <stdint.h>

#include "cleanup.h"
#include "homechoice.h"
#include "hostwalls.h"
#include "limit.h"
#include "logline.h"

struct err;

struct launcher_options {
    uint64_t slot;
    const char *init, *gateway, *runtime, *kernel_path, *cgroup_parent; /* borrowed from argv */
    int sweep;
    uint64_t doctor_fd; /* 0: serve; else try every wall and write the lines there */
    int no_runtime;     /* doctor: runtime is a stand-in */
    const char *state_dir;
    const char *isolation, *accept_missing;
    struct hostwall_policy policy; /* what these two say */
    uint64_t listen_fd, settings_fd, ready_fd, dir_fd, more_listen_fd, more_listen_count;
    uint64_t state_fd, slot_fd, state_dir_fd, control_fd; /* 0: none (keeper.h) */
    uint64_t sessions_max, deadline_max_s;
    uint64_t memory_reserve_mb, disk_reserve_mb; /* UINT64_MAX: not given */
    const char *data, *workspaces;               /* NULL: none */
    uint64_t workspace_mb;
    const char *home;              /* NULL: auto */
    const char *profiles;          /* a table (sessionprofile.h); NULL: none */
    enum home_mode home_mode;      /* what it says */
    uint64_t gateway_pause_max_ms; /* 0: not given */
    /* In the units of the options (limit.h). 0 for "not given": the profile's own value
     * holds, and the maximum is the default. */
    uint64_t defaults[LIMITS], maxima[LIMITS];
    const char *audit_log;              /* NULL: none */
    const char *log_format, *log_level; /* NULL: text, info */
    enum logline_format format;         /* what they say */
    enum logline_level level;
};

int launcher_options_read(int argc, char **argv, struct launcher_options *ret,
                          struct err *e) MUST_CHECK;

/* Overwrites those limits that were given. */
void launcher_options_limits(const uint64_t given[LIMITS], struct launch_limits *limits);

#endif
