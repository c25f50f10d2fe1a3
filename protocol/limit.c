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

const struct limit *limit_named(const char *name)
{
    for (unsigned i = 0; i < LIMITS; i++) {
        if (limit_rows[i].name != NULL && strcmp(limit_rows[i].name, name) == 0)
            return &limit_rows[i];
    }
    return NULL;
}
