#include "session_limits.h"

#include <inttypes.h>

#include "err.h"
#include "limit.h"

int session_limits_choose(const struct launch_limits *wanted, const struct launch_limits *defaults,
                          const struct launch_limits *maxima, struct launch_limits *ret,
                          struct err *e)
{
    struct launch_limits chosen = *defaults;

    for (unsigned i = 0; i < LIMITS; i++) {
        const struct limit *l = &limit_rows[i];
        uint64_t value = limit_get(wanted, l), max = limit_get(maxima, l);

        if (value == 0)
            continue;
        if (value > max)
            return err_set(e, HC_ELIMIT, "limit %s: %" PRIu64 " is above the maximum %" PRIu64,
                           l->member, value, max);
        /* A sandbox with less would come to no good, slowly. */
        if (value < l->least)
            return err_set(e, HC_ELIMIT, "limit %s: %" PRIu64 " is below the minimum %" PRIu64,
                           l->member, value, l->least);
        limit_set(&chosen, l, value);
    }
    *ret = chosen;
    return 0;
}

void session_limits_cover(struct launch_limits *maxima, const struct launch_limits *defaults)
{
    for (unsigned i = 0; i < LIMITS; i++) {
        const struct limit *l = &limit_rows[i];

        if (limit_get(maxima, l) < limit_get(defaults, l))
            limit_set(maxima, l, limit_get(defaults, l));
    }
}
