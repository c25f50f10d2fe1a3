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

int limits_choose(const struct launch_limits *asked, const struct launch_limits *own,
                  const struct launch_limits *all, struct launch_limits *ret, struct err *e)
{
    struct launch_limits chosen = *all;

    for (unsigned i = 0; i < LIMITS; i++) {
        const struct limit *l = &limit_rows[i];
        uint64_t has = limit_get(own, l), wants = limit_get(asked, l);

        if (l->name == NULL)
            continue;
        if (has == 0)
            has = limit_get(all, l);
        if (wants > has && has != 0)
            return too_much(l, wants, has, e);
        limit_set(&chosen, l, wants != 0 ? wants : has);
    }
    /* Where a home lies, and so how large it is by itself, the launcher decides. */
    if (asked->home_bytes == 0 && own->home_bytes == 0)
        chosen.home_bytes = 0;
    /* The shares of LAUNCH_LIMITS_DEFAULT: together less than half, so that a full
     * file system is ENOSPC and not the end of the kernel. */
    if (asked->memory_bytes != 0) {
        lower(&chosen.tmp_bytes, asked->tmp_bytes, asked->memory_bytes / 8);
        lower(&chosen.shm_bytes, asked->shm_bytes, asked->memory_bytes / 16);
    }
    *ret = chosen;
    return 0;
}
