/* limitsjson - limits of a session as JSON: {"memory_mb": 512, "cpus": 0.5, "cell_timeout": 60, ...}
 * (limit.h, timelimits.h). */
#ifndef HC_LIMITSJSON_H
#define HC_LIMITSJSON_H

#include <jansson.h>

#include "cleanup.h"

struct err;
struct jsonwrite;
struct launch_limits;
struct time_limits;

/* The member "limits" of object, where null and absent mean none: 0 is what is not asked
 * for. -EINVAL names the field. */
int limitsjson_read(const json_t *object, struct launch_limits *ret, struct time_limits *ret_times,
                    struct err *e) MUST_CHECK;
/* Times that have no limit are left out. */
void limitsjson_write(struct jsonwrite *w, const struct launch_limits *limits,
                      const struct time_limits *times);

#endif
