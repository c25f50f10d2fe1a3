/* What is built of the walls: descriptors, and a whole sandbox with a program in it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cgfile.h"
#include "err.h"
#include "harden.h"
#include "probes.h"
#include "proc.h"
#include "sandbox.h"
#include "userns.h"
#include "walls.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

int probe_pidfd(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    siginfo_t info = { 0 };
    int fd = -1;
    pid_t pid = proc_clone(0, -1, &fd);

    (void)env;
    (void)ret;
    if (pid == 0)
        for (;;)
            pause();
    if (pid < 0)
        return err_sys(e, -pid, "clone with a pidfd");
    autoclose int cloned = fd;
    autoclose int opened = pidfd_open(pid, 0);
    struct pollfd p = { .fd = cloned, .events = POLLIN };
    if (opened < 0)
        return err_sys(e, errno, "open a pidfd");
    if (pidfd_send_signal(opened, SIGKILL, NULL, 0) < 0)
        return err_sys(e, errno, "signal a pidfd");
    if (poll(&p, 1, -1) != 1 || waitid((idtype_t)P_PIDFD, (id_t)cloned, &info, WEXITED) < 0)
        return err_sys(e, errno, "wait for a pidfd");
    return info.si_pid == pid && info.si_status == SIGKILL
               ? 0
               : err_set(e, EPROTO, "a pidfd told of another process");
}

int probe_open_files(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    enum { COMFORTABLE = 20000 }; /* sessions cost the launcher some fifteen each */
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return err_sys(e, errno, "read RLIMIT_NOFILE");
    if (r.rlim_max < env->nofile)
        return err_set(e, EMFILE, "%" PRIu64 " at most, sessions are to have %u",
                       (uint64_t)r.rlim_max, env->nofile);
    probe_say(ret, r.rlim_max < COMFORTABLE ? HOSTWALL_WEAKER : HOSTWALL_PRESENT,
              r.rlim_max < COMFORTABLE ? "%" PRIu64 " at most: enough for a few hundred sessions"
                                       : "%" PRIu64 " at most",
              (uint64_t)r.rlim_max);
    return 0;
}

/* ---- a whole sandbox ---- */

struct trial {
    struct sandbox_host *own;
    struct sandbox *sandbox;
    struct sandbox_kernel kernel;
    int fds[2]; /* connection data, output */
};

enum { KERNEL = 1, GENERATION = 1, START_MS = 20000, NAPS = 1000 };

/* A test build serves without them (walls.h); doctor says what it sees in every build. */
static int left_out(const struct probe_env *env, enum wall wall)
{
    return env->host != NULL && wall_is_off(wall);
}

