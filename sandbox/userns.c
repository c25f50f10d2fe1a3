#include "userns.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "err.h"
#include "proc.h"

void userns_raise_limits(void)
{
    static const int limits[] = { RLIMIT_NPROC, RLIMIT_SIGPENDING, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE,
                                  RLIMIT_NOFILE };

    for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY }, have;

        if (setrlimit((__rlimit_resource_t)limits[i], &all) == 0)
            continue;
        /* Without CAP_SYS_RESOURCE the hard limit is as high as it gets. */
        if (getrlimit((__rlimit_resource_t)limits[i], &have) == 0) {
            have.rlim_cur = have.rlim_max;
            (void)setrlimit((__rlimit_resource_t)limits[i], &have);
        }
    }
}

static int write_file(const char *path, const char *text, struct err *e)
{
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "open %s", path);
    if (write(fd, text, strlen(text)) !=
        (ssize_t)strlen(text)) /* one write: the rule of user_namespaces(7) */
        return err_sys(e, errno, "write %s", path);
    return 0;
}

/* pid must be our child, or one that nobody else reaps: else the path could name another process. */
static int write_maps(pid_t pid, const char *map, struct err *e)
{
    static const char *const files[] = { "uid_map", "gid_map" };
    int r = 0;

    for (unsigned i = 0; i < 2 && r == 0; i++) {
        char path[64];

        snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, files[i]);
        r = write_file(path, map, e);
    }
    return r;
}

static int open_user_ns(pid_t pid, int *ret_fd, struct err *e)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "open %s", path);
    *ret_fd = fd;
    return 0;
}

int userns_outer_new(uint32_t id_base, int *ret_fd, struct err *e)
{
    char map[64];
    pid_t pid = proc_clone(CLONE_NEWUSER, -1, NULL);

    if (pid < 0)
        return err_sys(e, -pid, "make a user namespace");
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause(); /* holds the namespace until the launcher has it open */
    }
    snprintf(map, sizeof map, "0 %u %u\n", id_base + USERNS_OUTER_FIRST,
             (unsigned)USERNS_OUTER_COUNT);
    int fd = -1;
    int r = write_maps(pid, map, e);
    if (r == 0)
        r = open_user_ns(pid, &fd, e);
    (void)kill(pid, SIGKILL);
    if (proc_reap(pid, NULL) < 0 && r == 0)
        r = err_set(e, ECHILD, "the holder of the outer user namespace was reaped by another");
    if (r < 0) {
        closep(&fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

/* Takes the namespace's root; before that our ids are unmapped there and clone3 says EPERM. */
static int become_outer_root(int outer_fd, struct err *e)
{
    if (setns(outer_fd, CLONE_NEWUSER) < 0)
        return err_sys(e, errno, "enter the outer user namespace");
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return err_sys(e, errno, "become root of the outer user namespace");
    /* The change of ids made us non-dumpable; then our child's map files belong to the host's root. */
    if (prctl(PR_SET_DUMPABLE, 1) < 0)
        return err_sys(e, errno, "become dumpable");
    return 0;
}

struct built {
    struct err err; /* code 0: pid is good */
    pid_t pid;
};

/* The builder: only a process inside the outer namespace may make one below it and write its maps
 * (the launcher, its grandparent, gets EPERM). Returns 0 in the new process alone. */
static int build(int outer_fd, unsigned index, int result_fd)
{
    struct built b = { .pid = -1 };
    char map[64];
    int r = become_outer_root(outer_fd, &b.err);

    if (r == 0) {
        b.pid = proc_clone(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                               CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PARENT,
                           -1, NULL);
        if (b.pid == 0)
            return 0;
        if (b.pid < 0)
            err_sys(&b.err, -b.pid, "clone the sandbox's pid 1");
    }
    if (b.pid > 0) {
        snprintf(map, sizeof map, "0 %u 1\n%u %u 1\n", userns_outer_init(index),
                 (unsigned)USERNS_USER_ID, userns_outer_user(index));
        if (write_maps(b.pid, map, &b.err) < 0)
            (void)kill(b.pid, SIGKILL); /* the caller reaps it */
    }
    _exit(write(result_fd, &b, sizeof b) == (ssize_t)sizeof b ? 0 : 1);
}

/* What the builder says; it is at its end whatever it says. */
static pid_t hear_builder(pid_t builder, int fd, struct err *e)
{
    struct built b = { .pid = -1 };
    ssize_t n;

    do
        n = read(fd, &b, sizeof b);
    while (n < 0 && errno == EINTR);
    if (proc_reap(builder, NULL) < 0 || n != (ssize_t)sizeof b)
        return err_set(e, EPROTO, "the builder of the sandbox died");
    if (b.err.code == 0)
        return b.pid;
    if (b.pid > 0)
        (void)!proc_reap(b.pid, NULL);
    return err_set(e, b.err.code, "%s", b.err.msg);
}

pid_t userns_clone_init(int outer_fd, unsigned index, int leaf_fd, struct err *e)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return err_sys(e, errno, "pipe");
    pid_t builder = proc_clone(0, leaf_fd, NULL);
    if (builder == 0) {
        close(p[0]);
        (void)build(outer_fd, index, p[1]);
        close(p[1]); /* here we are the new process: the builder has left by _exit() */
        return 0;
    }
    close(p[1]);
    pid_t pid = builder < 0 ? err_sys(e, -builder, "clone the builder of the sandbox")
                            : hear_builder(builder, p[0], e);
    close(p[0]);
    return pid;
}
