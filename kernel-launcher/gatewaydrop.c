#include "gatewaydrop.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "err.h"
#include "gatewayproc.h"
#include "seccomp.h"
#include "settings.h"
#include "walls.h"

enum {
    ASIDE_FD = 64,
    EXE_FD = GATEWAY_FDS_END,
    STATUS_FD,
    END_FD,
    GATEWAY_PROCESSES = 256, /* threads of its uid: the loop's and ZeroMQ's few */
};

static int step(int rc, const char *what, struct err *e)
{
    return rc < 0 ? err_sys(e, errno, "gateway: %s", what) : 0;
}

/* All are moved out of the way first: a source may sit on another one's place. */
static int place_fds(const struct gateway_config *c, int link_fd, int *status_fd, struct err *e)
{
    enum { COUNT = END_FD - GATEWAY_LAUNCHER_FD };
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int from[COUNT] = { link_fd, c->listen_fd, c->settings_fd, c->ready_fd, c->dir_fd };
    int aside[COUNT];

    for (unsigned i = 0; i < LISTEN_MORE_MAX; i++)
        from[GATEWAY_MORE_LISTEN_FD - GATEWAY_LAUNCHER_FD + i] =
            i < c->more_listen_count ? c->more_listen_fds[i] : null_fd;
    from[EXE_FD - GATEWAY_LAUNCHER_FD] = c->exe_fd;
    from[STATUS_FD - GATEWAY_LAUNCHER_FD] = *status_fd;
    if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(2, 1) < 0)
        return step(-1, "standard descriptors", e);
    for (int i = 0; i < COUNT; i++) {
        aside[i] = fcntl(from[i], F_DUPFD_CLOEXEC, ASIDE_FD);
        if (aside[i] < 0)
            return step(-1, "duplicate descriptors", e);
    }
    *status_fd = aside[COUNT - 1];
    for (int i = 0; i < COUNT; i++) {
        int to = GATEWAY_LAUNCHER_FD + i;

        if (dup3(aside[i], to, to >= EXE_FD ? O_CLOEXEC : 0) < 0)
            return step(-1, "place descriptors", e);
    }
    *status_fd = STATUS_FD;
    return step((int)syscall(SYS_close_range, END_FD, ~0U, 0), "close_range", e);
}

/* A lower limit that was inherited (sudo gives 0 for core files) stays where it may not be
 * raised: in containers without CAP_SYS_RESOURCE. */
static int limit(int resource, rlim_t value)
{
    struct rlimit r = { value, value }, now;

    if (setrlimit(resource, &r) == 0)
        return 0;
    if (errno != EPERM || getrlimit(resource, &now) < 0 || now.rlim_max > value)
        return -1;
    r.rlim_cur = r.rlim_max = now.rlim_max;
    return setrlimit(resource, &r);
}

/* The gateway is the last to go when memory runs out, so without this the sessions of others would
 * go first, should anything in it grow without a bound. A quarter of it is what libzmq may hold of
 * all kernels (gateway/wire/zguard.h). At the limit the gateway dies, and its successor adopts the
 * kernels. */
static int limit_memory(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0; /* the shadow memory counts */
#else
    const uint64_t least = 1ULL << 30, most = 4ULL << 30;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t half = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 2 : most;

    uint64_t value = half < least ? least : half > most ? most : half;
    struct rlimit inherited;

    if (getrlimit(RLIMIT_DATA, &inherited) == 0 && inherited.rlim_max < value)
        value = inherited.rlim_max; /* the operator's word, and raising it needs CAP_SYS_RESOURCE */
    return limit(RLIMIT_DATA, value);
#endif
}

/* The launcher has raised NOFILE already; a client costs descriptors. */
static int set_limits(struct err *e)
{
    /* 1, not 0: a core_pattern that is a pipe ignores 0 and obeys 1 (core(5)). */
    if (limit(RLIMIT_CORE, 1) < 0 || limit(RLIMIT_NPROC, GATEWAY_PROCESSES) < 0 ||
        limit_memory() < 0)
        return step(-1, "rlimits", e);
    /* Sessions go first when memory runs out, then the gateway, the launcher last.
     * Not every container allows it; then the default of the host holds. */
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n = write(fd, "-800", 4);
        (void)n;
        close(fd);
    }
    return 0;
}

