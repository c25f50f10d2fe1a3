/* sessionlimits - who may ask for which limits of a session (limit.h). */
#ifndef HC_SESSIONLIMITS_H
#define HC_SESSIONLIMITS_H

#include "cleanup.h"
#include "launchmsg.h"

struct err;

/*
 * What a session gets: what is asked for where that is not 0, else what its profile has (all), or
 * the principal where that is less. -EINVAL names what is asked for and lies above the profile's maximum
 * (most) or the principal's own, or makes /tmp and /dev/shm more than the memory which they are made of has
 * room for. Those that nobody asks for shrink with the memory; the home is then left to the launcher (0).
 */
int limits_choose(const struct launch_limits *asked, const struct launch_limits *own,
                  const struct launch_limits *all, const struct launch_limits *most,
                  struct launch_limits *ret, struct err *e) MUST_CHECK;

#endif
