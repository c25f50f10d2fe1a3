#include "drop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "caps.h"
#include "err.h"
#include "landlock.h"
#include "rlimits.h"
#include "seccomp.h"
#include "walls.h"

/* The kernel's struct sigaction; libc's refuses signals 32 and 33, which may be
 * ignored or blocked by whoever started us. */
struct kernel_sigaction {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

enum { SIGNALS = 64 };

static int reset_signals(const struct drop_plan *plan, struct err *e)
{
    static const struct kernel_sigaction to_default; /* SIG_DFL is 0 */
    const uint64_t none = 0;

    (void)plan;
    for (int signo = 1; signo <= SIGNALS; signo++) {
        if (signo == SIGKILL || signo == SIGSTOP)
            continue;
        if (syscall(SYS_rt_sigaction, signo, &to_default, NULL, sizeof none) < 0)
            return err_sys(e, errno, "signal %d", signo);
    }
    if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none) < 0)
        return err_sys(e, errno, "signal mask");
    return 0;
}

/* First all out of the way, then each to its place: the numbers may overlap in
 * any way, and one descriptor may be wanted twice. */
static int place_descriptors(const struct drop_plan *plan, struct err *e)
{
    const int has_status = plan->exec_status_fd >= 0;
    const int above = (int)plan->fd_count + 1;
    int moved[DROP_FDS_MAX + 1];
    unsigned total = plan->fd_count + (unsigned)has_status;

    if (plan->fd_count > DROP_FDS_MAX)
        return err_set(e, EINVAL, "%u descriptors", plan->fd_count);
    for (unsigned i = 0; i < total; i++) {
        int fd = i < plan->fd_count ? plan->fds[i] : plan->exec_status_fd;

        moved[i] = fcntl(fd, F_DUPFD_CLOEXEC, above);
        if (moved[i] < 0)
            return err_sys(e, errno, "descriptor %d (%u)", fd, i);
    }
    for (unsigned i = 0; i < total; i++) {
        if (dup3(moved[i], (int)i, i < plan->fd_count ? 0 : O_CLOEXEC) < 0)
            return err_sys(e, errno, "descriptor to number %u", i);
    }
    if (syscall(SYS_close_range, total, ~0U, 0) < 0)
        return err_sys(e, errno, "close from %u", total);
    return 0;
}

static int set_limits(const struct drop_plan *plan, struct err *e)
{
    const struct rlimits_plan limits = { plan->nofile, plan->nproc, plan->fsize_bytes };

    return rlimits_set(&limits, e);
}

static int set_umask(const struct drop_plan *plan, struct err *e)
{
    (void)e;
    (void)umask(plan->umask);
    return 0;
}

static int new_session(const struct drop_plan *plan, struct err *e)
{
    /* EPERM: the child leads a process group already; fine when that is its own session. */
    if (plan->new_session && setsid() < 0 && getsid(0) != getpid())
        return err_sys(e, errno, "setsid");
    return 0;
}

static int empty_bounding_set(const struct drop_plan *plan, struct err *e)
{
    (void)plan;
    return wall_is_off(WALL_CAPS) ? 0 : caps_empty_bounding_set(e);
}

static int clear_ambient(const struct drop_plan *plan, struct err *e)
{
    (void)plan;
    return caps_clear_ambient(e);
}

static int lock_securebits(const struct drop_plan *plan, struct err *e)
{
    (void)plan;
    return caps_lock_securebits(e);
}

static int become(const struct drop_plan *plan, struct err *e)
{
    if (plan->keep_capabilities && plan->uid != 0) /* the kernel would take them with uid 0 */
        return err_set(e, EINVAL, "capabilities of user %u", plan->uid);
    return caps_become(plan->uid, plan->gid, e);
}

static uint64_t kept(const struct drop_plan *plan)
{
    return plan->keep_capabilities ? caps_of_init() : 0;
}

static int set_capabilities(const struct drop_plan *plan, struct err *e)
{
    return caps_set(kept(plan), e);
}

/* The change of ids does this too, unless fs.suid_dumpable is 1. */
static int forbid_dumps(const struct drop_plan *plan, struct err *e)
{
    (void)plan;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(e, errno, "PR_SET_DUMPABLE");
    return 0;
}

/* Again: the change of ids cleared it. */
static int die_with_parent(const struct drop_plan *plan, struct err *e)
{
    (void)plan;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return err_sys(e, errno, "PR_SET_PDEATHSIG");
    return 0;
}

static int refuse_new_privileges(const struct drop_plan *plan, struct err *e)
{
    (void)plan;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(e, errno, "PR_SET_NO_NEW_PRIVS");
    return 0;
}

static int verify(const struct drop_plan *plan, struct err *e)
{
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return err_set(e, EPERM, "no_new_privs is not set");
    if (wall_is_off(WALL_CAPS))
        return 0;
    return caps_verify(plan->uid, plan->gid, kept(plan), e);
}

static int enter_landlock(const struct drop_plan *plan, struct err *e)
{
    if (plan->landlock != DROP_LANDLOCK_DEMANDED || wall_is_off(WALL_LANDLOCK))
        return 0;
    return landlock_enter(
        landlock_abi(),
        plan->landlock_rules != NULL ? plan->landlock_rules : landlock_session_rules(0), e);
}

static int load_filter(const struct drop_plan *plan, struct err *e)
{
    if (plan->filter == DROP_FILTER_NONE || wall_is_off(WALL_SECCOMP))
        return 0;
    return seccomp_load(plan->filter == DROP_FILTER_INIT ? SECCOMP_INIT : SECCOMP_SESSION, e);
}

/*
 * The order and its reasons:
 * - descriptors before limits, which may be lower than the numbers in use;
 * - bounding set, ambient set and securebits need CAP_SETPCAP, which goes with the ids;
 * - capabilities by name after the ids, not by trust in what a change of ids does;
 * - no_new_privs lets an unprivileged process load the two layers behind it;
 * - a look at all of that while looking is still allowed;
 * - the filter last, so that it need not allow a single call of the others.
 */
static const struct step {
    const char *name;
    int (*run)(const struct drop_plan *plan, struct err *e);
} steps[] = {
    { "signals", reset_signals },
    { "descriptors", place_descriptors },
    { "limits", set_limits },
    { "umask", set_umask },
    { "session", new_session },
    { "bounding set", empty_bounding_set },
    { "ambient set", clear_ambient },
    { "securebits", lock_securebits },
    { "ids", become },
    { "capabilities", set_capabilities },
    { "dumpable", forbid_dumps },
    { "parent death signal", die_with_parent },
    { "no new privileges", refuse_new_privileges },
    { "verify", verify },
    { "landlock", enter_landlock },
    { "seccomp", load_filter },
};

enum { STEPS = sizeof steps / sizeof steps[0] };

int drop_run(const struct drop_plan *plan, struct err *e)
{
    for (unsigned i = 0; i < STEPS; i++) {
        int r = steps[i].run(plan, e);

        if (r < 0)
            return (void)err_wrap(e, "%s", steps[i].name), r;
    }
    return 0;
}

const char *const *drop_step_names(void)
{
    static const char *names[STEPS + 1];

    for (unsigned i = 0; i < STEPS; i++)
        names[i] = steps[i].name;
    return names;
}
