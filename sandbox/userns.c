#include "userns.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "err.h"
#include "proc.h"
#include "walls.h"

#define INIT_NAMESPACES                                          \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | \
     (wall_is_off(WALL_NETNS) ? 0 : CLONE_NEWNET) | (wall_is_off(WALL_IPCNS) ? 0 : CLONE_NEWIPC))

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

/* The holder is no program that could be harmed: it is dumpable, so that its files below /proc belong to
 * those who may write its maps, also when the launcher is not. */
static _Noreturn void hold(int ready_fd)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_DUMPABLE, 1);
    (void)!write(ready_fd, "r", 1);
    for (;;)
        pause(); /* until the launcher has the namespace open */
}

static int open_held(pid_t pid, int ready_fd, const char *map, int *ret_fd, struct err *e)
{
    char c;

    while (read(ready_fd, &c, 1) < 0)
        if (errno != EINTR)
            return err_sys(e, errno, "wait for the holder of a user namespace");
    int r = write_maps(pid, map, e);
    return r < 0 ? r : open_user_ns(pid, ret_fd, e);
}

int userns_make(const char *map, int *ret_fd, struct err *e)
{
    int p[2], fd = -1;

    if (pipe2(p, O_CLOEXEC) < 0)
        return err_sys(e, errno, "pipe");
    pid_t pid = proc_clone(CLONE_NEWUSER, -1, NULL);
    if (pid == 0)
        hold(p[1]);
    close(p[1]);
    int r = pid < 0 ? err_sys(e, -pid, "make a user namespace") : open_held(pid, p[0], map, &fd, e);
    close(p[0]);
    if (pid > 0)
        (void)kill(pid, SIGKILL);
    if (pid > 0 && proc_reap(pid, NULL) < 0 && r == 0)
        r = err_set(e, ECHILD, "the holder of a user namespace was reaped by another");
    if (r < 0) {
        closep(&fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

static int make_outer(uint32_t id_base, int *ret_fd, struct err *e)
{
    char map[64];

    snprintf(map, sizeof map, "0 %u %u\n", id_base + USERNS_OUTER_FIRST,
             (unsigned)USERNS_OUTER_COUNT);
    return userns_make(map, ret_fd, e);
}

int userns_become_root(struct err *e)
{
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return err_sys(e, errno, "become root of the user namespace");
    return 0;
}

/* Takes the namespace's root; before that our ids are unmapped there and clone3 says EPERM. */
static int become_outer_root(int outer_fd, struct err *e)
{
    if (setns(outer_fd, CLONE_NEWUSER) < 0)
        return err_sys(e, errno, "enter the outer user namespace");
    int r = userns_become_root(e);
    if (r < 0)
        return r;
    /* The change of ids made us non-dumpable; then our child's map files belong to the host's root. */
    if (prctl(PR_SET_DUMPABLE, 1) < 0)
        return err_sys(e, errno, "become dumpable");
    return 0;
}

enum { MAP_SIZE = 64 };

/* In the numbers of the parent namespace. */
static void session_map(char map[MAP_SIZE], uint32_t init_id, uint32_t user_id)
{
    snprintf(map, MAP_SIZE, "0 %u 1\n%u %u 1\n", init_id, (unsigned)USERNS_USER_ID, user_id);
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
    char map[MAP_SIZE];
    int r = become_outer_root(outer_fd, &b.err);

    if (r == 0) {
        b.pid = proc_clone(INIT_NAMESPACES | CLONE_PARENT, -1, NULL);
        if (b.pid == 0)
            return 0;
        if (b.pid < 0)
            err_sys(&b.err, -b.pid, "clone the sandbox's pid 1");
    }
    if (b.pid > 0) {
        session_map(map, userns_outer_init(index), userns_outer_user(index));
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

static pid_t clone_below_outer(int outer_fd, unsigned index, int leaf_fd, struct err *e)
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

/* Parent of the new namespace is the initial one, so the launcher may write the maps. */
static pid_t clone_below_initial(uint32_t id_base, unsigned index, int leaf_fd, struct err *e)
{
    char map[MAP_SIZE];
    pid_t pid = proc_clone(INIT_NAMESPACES, leaf_fd, NULL);

    if (pid == 0)
        return 0;
    if (pid < 0)
        return err_sys(e, -pid, "clone the sandbox's pid 1");
    session_map(map, userns_host_id(id_base, userns_outer_init(index)),
                userns_host_id(id_base, userns_outer_user(index)));
    int r = write_maps(pid, map, e);
    if (r < 0) {
        (void)kill(pid, SIGKILL);
        (void)!proc_reap(pid, NULL);
        return r;
    }
    return pid;
}

pid_t userns_clone_init(const struct userns *u, unsigned index, int leaf_fd, struct err *e)
{
    return u->outer_fd >= 0 ? clone_below_outer(u->outer_fd, index, leaf_fd, e)
                            : clone_below_initial(u->id_base, index, leaf_fd, e);
}

/* What a sandbox's first steps need; a host that refuses them says so by the exit status. */
_Noreturn static void try_namespaces(int go_fd)
{
    struct err e = { 0 };
    char c;

    if (read(go_fd, &c, 1) != 1 || userns_become_root(&e) < 0 || unshare(CLONE_NEWCGROUP) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || sethostname("trial", 5) < 0)
        _exit(1);
    _exit(0);
}

/* 1 when namespaces below the outer one do what they must. */
static int outer_works(const struct userns *u)
{
    struct err e = { 0 };
    int go[2], status = -1;

    if (pipe2(go, O_CLOEXEC) < 0)
        return 0;
    pid_t pid = userns_clone_init(u, 0, -1, &e);
    if (pid == 0)
        try_namespaces(go[0]);
    if (pid > 0 && (write(go[1], "g", 1) != 1 || proc_reap(pid, &status) < 0))
        status = -1;
    close(go[0]);
    close(go[1]);
    return pid > 0 && status == 0;
}

int userns_open(uint32_t id_base, int one_level, struct userns *ret, struct err *e)
{
    struct userns u = { .id_base = id_base, .outer_fd = -1 };
    int r = one_level ? 0 : make_outer(id_base, &u.outer_fd, e);

    if (r < 0)
        return r;
    if (u.outer_fd >= 0 && !outer_works(&u))
        closep(&u.outer_fd);
    *ret = u;
    return 0;
}

void userns_close(struct userns *u)
{
    closep(&u->outer_fd);
}
