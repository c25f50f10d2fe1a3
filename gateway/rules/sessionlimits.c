#include "sessionlimits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"

#define MIB        (UINT64_C(1) << 20)
#define AT(member) offsetof(struct launch_limits, member)

const struct limit_name limits_named[LIMITS_NAMED] = {
    { "memory_mb", MIB, 64 * MIB, AT(memory_bytes), 1, 0 },
    { "cpus", 1000, 10, AT(cpu_millis), 0, 1 },
    { "pids", 1, 16, AT(pids), 0, 0 },
    { "disk_mb", MIB, MIB, AT(home_bytes), 1, 0 },
    { "tmp_mb", MIB, MIB, AT(tmp_bytes), 1, 0 },
    { "inodes", 1, 64, AT(inodes), 0, 0 },
    { "fds", 1, 64, AT(nofile), 0, 0 },
};

uint64_t limits_get(const struct launch_limits *from, const struct limit_name *name)
{
    const char *p = (const char *)from + name->offset;
    uint64_t wide;
    uint32_t narrow;

    if (name->wide) {
        memcpy(&wide, p, sizeof wide);
        return wide;
    }
    memcpy(&narrow, p, sizeof narrow);
    return narrow;
}

void limits_set(struct launch_limits *to, const struct limit_name *name, uint64_t value)
{
    char *p = (char *)to + name->offset;
    uint32_t narrow = (uint32_t)value;

    if (name->wide)
        memcpy(p, &value, sizeof value);
    else
        memcpy(p, &narrow, sizeof narrow);
}

static int too_much(const struct limit_name *name, uint64_t asked, uint64_t max, struct err *e)
{
    if (name->milli)
        return err_set(e, EINVAL, "limits.%s: %g is above %g, which is yours", name->name,
                       (double)asked / 1000, (double)max / 1000);
    return err_set(e, EINVAL, "limits.%s: %" PRIu64 " is above %" PRIu64 ", which is yours",
                   name->name, asked / name->unit, max / name->unit);
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

    for (unsigned i = 0; i < LIMITS_NAMED; i++) {
        const struct limit_name *name = &limits_named[i];
        uint64_t has = limits_get(own, name), wants = limits_get(asked, name);

        if (has == 0)
            has = limits_get(all, name);
        if (wants > has && has != 0)
            return too_much(name, wants, has, e);
        limits_set(&chosen, name, wants != 0 ? wants : has);
    }
    /* The shares of LAUNCH_LIMITS_DEFAULT: together less than half, so that a full
     * file system is ENOSPC and not the end of the kernel. */
    if (asked->memory_bytes != 0) {
        lower(&chosen.home_bytes, asked->home_bytes, asked->memory_bytes / 4);
        lower(&chosen.tmp_bytes, asked->tmp_bytes, asked->memory_bytes / 8);
        lower(&chosen.shm_bytes, 0, asked->memory_bytes / 16);
    }
    *ret = chosen;
    return 0;
}
