#include "launcher_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "err.h"
#include "hostids.h"
#include "launcher.h"
#include "launcher_options.h"
#include "log.h"
#include "rlimits.h"
#include "sandbox.h"
#include "session_limits.h"

enum { START_MAX_MS = 20000, STARTING_MS = 10000 };

/* Opened once; see gatewayproc.h. */
static int open_program(const char *path, int *ret, struct err *e)
{
    struct stat st;
    autoclose int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, errno, "gateway program '%s'", path);
    if (!S_ISREG(st.st_mode) || (st.st_mode & S_IXOTH) == 0)
        return err_set(e, EACCES, "gateway program '%s' is not executable for everybody", path);
    *ret = take_fd(&fd);
    return 0;
}

static unsigned nofile(void)
{
    struct rlimit r = { 0, 0 };

    return getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < UINT32_MAX ? (unsigned)r.rlim_cur
                                                                        : 1024;
}

/* 0 is standard input: such an option was not given. */
static int given(uint64_t fd)
{
    return fd > 0 ? (int)fd : -1;
}

static void fill(const struct launcher_options *o, struct launcher_config *c)
{
    *c = (struct launcher_config){
        .kernel_path = o->kernel_path,
        .audit_log = o->audit_log,
        .data = o->data,
        .workspaces = o->workspaces,
        .workspace_bytes = o->workspace_mb << 20,
        .deadline_max_ms = o->deadline_max_s * 1000,
        .start_max_ms = START_MAX_MS,
        .memory_reserve = o->memory_reserve_mb != UINT64_MAX ? o->memory_reserve_mb << 20
                                                             : ADMISSION_DEFAULT,
        .disk_reserve =
            o->disk_reserve_mb != UINT64_MAX ? o->disk_reserve_mb << 20 : ADMISSION_DEFAULT,
        .home = { o->home_mode, o->defaults[LIMIT_DISK] != 0 },
        .profiles = o->profiles,
        .starting_ms = STARTING_MS,
        .gateway_pause_max_ms = o->gateway_pause_max_ms,
        .sessions_max = (unsigned)o->sessions_max,
        .note_fds_max = nofile() / 2,
        .gateway = {
            .exe_fd = -1,
            .name = o->gateway,
            .listen_fd = given(o->listen_fd),
            .settings_fd = given(o->settings_fd),
            .ready_fd = given(o->ready_fd),
            .dir_fd = given(o->dir_fd),
            .more_listen_count = (unsigned)o->more_listen_count,
            .uid = hostids_gateway(hostids_base((unsigned)o->slot)),
        },
        .keeper = {
            .slot = (unsigned)o->slot,
            .runtime = o->runtime,
            .cgroup_parent = o->cgroup_parent,
            .state_fd = given(o->state_fd),
            .slot_fd = given(o->slot_fd),
            .state_dir_fd = given(o->state_dir_fd),
            .control_fd = given(o->control_fd),
        },
    };
    for (unsigned i = 0; i < LISTEN_MORE_MAX; i++)
        c->gateway.more_listen_fds[i] =
            i < o->more_listen_count ? given(o->more_listen_fd) + (int)i : -1;
    sandbox_limits_default(&c->defaults);
    if (o->home_mode == HOME_MEMORY)
        c->defaults.home_bytes = LAUNCH_HOME_MEMORY_DEFAULT;
    launcher_options_limits(o->defaults, &c->defaults);
    c->maxima = c->defaults;
    launcher_options_limits(o->maxima, &c->maxima);
    session_limits_cover(&c->maxima, &c->defaults);
}

int launcher_setup(const struct launcher_options *o, struct launcher_config *ret, struct err *e)
{
    int exe_fd = -1;
    int rc = open_program(o->gateway, &exe_fd, e);

    if (rc < 0)
        return rc;
    fill(o, ret);
    ret->gateway.exe_fd = exe_fd;
    return 0;
}

