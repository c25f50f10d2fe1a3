/*
 * timelimits - how long a session and its runs may take, by the names that options and REST
 * have for it, and the rule who may ask for what. Pure.
 */
#ifndef HC_TIMELIMITS_H
#define HC_TIMELIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"

struct err;

/* 0: no limit. */
struct time_limits {
    uint64_t cell_ms;  /* the code of one run */
    uint64_t stdin_ms; /* one question of input() */
    uint64_t life_ms;  /* a session, from its making */
};

enum {
    TIME_LIMITS = 3,
    TIME_LEAST_MS = 100, /* what can be kept: runs are looked at five times a second */
    TIME_TEXT = 32,
};
#define TIME_MOST_MS UINT64_C(31622400000) /* 366 days */

struct time_limit_name {
    const char *name, *setting; /* in JSON, in seconds; of the gateway, in milliseconds */
    size_t offset;
};
extern const struct time_limit_name time_limits_named[TIME_LIMITS];

/* By its name in JSON; NULL: there is none. */
const struct time_limit_name *time_limit_named(const char *name);
uint64_t time_limits_get(const struct time_limits *from, const struct time_limit_name *name);
void time_limits_set(struct time_limits *to, const struct time_limit_name *name, uint64_t ms);

/*
 * What a session gets: what is asked for where that is not 0, else what its profile has (all), or the
 * principal where that is less. -EINVAL names what is asked for and lies above the profile's maximum (most)
 * or the principal's own; where there is none anything may be asked for.
 */
int time_limits_choose(const struct time_limits *asked, const struct time_limits *own,
                       const struct time_limits *all, const struct time_limits *most,
                       struct time_limits *ret, struct err *e) MUST_CHECK;

/* "90 s", "0.5 s" */
const char *time_text(uint64_t ms, char out[TIME_TEXT]);

#endif