static int trial_open(const struct probe_env *env, struct trial *t, struct err *e)
{
    const struct sandbox_config c = {
        .slot = env->slot,
        .id_base = env->id_base,
        .gateway_uid = env->gateway_uid,
        .init_path = env->init_path,
        .runtime_dir = env->runtime_dir,
        .cgroup_parent = env->cgroup_parent,
    };
    struct launch_limits limits;
    struct sandbox_host *host = env->host;

    sandbox_limits_default(&limits);
    limits.nofile = env->nofile;
    *t = (struct trial){ .kernel = { -1, -1, -1, -1, 0 }, .fds = { -1, -1 } };
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return err_sys(e, errno, "become a subreaper");
    t->fds[0] = memfd_create("connection", MFD_CLOEXEC);
    t->fds[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (t->fds[0] < 0 || t->fds[1] < 0 || write(t->fds[0], "{}", 2) != 2)
        return err_sys(e, errno, "make descriptors");
    int r = host == NULL ? sandbox_host_open(&c, &t->own, e) : 0;
    if (r < 0)
        return r;
    if (host == NULL)
        host = t->own;
    /* As the launcher does. */
    if (t->own != NULL && (r = harden_daemon(SECCOMP_LAUNCHER, e)) < 0)
        return r;
    sandbox_host_without(host, env->without);
    return sandbox_create(host, USERNS_SESSIONS - 1, &limits, NULL, &t->sandbox, e);
}

enum { NOT_REFUSED = 7 };

static int has_landlock(const struct probe_env *env)
{
    return (env->without & SANDBOX_WITHOUT_LANDLOCK) == 0 && !left_out(env, WALL_LANDLOCK);
}

/* What Landlock alone forbids: the file is its own, on a file system that is mounted for
 * writing. */
static char script[] = "echo x >/proc/self/comm && exit 7; exec sleep 3600",
            no_trial[] = "exec sleep 3600";

static int start_program(const struct probe_env *env, struct trial *t, struct err *e)
{
    static char shell[] = "/bin/sh", c[] = "-c", path[] = "PATH=/usr/bin:/bin";
    char *argv[] = { shell, c, has_landlock(env) ? script : no_trial, NULL };
    char *environment[] = { path, NULL };
    const struct sandbox_start start = {
        .kernel = KERNEL,
        .generation = GENERATION,
        .spec_fd = -1,
        .argv = argv,
        .env = environment,
        .cwd = "/home/user",
        .connection_fd = t->fds[0],
        .log_fd = t->fds[1],
    };
    int r = sandbox_start_begin(t->sandbox, &start, &t->kernel, e);

    if (r < 0)
        return r;
    do {
        struct pollfd p = { .fd = t->kernel.status_fd, .events = POLLIN };

        if (poll(&p, 1, START_MS) == 0)
            return err_set(e, ETIMEDOUT, "the program does not start");
        r = sandbox_start_end(t->sandbox, KERNEL, GENERATION, &t->kernel, e);
    } while (r == -EAGAIN);
    return r;
}

/* Until it has got past its own trial. */
static int await_program(const struct trial *t, int dir, struct err *e)
{
    struct pollfd p = { .fd = t->kernel.pidfd, .events = POLLIN };
    siginfo_t info = { 0 };
    char name[32] = "";

    while (poll(&p, 1, 1) == 0)
        if (cgfile_read(dir, "comm", name, sizeof name) == 0 && strcmp(name, "sleep\n") == 0)
            return 0;
    if (waitid((idtype_t)P_PIDFD, (id_t)t->kernel.pidfd, &info, WEXITED | WNOWAIT) < 0)
        return err_sys(e, errno, "wait for the program inside");
    if (info.si_code == CLD_EXITED && info.si_status == NOT_REFUSED)
        return err_set(e, EPROTO, "Landlock refuses nothing inside");
    return err_set(e, EPROTO, "the program inside ended (%d)", info.si_status);
}

/* From outside: what Linux says of the process. expected: of its lines, with tabs. */
static int look_at(int dir, const char *file, const char *const *expected, struct err *e)
{
    char text[8192];
    int r = cgfile_read(dir, file, text, sizeof text);

    if (r < 0)
        return err_sys(e, -r, "read the %s of the program inside", file);
    for (unsigned i = 0; expected[i] != NULL; i++)
        if (strstr(text, expected[i]) == NULL)
            return err_set(e, EPROTO, "the program inside is not as it should be: not '%.60s'",
                           expected[i] + 1);
    return 0;
}

static int look_at_limits(const struct probe_env *env, int dir, struct err *e)
{
    char text[4096];
    unsigned long soft = 0, hard = 0;
    int r = cgfile_read(dir, "limits", text, sizeof text);
    const char *line = r == 0 ? strstr(text, "\nMax open files") : NULL;

    if (line == NULL || sscanf(line, "\nMax open files %lu %lu", &soft, &hard) != 2)
        return err_set(e, EPROTO, "the limits of the program inside cannot be read");
    return hard == env->nofile ? 0
                               : err_set(e, EPROTO, "the program inside may open %lu files, not %u",
                                         hard, env->nofile);
}

static int look_at_program(const struct probe_env *env, const struct trial *t, struct err *e)
{
    const uid_t id = userns_host_id(env->id_base, userns_outer_user(USERNS_SESSIONS - 1));
    const char *expected[6];
    char uid[64], path[64];
    unsigned n = 0;

    snprintf(path, sizeof path, "/proc/%d", (int)t->kernel.pid);
    autoclose int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, errno, "look at the program inside");
    int r = await_program(t, dir, e);
    if (r < 0)
        return r;
    snprintf(uid, sizeof uid, "\nUid:\t%u\t%u\t%u\t%u\n", id, id, id, id);
    expected[n++] = uid;
    expected[n++] = "\nCapPrm:\t0000000000000000\n";
    expected[n++] = "\nNoNewPrivs:\t1\n";
    if (!left_out(env, WALL_CAPS))
        expected[n++] = "\nCapBnd:\t0000000000000000\n";
    if ((env->without & SANDBOX_WITHOUT_SECCOMP) == 0 && !left_out(env, WALL_SECCOMP))
        expected[n++] = "\nSeccomp:\t2\n";
    expected[n] = NULL;
    r = look_at(dir, "status", expected, e);
    return r < 0 || left_out(env, WALL_FDS) ? r : look_at_limits(env, dir, e);
}

static int trial_close(struct trial *t, int verdict, struct err *e)
{
    struct err later = { 0 };
    int r = 0;

    closep(&t->kernel.status_fd);
    closep(&t->kernel.pidfd);
    closep(&t->kernel.run_fd);
    if (t->sandbox != NULL) {
        (void)!sandbox_kill(t->sandbox, NULL);
        while (waitpid(-1, NULL, __WALL) > 0)
            ;
        for (int i = 0; i < NAPS && (r = sandbox_free(t->sandbox, &later)) == -EBUSY; i++)
            cgfile_nap();
    }
    sandbox_host_close(t->own);
    closep(&t->fds[0]);
    closep(&t->fds[1]);
    return verdict == 0 && r < 0 ? err_set(e, later.code, "%s", later.msg) : verdict;
}

int probe_sandbox(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct trial t;
    int r = trial_open(env, &t, e);

    (void)ret;
    if (r == 0)
        r = start_program(env, &t, e);
    if (r == 0)
        r = look_at_program(env, &t, e);
    return trial_close(&t, r, e);
}
