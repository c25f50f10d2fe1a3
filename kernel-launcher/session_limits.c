#include "session_limits.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"

struct limit {
    const char *name;
    size_t offset;
    int wide; /* uint64_t, else uint32_t */
};

#define WIDE(member)                                       \
    {                                                      \
#member, offsetof(struct launch_limits, member), 1 \
    }
#define NARROW(member)                                     \
    {                                                      \
#member, offsetof(struct launch_limits, member), 0 \
    }

static const struct limit all[] = {
    WIDE(memory_bytes), WIDE(home_bytes), WIDE(tmp_bytes),    WIDE(shm_bytes),
    NARROW(inodes),     NARROW(pids),     NARROW(cpu_millis), NARROW(nofile),
};

enum { LIMIT_COUNT = sizeof all / sizeof all[0] };

static uint64_t get(const struct launch_limits *from, const struct limit *l)
{
    const char *p = (const char *)from + l->offset;
    uint64_t wide;
    uint32_t narrow;

    if (l->wide) {
        memcpy(&wide, p, sizeof wide);
        return wide;
    }
    memcpy(&narrow, p, sizeof narrow);
    return narrow;
}

static void set(struct launch_limits *to, const struct limit *l, uint64_t value)
{
    char *p = (char *)to + l->offset;
    uint32_t narrow = (uint32_t)value;

    if (l->wide)
        memcpy(p, &value, sizeof value);
    else
        memcpy(p, &narrow, sizeof narrow);
}

int session_limits_choose(const struct launch_limits *wanted, const struct launch_limits *defaults,
                          const struct launch_limits *maxima, struct launch_limits *ret,
                          struct err *e)
{
    struct launch_limits chosen = *defaults;

    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        uint64_t value = get(wanted, &all[i]), max = get(maxima, &all[i]);

        if (value == 0)
            continue;
        if (value > max)
            return err_set(e, HC_ELIMIT, "limit %s: %" PRIu64 " is above the maximum %" PRIu64,
                           all[i].name, value, max);
        set(&chosen, &all[i], value);
    }
    *ret = chosen;
    return 0;
}

void session_limits_cover(struct launch_limits *maxima, const struct launch_limits *defaults)
{
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        if (get(maxima, &all[i]) < get(defaults, &all[i]))
            set(maxima, &all[i], get(defaults, &all[i]));
    }
}