static int setup_homes(struct launcher_config *c, struct sandbox_host *host, struct err *e)
{
    struct err why = { 0 };

    if (c->home.mode == HOME_MEMORY && c->profiles == NULL)
        return 0;
    int rc = c->keeper.state_dir_fd < 0
                 ? err_set(&why, ENOENT, "no state directory was given")
                 : sandbox_host_disk(host, c->keeper.state_dir_fd, &c->defaults, &why);
    c->disk_homes = rc == 0;
    if (rc == 0)
        return 0;
    if (c->home.mode == HOME_DISK)
        return err_set(e, why.code, "option --home disk: %.200s", why.msg);
    log_warn("homes_in_memory", "text=%s", LOG_QUOTED(why.msg));
    c->home.mode = HOME_MEMORY;
    return 0;
}

static int setup_workspaces(const struct launcher_config *c, struct sandbox_host *host,
                            struct err *e)
{
    struct statvfs fs;
    uint64_t total = UINT64_MAX;

    if (c->workspaces == NULL)
        return 0;
    if (statvfs(c->workspaces, &fs) == 0)
        total = (uint64_t)fs.f_blocks * fs.f_frsize;
    int rc = sandbox_host_workspaces(host, c->workspaces,
                                     admission_disk_reserve(c->disk_reserve, total), e);
    return rc < 0 ? err_wrap(e, "option --workspaces") : 0;
}

/* The sessions' limits together are more than the host has: this is what keeps the reserve when they use
 * them. */
static int setup_share(struct launcher_config *c, struct sandbox_host *host, struct err *e)
{
    struct sandbox_room room;
    struct sandbox_share share;

    sandbox_host_room(host, &room);
    const uint64_t reserve = admission_reserve(c->memory_reserve, room.memory_total);
    c->share = (struct sandbox_share){ admission_share_memory(reserve, room.memory_total),
                                       admission_share_tasks(room.tasks_total) };
    int rc = sandbox_host_share(host, &c->share, &share, e);
    if (rc == 0)
        log_info("limit_of_all_sessions",
                 "memory=%" PRId64 " memory_reserve=%" PRIu64 " tasks=%" PRId64,
                 (int64_t)share.memory, reserve, (int64_t)share.tasks);
    return rc;
}

/* A server started under a limit that may not be raised says so now, and not at some session. */
static int check_file_size(const struct launcher_config *c, struct err *e)
{
    const struct launch_limits *l = &c->defaults;
    int rc =
        rlimits_check_file_size(c->home.mode == HOME_MEMORY ? l->home_bytes : sandbox_home_size(l),
                                "a home of a session (--disk-mb)", e);

    if (rc == 0)
        rc = rlimits_check_file_size(l->tmp_bytes, "/tmp of a session (--tmp-mb)", e);
    if (rc == 0)
        rc = rlimits_check_file_size(l->shm_bytes, "/dev/shm of a session (--shm-mb)", e);
    if (rc == 0 && c->workspaces != NULL)
        rc = rlimits_check_file_size(sandbox_workspace_size(c->workspace_bytes),
                                     "a workspace (--workspace-mb)", e);
    return rc;
}

int launcher_setup_host(struct launcher_config *c, struct sandbox_host *host, struct err *e)
{
    int rc = check_file_size(c, e);

    if (rc == 0)
        rc = setup_homes(c, host, e);

    if (rc == 0) {
        rc = sandbox_host_data(host, c->data != NULL ? c->data : "", e);
        if (rc < 0)
            err_wrap(e, "option --data");
    }
    if (rc == 0)
        rc = setup_workspaces(c, host, e);
    return rc < 0 ? rc : setup_share(c, host, e);
}

void launcher_setup_close(struct launcher_config *c)
{
    closep(&c->gateway.exe_fd);
    closep(&c->gateway.listen_fd);
    closep(&c->gateway.settings_fd);
    closep(&c->gateway.ready_fd);
    for (unsigned i = 0; i < LISTEN_MORE_MAX; i++)
        closep(&c->gateway.more_listen_fds[i]);
    c->gateway.more_listen_count = 0;
}
