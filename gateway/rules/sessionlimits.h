/*
 * sessionlimits - the limits of a session by the names that options and REST have for them,
 * and the rule who may ask for which.
 */
#ifndef HC_SESSIONLIMITS_H
#define HC_SESSIONLIMITS_H

#include "cleanup.h"
#include "launchmsg.h"

struct err;

enum { LIMITS_NAMED = 7 };

/* One of launch_limits: in JSON a whole number of units, or with decimals 1000 of which
 * make one (cpus). */
struct limit_name {
    const char *name;
    uint64_t unit;  /* of the field, per 1 in JSON */
    uint64_t least; /* of the field */
    size_t offset;
    unsigned wide : 1;  /* uint64_t, else uint32_t */
    unsigned milli : 1; /* the field counts thousandths */
};
extern const struct limit_name limits_named[LIMITS_NAMED];

uint64_t limits_get(const struct launch_limits *from, const struct limit_name *name);
void limits_set(struct launch_limits *to, const struct limit_name *name, uint64_t value);

/*
 * What a session gets: what is asked for where that is not 0, else what the principal has,
 * else what all have. -EINVAL names what is asked for and lies above that. File systems
 * that nobody speaks of shrink with the memory, which they are made of.
 */
int limits_choose(const struct launch_limits *asked, const struct launch_limits *own,
                  const struct launch_limits *all, struct launch_limits *ret,
                  struct err *e) MUST_CHECK;

#endif
