/*
 * cgroup_ops - what differs between hosts with v1 and with v2 controllers; chosen
 * once by cgroup_base_open(). Only for cgroup.c, cgroup_v1.c and cgroup_v2.c.
 */
#ifndef HC_CGROUP_OPS_H
#define HC_CGROUP_OPS_H

#include "cgplace.h"
#include "cgroup.h"

struct cgroup_base {
    const struct cgroup_ops *ops;
    struct cgplace place;
    char name[32];                        /* holdcell-<slot> */
    int base_fd;                          /* in the unified tree */
    int sessions_fd;                      /* its s/ */
    int v1_sessions[CGPLACE_CONTROLLERS]; /* s/ in the hierarchies of place.v1_fd, or -1 */
    uint64_t generation;                  /* of the group made last */
};

struct cgroup {
    struct cgroup_base *base;
    char name[48];               /* <index>-<generation> */
    int fd;                      /* in the unified tree */
    int v1[CGPLACE_CONTROLLERS]; /* per controller, borrowed doubles where hierarchies are shared */
    int oom_fd;                  /* v1: eventfd; v2: memory.events */
    int tasks_fd;                /* pids.events; -1: before Linux 4.8 */
    int peak_fd;                 /* v2: memory.peak, for a reset of our own; or -1 */
    int peak_resets;             /* v2: 1 when peak_fd can be written (Linux 6.12) */
};

/* Each returns 0 or a negative code; the file's name is in e. */
struct cgroup_ops {
    int is_v2;
    short oom_events;
    const char *quota_file, *no_quota; /* the processor's, and what takes it away */
    int (*base_open)(struct cgroup_base *b, struct err *e);
    void (*base_close)(struct cgroup_base *b);
    int (*share)(struct cgroup_base *b, const struct cgroup_share *share, struct err *e);
    void (*read_share)(const struct cgroup_base *b, struct cgroup_share *ret);
    int (*open)(struct cgroup *cg, const struct launch_limits *limits, struct err *e);
    int (*cpu)(struct cgroup *cg, uint32_t millis, struct err *e);
    int (*place)(struct cgroup *cg, pid_t pid, struct err *e);
    int (*status)(struct cgroup *cg, int reset_peak, struct launch_status_answer *ret,
                  struct err *e);
    int (*remove)(struct cgroup *cg, struct err *e); /* after the unified group is gone */
    void (*close)(struct cgroup *cg);
};

/* For open: the group that carries pids.max. */
int cgroup_watch_tasks(struct cgroup *cg, int pids_group, struct err *e);

extern const struct cgroup_ops cgroup_v1_ops, cgroup_v2_ops;

#endif
