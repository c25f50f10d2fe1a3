#include "joining.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "birth.h"
#include "drop.h"
#include "err.h"
#include "kernelargs.h"
#include "landlock.h"
#include "mountfd.h"
#include "proc.h"
#include "report.h"
#include "userns.h"
#include "walls.h"

enum {
    STATUS_FD_ABOVE = DROP_FDS_MAX + 2, /* out of the way of the numbers that the drop gives */
    SOCKETS = 5,
};

/* In a test, with the host: then it is ours already. */
static int is_shared(unsigned ns)
{
    return (ns == SANDBOX_NS_NET && wall_is_off(WALL_NETNS)) ||
           (ns == SANDBOX_NS_IPC && wall_is_off(WALL_IPCNS));
}

static int join_namespaces(const struct sandbox *s, struct err *e)
{
    for (unsigned i = SANDBOX_NS_USER; i <= SANDBOX_NS_CGROUP; i++)
        if (!is_shared(i) && setns(s->ns_fd[i], 0) < 0)
            return err_sys(e, errno, "join namespace %u of the session", i);
    return 0;
}

/* The launcher hears of it: whatever fails later, the next start need not mount it again. */
static int mount_spec(const struct joining *j, int status_fd, struct err *e)
{
    const struct err done = { 0 };
    char path[32];

    if (j->spec_fd < 0)
        return 0;
    snprintf(path, sizeof path, "%s/%u", MOUNTS_SPEC_PATH, j->spec_index);
    int r = mountfd_attach(j->spec_fd, path, e);
    if (r == 0 && (r = report_send(status_fd, &done)) < 0)
        r = err_sys(e, -r, "report to the launcher");
    return r;
}

/* The order that launchmsg.h promises to the kernel. */
static unsigned list_descriptors(const struct joining *j, int null_fd, int fds[DROP_FDS_MAX])
{
    unsigned n = 0;

    fds[n++] = null_fd;
    fds[n++] = j->start->log_fd;
    fds[n++] = j->start->log_fd;
    if (j->start->flags & LAUNCH_SOCKETS_FD) {
        fds[n++] = j->connection_fd;
        for (unsigned i = 0; i < SOCKETS; i++)
            fds[n++] = j->start->socket_fds[i];
    }
    return n;
}

static int drop(const struct joining *j, int status_fd, unsigned *ret_fd_count, struct err *e)
{
    const struct launch_limits *l = &j->sandbox->limits;
    const unsigned without = j->sandbox->host->without;
    int fds[DROP_FDS_MAX];
    /* The session's own: the host's null would be an inode shared with every other session. */
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null_fd < 0)
        return err_sys(e, errno, "open the session's /dev/null");
    const struct drop_plan plan = {
        .uid = USERNS_USER_ID,
        .gid = USERNS_USER_ID,
        .umask = j->start->flags & LAUNCH_SOCKETS_FD ? 022 : 007,
        .filter = without & SANDBOX_WITHOUT_SECCOMP ? DROP_FILTER_NONE : DROP_FILTER_SESSION,
        .new_session = 1,
        .fds = fds,
        .fd_count = list_descriptors(j, null_fd, fds),
        .exec_status_fd = status_fd,
        .nofile = l->nofile,
        .nproc = l->pids,
        .fsize_bytes = sandbox_file_size(j->sandbox),
        .landlock =
            without & SANDBOX_WITHOUT_LANDLOCK ? DROP_LANDLOCK_NONE : DROP_LANDLOCK_DEMANDED,
        .landlock_rules = landlock_session_rules(j->sandbox->workspace != NULL),
    };
    *ret_fd_count = plan.fd_count;
    return drop_run(&plan, e);
}

/* The directory, or the nearest one above it that can be entered. */
static int enter(const char *cwd, struct err *e)
{
    char at[LAUNCH_PATH_MAX + 1], *slash;

    snprintf(at, sizeof at, "%s", cwd);
    while (chdir(at) < 0) {
        slash = strrchr(at, '/');
        if (slash == NULL || slash == at)
            return chdir("/home/user") < 0 ? err_sys(e, errno, "enter /home/user") : 0;
        *slash = '\0';
    }
    return 0;
}

static int start(const struct joining *j, int status_fd, unsigned *ret_fd_count, struct err *e)
{
    int r = birth_wait_go(j->go_fd, j->go_write_fd);

    if (r < 0)
        return err_sys(e, -r, "wait for the launcher");
    r = join_namespaces(j->sandbox, e);
    if (r == 0)
        r = mount_spec(j, status_fd, e);
    if (r == 0 && chdir("/") < 0)
        r = err_sys(e, errno, "enter the session's root");
    if (r == 0)
        r = drop(j, status_fd, ret_fd_count, e);
    /* The drop set the parent-death signal; the launcher may have died just before. */
    if (r == 0)
        r = proc_check_parent((int)*ret_fd_count, e);
    if (r < 0)
        return r;
    /* With the rights of the session's user: the folder may be one that only it may enter. */
    r = enter(j->start->cwd, e);
    if (r < 0)
        return r;
    return kernelargs_exec(j->argv, j->start->env, e);
}

_Noreturn void joining_run(const struct joining *j)
{
    struct err e = { 0 };
    unsigned fd_count = 0;
    int status_fd = fcntl(j->status_fd, F_DUPFD_CLOEXEC, STATUS_FD_ABOVE);

    proc_reset_signals();
    close(j->status_read_fd);
    if (status_fd < 0) {
        err_sys(&e, errno, "put a descriptor aside");
        status_fd = j->status_fd;
    } else {
        close(j->status_fd);
        (void)start(j, status_fd, &fd_count, &e);
        /* A drop that failed early left the descriptor where it was. */
        if (fcntl(status_fd, F_GETFD) < 0)
            status_fd = (int)fd_count;
    }
    (void)!report_send(status_fd, &e); /* the exit says the same with fewer words */
    _exit(1);
}
