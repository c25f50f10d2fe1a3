#include "sessionlimits.h"

#include <errno.h>
#include <inttypes.h>

#include "err.h"
#include "limit.h"

#define MIB (UINT64_C(1) << 20)

static int too_much(const struct limit *l, uint64_t asked, uint64_t max, struct err *e)
{
    if (l->milli)
        return err_set(e, EINVAL, "limits.%s: %g is above %g, which is yours", l->name,
                       (double)asked / 1000, (double)max / 1000);
    return err_set(e, EINVAL, "limits.%s: %" PRIu64 " is above %" PRIu64 ", which is yours",
                   l->name, asked / l->unit, max / l->unit);
}

static void lower(uint64_t *bytes, uint64_t asked, uint64_t most)
{
    if (asked == 0 && *bytes > most)
        *bytes = most > MIB ? most : MIB;
}

/* /tmp and /dev/shm are made of the memory; where nobody asked for them, they follow it: with the shares of
 * LAUNCH_LIMITS_DEFAULT all three file systems are less than half, so that a full one is ENOSPC and not the
 * end of the kernel. */
static int fit_files(const struct launch_limits *asked, struct launch_limits *l, struct err *e)
{
    const uint64_t files = limit_of_files_in_memory(l);

    if (asked->memory_bytes != 0 || l->tmp_bytes > files || l->shm_bytes > files - l->tmp_bytes) {
        lower(&l->tmp_bytes, asked->tmp_bytes, l->memory_bytes / 8);
        lower(&l->shm_bytes, asked->shm_bytes, l->memory_bytes / 16);
    }
    if (l->tmp_bytes <= files && l->shm_bytes <= files - l->tmp_bytes)
        return 0;
    return err_set(e, EINVAL,
                   "limits.%s: /tmp and /dev/shm would be %" PRIu64 " MiB of the session's memory, "
                   "and %" PRIu64 " is the most of %" PRIu64,
                   asked->tmp_bytes != 0 ? "tmp_mb" : "shm_mb", (l->tmp_bytes + l->shm_bytes) / MIB,
                   files / MIB, l->memory_bytes / MIB);
}

/* 0: no bound. */
static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

int limits_choose(const struct launch_limits *asked, const struct launch_limits *own,
                  const struct launch_limits *all, const struct launch_limits *most,
                  struct launch_limits *ret, struct err *e)
{
    struct launch_limits chosen = *all;

    for (unsigned i = 0; i < LIMITS; i++) {
        const struct limit *l = &limit_rows[i];
        uint64_t has = limit_get(own, l), wants = limit_get(asked, l);
        uint64_t max = lesser(has, limit_get(most, l));

        if (l->name == NULL)
            continue;
        if (wants > max && max != 0)
            return too_much(l, wants, max, e);
        limit_set(&chosen, l, wants != 0 ? wants : lesser(has, limit_get(all, l)));
    }
    /* Where a home lies, and so how large it is by itself, the launcher decides. */
    if (asked->home_bytes == 0 && own->home_bytes == 0)
        chosen.home_bytes = 0;
    int rc = fit_files(asked, &chosen, e);
    if (rc == 0)
        *ret = chosen;
    return rc;
}
