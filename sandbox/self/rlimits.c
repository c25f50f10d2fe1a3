#include "rlimits.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <sys/resource.h>

#include "err.h"
#include "walls.h"

struct limit {
    const char *name;
    __rlimit_resource_t resource;
    rlim_t soft, hard;
};

static rlim_t lower(rlim_t a, rlim_t b)
{
    return a < b ? a : b;
}

static int set(const struct limit *l, struct err *e)
{
    struct rlimit now, want;

    if (getrlimit(l->resource, &now) < 0)
        return err_sys(e, errno, "read limit '%s'", l->name);
    want.rlim_max = lower(l->hard, now.rlim_max);
    want.rlim_cur = lower(l->soft, want.rlim_max);
    /* Init's filter lets nobody change that of core files; its children have it from init. */
    if (want.rlim_cur == now.rlim_cur && want.rlim_max == now.rlim_max)
        return 0;
    if (setrlimit(l->resource, &want) < 0)
        return err_sys(e, errno, "set limit '%s'", l->name);
    return 0;
}

/*
 * One byte, not zero: a core_pattern with a pipe runs its program on the host at
 * limit 0 too, and only 1 makes the kernel skip it (fs/coredump.c). Where 0 was
 * inherited and may not be raised, doctor's look at core_pattern must do.
 */
int rlimits_forbid_core(struct err *e)
{
    static const struct limit core = { "core", RLIMIT_CORE, 1, 1 };
    const struct rlimit one = { 1, 1 };

    return setrlimit(RLIMIT_CORE, &one) == 0 ? 0 : set(&core, e);
}

int rlimits_set(const struct rlimits_plan *plan, struct err *e)
{
    const rlim_t mib = 1024 * 1024;
    const rlim_t nofile =
        plan->nofile != 0 && !wall_is_off(WALL_FDS) ? plan->nofile : RLIM_INFINITY;
    const rlim_t nproc = plan->nproc != 0 && !wall_is_off(WALL_PIDS) ? plan->nproc : RLIM_INFINITY;
    const rlim_t fsize =
        plan->fsize_bytes != 0 && !wall_is_off(WALL_DISK) ? plan->fsize_bytes : RLIM_INFINITY;
    const struct limit limits[] = {
        { "nofile", RLIMIT_NOFILE, 1024, nofile }, /* select(2) ends at 1024: more only on demand */
        { "fsize", RLIMIT_FSIZE, fsize, fsize },
        { "nproc", RLIMIT_NPROC, nproc, nproc },
        { "memlock", RLIMIT_MEMLOCK, 8 * mib, 8 * mib },
        { "stack", RLIMIT_STACK, 8 * mib, 64 * mib },
        { "msgqueue", RLIMIT_MSGQUEUE, 0, 0 },
        { "rtprio", RLIMIT_RTPRIO, 0, 0 },
        { "nice", RLIMIT_NICE, 0, 0 },
        { "sigpending", RLIMIT_SIGPENDING, 1024, 1024 },
    };
    int r = rlimits_forbid_core(e);

    for (size_t i = 0; r == 0 && i < sizeof limits / sizeof limits[0]; i++)
        r = set(&limits[i], e);
    return r;
}

void rlimits_lift_file_size(void)
{
    struct rlimit r = { RLIM_INFINITY, RLIM_INFINITY };

    if (setrlimit(RLIMIT_FSIZE, &r) == 0 || getrlimit(RLIMIT_FSIZE, &r) < 0)
        return;
    r.rlim_cur = r.rlim_max;
    (void)setrlimit(RLIMIT_FSIZE, &r);
}

int rlimits_check_file_size(uint64_t bytes, const char *what, struct err *e)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_FSIZE, &r) < 0)
        return err_sys(e, errno, "read limit 'fsize'");
    if (r.rlim_cur == RLIM_INFINITY || bytes <= r.rlim_cur)
        return 0;
    return err_set(e, EFBIG,
                   "the limit of file sizes (ulimit -f, LimitFSIZE) is %" PRIu64
                   " KiB and may not be raised, %s takes %" PRIu64 " KiB",
                   (uint64_t)r.rlim_cur >> 10, what, (bytes + 1023) >> 10);
}
