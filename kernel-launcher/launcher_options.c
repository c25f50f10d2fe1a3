#include "launcher_options.h"

#include <errno.h>

#include "err.h"
#include "hostids.h"
#include "limit.h"
#include "options.h"
#include "session.h"
#include "settings.h"

#define TEXT(name, member, help)                                                           \
    {                                                                                      \
        name, "TEXT", OPTION_STRING, offsetof(struct launcher_options, member), 0, 0, help \
    }
#define FLAG(name, member, help)                                                       \
    {                                                                                  \
        name, NULL, OPTION_FLAG, offsetof(struct launcher_options, member), 0, 0, help \
    }
#define NUMBER(name, member, min, max, help)                                                \
    {                                                                                       \
        name, "N", OPTION_NUMBER, offsetof(struct launcher_options, member), min, max, help \
    }
#define DEFAULT(id, member, json, option, unit, least, most, ...) \
    NUMBER(option, defaults[LIMIT_##id], 1, most, "default of a session"),
#define MAXIMUM(id, member, json, option, unit, least, most, ...) \
    NUMBER("max-" option, maxima[LIMIT_##id], 1, most, "most that a request may ask for"),
#define FD(name, member) NUMBER(name, member, 3, 65535, "inherited descriptor")

enum { MIB_MAX = 1 << 24 };

static const struct option_spec specs[] = {
    NUMBER("slot", slot, 0, HOSTIDS_SLOTS - 1, "instance slot"),
    TEXT("init", init, "path of holdcell-init"),
    TEXT("gateway", gateway, "path of the program that is run as `PROGRAM gateway`"),
    TEXT("runtime", runtime, "runtime directory"),
    TEXT("kernel-path", kernel_path, "data directories with kernels/NAME"),
    TEXT("cgroup-parent", cgroup_parent, "cgroup to work below"),
    FLAG("sweep", sweep, "clear what an earlier launcher of the slot left, then exit"),
    FD("doctor-fd", doctor_fd),
    FLAG("no-runtime", no_runtime, "the runtime is a stand-in"),
    TEXT("state-dir", state_dir, "where homes on a disk would be"),
    TEXT("isolation", isolation, "level that is demanded"),
    TEXT("accept-missing", accept_missing, "walls that the operator does without"),
    FD("listen-fd", listen_fd),
    FD("settings-fd", settings_fd),
    FD("ready-fd", ready_fd),
    FD("dir-fd", dir_fd),
    FD("state-fd", state_fd),
    FD("slot-fd", slot_fd),
    FD("state-dir-fd", state_dir_fd),
    FD("control-fd", control_fd),
    FD("more-listen-fd", more_listen_fd),
    NUMBER("more-listen-count", more_listen_count, 0, LISTEN_MORE_MAX, "sockets from there on"),
    TEXT("audit-log", audit_log, "path of the audit file"),
    TEXT("log-format", log_format, "text or json"),
    TEXT("log-level", log_level, "debug, info, warn or error"),
    NUMBER("max-sessions", sessions_max, 1, SESSION_INDEX_MAX, "most sandboxes at a time"),
    NUMBER("memory-reserve-mb", memory_reserve_mb, 0, MIB_MAX, "memory that sessions leave free"),
    NUMBER("disk-reserve-mb", disk_reserve_mb, 0, MIB_MAX, "disk that sessions leave free"),
    TEXT("workspaces", workspaces, "directory of the principals' workspaces"),
    NUMBER("workspace-mb", workspace_mb, 1, MIB_MAX, "size of a workspace, at most"),
    TEXT("data", data, "directories of the operator"),
    TEXT("home", home, "auto, disk or tmpfs"),
    TEXT("profiles", profiles, "table of the named profiles"),
    NUMBER("gateway-pause-max-ms", gateway_pause_max_ms, 1, 5000,
           "for tests: longest pause between gateways"),
    NUMBER("max-deadline", deadline_max_s, 1, 1U << 31, "seconds that a deadline may lie ahead"),

    LIMIT_ROWS(DEFAULT) LIMIT_ROWS(MAXIMUM)
};

int launcher_options_read(int argc, char **argv, struct launcher_options *ret, struct err *e)
{
    struct launcher_options o = { .sessions_max = 1024,
                                  .memory_reserve_mb = UINT64_MAX,
                                  .disk_reserve_mb = UINT64_MAX,
                                  .workspace_mb = LAUNCH_WORKSPACE_MB,
                                  .deadline_max_s = 30 * 24 * 3600,
                                  .level = LOGLINE_INFO };
    int rc = options_parse(specs, sizeof specs / sizeof specs[0], argc, argv, &o, NULL, e);

    if (rc < 0)
        return rc;
    if (o.init == NULL || o.runtime == NULL)
        return err_set(e, EINVAL, "options --init and --runtime are needed");
    if (!o.sweep && o.doctor_fd == 0 &&
        (o.gateway == NULL || o.kernel_path == NULL || o.listen_fd == 0 || o.settings_fd == 0 ||
         o.ready_fd == 0 || o.dir_fd == 0))
        return err_set(e, EINVAL,
                       "options --gateway, --kernel-path and the four --...-fd are needed");
    if (o.more_listen_count > 0 && o.more_listen_fd == 0)
        return err_set(e, EINVAL, "option --more-listen-count needs --more-listen-fd");
    if ((o.log_format != NULL && !logline_format_of(o.log_format, &o.format)) ||
        (o.log_level != NULL && !logline_level_of(o.log_level, &o.level)))
        return err_set(e, EINVAL, "options --log-format and --log-level: no such value");
    o.policy.level = ISOLATION_HARDENED;
    if (o.isolation != NULL && isolation_of(o.isolation, &o.policy.level, e) < 0)
        return err_wrap(e, "option --isolation");
    if (hostwall_policy_accept(&o.policy, o.accept_missing, e) < 0)
        return err_wrap(e, "option --accept-missing");
    if (o.home != NULL && !home_mode_of(o.home, &o.home_mode))
        return err_set(e, EINVAL, "option --home: no such value");
    *ret = o;
    return 0;
}

void launcher_options_limits(const uint64_t given[LIMITS], struct launch_limits *limits)
{
    for (unsigned i = 0; i < LIMITS; i++) {
        if (given[i] != 0)
            limit_set(limits, &limit_rows[i], given[i] * limit_rows[i].unit);
    }
}
