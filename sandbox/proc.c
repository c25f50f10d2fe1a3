#include "proc.h"

#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "err.h"

pid_t proc_clone(uint64_t flags, int cgroup_fd, int *ret_pidfd)
{
    int pidfd = -1; /* after a failed clone3 it may hold a number that is no descriptor */
    struct clone_args a = {
        .flags = flags | CLONE_CLEAR_SIGHAND,
        .exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD,
    };

    if (ret_pidfd != NULL) {
        a.flags |= CLONE_PIDFD;
        a.pidfd = (uintptr_t)&pidfd;
    }
    if (cgroup_fd >= 0) {
        a.flags |= CLONE_INTO_CGROUP;
        a.cgroup = (uint64_t)cgroup_fd;
    }
    long pid = syscall(SYS_clone3, &a, sizeof a);
    if (pid < 0)
        return -errno;
    if (pid > 0 && ret_pidfd != NULL)
        *ret_pidfd = pidfd;
    return (pid_t)pid;
}

void proc_reset_signals(void)
{
    struct sigaction dfl = { .sa_handler = SIG_DFL };
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        (void)sigaction(i, &dfl, NULL); /* fails for KILL, STOP and the two that libc keeps */
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

int proc_die_with_parent(struct err *e)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return err_sys(e, errno, "set the parent-death signal");
    return 0;
}

int proc_check_parent(int pipe_fd, struct err *e)
{
    struct pollfd p = { .fd = pipe_fd };

    if (poll(&p, 1, 0) < 0)
        return err_sys(e, errno, "look for the launcher");
    return p.revents & POLLERR ? err_set(e, ECHILD, "the launcher is gone") : 0;
}

int proc_reap(pid_t pid, int *ret_status)
{
    int status;

    /* __WALL: a child cloned with CLONE_PARENT may have another exit signal than SIGCHLD. */
    while (waitpid(pid, &status, __WALL) < 0)
        if (errno != EINTR)
            return -errno;
    if (ret_status != NULL)
        *ret_status = status;
    return 0;
}
