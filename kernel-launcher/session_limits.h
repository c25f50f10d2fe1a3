/* session_limits - what a session gets: the request, the profile's defaults, its maxima. */
#ifndef HC_SESSION_LIMITS_H
#define HC_SESSION_LIMITS_H

#include "launchmsg.h"

struct err;

/* 0 in wanted means the default; above the maximum, or below what anybody may ask for (limit.h), is
 * -HC_ELIMIT and names the limit and that bound. */
int session_limits_choose(const struct launch_limits *wanted, const struct launch_limits *defaults,
                          const struct launch_limits *maxima, struct launch_limits *ret,
                          struct err *e) MUST_CHECK;

/* Raises each maximum that lies below its default. */
void session_limits_cover(struct launch_limits *maxima, const struct launch_limits *defaults);

#endif
