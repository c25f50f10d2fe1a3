#include "limit.h"

#include <string.h>

#define ROW(id, field, json, opt, units, min, max, principal)                      \
    [LIMIT_##id] = {                                                               \
        .member = #field,                                                          \
        .name = (json),                                                            \
        .option = (opt),                                                           \
        .unit = (units) != LIMIT_THOUSANDTH ? (uint64_t)(units) : 1,               \
        .number_unit = (units) != LIMIT_THOUSANDTH ? (uint64_t)(units) : 1000,     \
        .least = (uint64_t)(min) * ((units) != LIMIT_THOUSANDTH ? (units) : 1),    \
        .most = (uint64_t)(max) * ((units) != LIMIT_THOUSANDTH ? (units) : 1),     \
        .offset = offsetof(struct launch_limits, field),                           \
        .wide = sizeof(((struct launch_limits *)NULL)->field) == sizeof(uint64_t), \
        .milli = (units) == LIMIT_THOUSANDTH,                                      \
        .of_principal = (principal),                                               \
    },

const struct limit limit_rows[LIMITS] = { LIMIT_ROWS(ROW) };

#define SIZE(id, field, ...) +sizeof(((struct launch_limits *)NULL)->field)
_Static_assert(sizeof(struct launch_limits) == 0 LIMIT_ROWS(SIZE), "each member has its row");

uint64_t limit_get(const struct launch_limits *from, const struct limit *l)
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

void limit_set(struct launch_limits *to, const struct limit *l, uint64_t value)
{
    char *p = (char *)to + l->offset;
    uint32_t narrow = (uint32_t)value;

    if (l->wide)
        memcpy(p, &value, sizeof value);
    else
        memcpy(p, &narrow, sizeof narrow);
}

uint64_t limit_of_files_in_memory(const struct launch_limits *l)
{
    const uint64_t interpreter = UINT64_C(128) << 20;
    const uint64_t quarter = l->memory_bytes / 4;

    return l->memory_bytes - (quarter < interpreter ? quarter : interpreter);
}

/* A tmpfs of 0 bytes would have no limit. */
static uint64_t lower(uint64_t bytes, uint64_t most)
{
    const uint64_t least = 1 << 20;

    return bytes <= most ? bytes : most > least ? most : least;
}

void limit_shrink_files_in_memory(struct launch_limits *l)
{
    l->tmp_bytes = lower(l->tmp_bytes, l->memory_bytes / 8);
    l->shm_bytes = lower(l->shm_bytes, l->memory_bytes / 16);
}

const struct limit *limit_named(const char *name)
{
    for (unsigned i = 0; i < LIMITS; i++) {
        if (limit_rows[i].name != NULL && strcmp(limit_rows[i].name, name) == 0)
            return &limit_rows[i];
    }
    return NULL;
}