/* The bounding set and the securebits need CAP_SETPCAP, so they go first. After
 * the change of uid the kernel clears the other sets by itself; capset says so
 * once more for the inheritable one. */
static int drop_power(uid_t id, struct err *e)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

    for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap) < 0)
            return step(-1, "drop the bounding set", e);
    }
    if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
                                     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                     SECBIT_NO_CAP_AMBIENT_RAISE |
                                     SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED) < 0)
        return step(-1, "lock the securebits", e);
    if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
        return step(-1, "change to the gateway's id", e);
    if (syscall(SYS_capset, &head, none) < 0)
        return step(-1, "clear the capabilities", e);
    return step(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs", e);
}

/* The change of uid cleared the parent-death signal; the launcher may have died
 * before it was set again, then somebody else is the parent now. */
static int die_with_launcher(pid_t launcher, struct err *e)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return step(-1, "parent-death signal", e);
    if (getppid() != launcher)
        return err_set(e, HC_EGONE, "gateway: the launcher is gone");
    return 0;
}

/* SIGHUP stays blocked until the gateway has a place for it. */
static void reset_signals(void)
{
    sigset_t hangup;

    for (int signo = 1; signo < NSIG; signo++)
        signal(signo, SIG_DFL);
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    sigprocmask(SIG_SETMASK, &hangup, NULL);
}

static void run_program(const struct gateway_config *c, struct err *e)
{
    enum { ARGS = 7 };
    char text[ARGS][32], restarts[32], missing[40];
    static char first[] = "--first";
    static const char *const names[] = { "launcher-fd", "listen-fd", "settings-fd",
                                         "ready-fd",    "dir-fd",    "more-listen-fd" };
    char *argv[] = { (char *)(uintptr_t)c->name,
                     (char *)(uintptr_t) "gateway",
                     text[0],
                     text[1],
                     text[2],
                     text[3],
                     text[4],
                     text[5],
                     text[6],
                     restarts,
                     NULL,
                     NULL,
                     NULL };
    size_t last = sizeof argv / sizeof argv[0] - 3;
    static char path[] = "PATH=/usr/bin:/bin", lang[] = "LANG=C.UTF-8";
    char *env[] = { path, lang, NULL, NULL, NULL, NULL, NULL };
    static const char *const pass[] = { "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "LSAN_OPTIONS=" };
    size_t n = 2;

    for (int i = 0; i < ARGS - 1; i++)
        snprintf(text[i], sizeof text[i], "--%s=%d", names[i], GATEWAY_LAUNCHER_FD + i);
    snprintf(missing, sizeof missing, "--walls-missing=%d", __builtin_popcountll(c->missing));
    if (c->first)
        argv[last++] = first;
    if (c->missing != 0)
        argv[last++] = missing;
    snprintf(restarts, sizeof restarts, "--restarts=%u", c->restarts);
    snprintf(text[ARGS - 1], sizeof text[0], "--more-listen-count=%u", c->more_listen_count);
    for (char **v = environ; *v != NULL; v++) {
        for (size_t i = 0; i < sizeof pass / sizeof pass[0] && n < 5; i++) {
            if (strncmp(*v, pass[i], strlen(pass[i])) == 0)
                env[n++] = *v;
        }
    }
    if (walls_environment() != NULL)
        env[n++] = walls_environment();
    syscall(SYS_execveat, EXE_FD, "", argv, env, AT_EMPTY_PATH);
    err_sys(e, errno, "gateway: exec '%.120s'", c->name);
}

static int load_filter(const struct gateway_config *c, struct err *e)
{
    return c->missing & HOSTWALL_BIT(HOSTWALL_SECCOMP) ? 0 : seccomp_load(SECCOMP_GATEWAY_START, e);
}

void gatewaydrop_exec(const struct gateway_config *c, int link_fd, int *status_fd, pid_t launcher,
                      struct err *e)
{
    if (place_fds(c, link_fd, status_fd, e) < 0)
        return;
    reset_signals();
    umask(077);
    if (step(setsid(), "setsid", e) < 0 || step(chdir("/"), "chdir", e) < 0)
        return;
    if (set_limits(e) < 0 || drop_power(c->uid, e) < 0 || die_with_launcher(launcher, e) < 0 ||
        load_filter(c, e) < 0)
        return;
    run_program(c, e);
}
