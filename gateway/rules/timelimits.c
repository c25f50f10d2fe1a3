#include "timelimits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "err.h"

#define AT(member) offsetof(struct time_limits, member)

const struct time_limit_name time_limits_named[TIME_LIMITS] = {
    { "cell_timeout", "cell-timeout-ms", AT(cell_ms) },
    { "stdin_timeout", "stdin-timeout-ms", AT(stdin_ms) },
    { "max_lifetime", "max-lifetime-ms", AT(life_ms) },
};

const struct time_limit_name *time_limit_named(const char *name)
{
    for (unsigned i = 0; i < TIME_LIMITS; i++) {
        if (strcmp(time_limits_named[i].name, name) == 0)
            return &time_limits_named[i];
    }
    return NULL;
}

uint64_t time_limits_get(const struct time_limits *from, const struct time_limit_name *name)
{
    uint64_t ms;

    memcpy(&ms, (const char *)from + name->offset, sizeof ms);
    return ms;
}

void time_limits_set(struct time_limits *to, const struct time_limit_name *name, uint64_t ms)
{
    memcpy((char *)to + name->offset, &ms, sizeof ms);
}

/* 0: no bound. */
static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

int time_limits_choose(const struct time_limits *asked, const struct time_limits *own,
                       const struct time_limits *all, const struct time_limits *most,
                       struct time_limits *ret, struct err *e)
{
    struct time_limits chosen = { 0 };

    for (unsigned i = 0; i < TIME_LIMITS; i++) {
        const struct time_limit_name *name = &time_limits_named[i];
        uint64_t has = time_limits_get(own, name), wants = time_limits_get(asked, name);

        uint64_t max = lesser(has, time_limits_get(most, name));

        if (max != 0 && wants > max)
            return err_set(e, EINVAL, "limits.%s: %g is above %g, which is yours", name->name,
                           (double)wants / 1000, (double)max / 1000);
        time_limits_set(&chosen, name,
                        wants != 0 ? wants : lesser(has, time_limits_get(all, name)));
    }
    *ret = chosen;
    return 0;
}

const char *time_text(uint64_t ms, char out[TIME_TEXT])
{
    snprintf(out, TIME_TEXT, "%.15g s", (double)ms / 1000);
    return out;
}
