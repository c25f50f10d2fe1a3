/* limitsjson - limits of a session as JSON: {"memory_mb": 512, "cpus": 0.5, ...} (limit.h). */
#ifndef HC_LIMITSJSON_H
#define HC_LIMITSJSON_H

#include <jansson.h>

#include "cleanup.h"

struct err;
struct jsonwrite;
struct launch_limits;

/* The member "limits" of object, where null and absent mean none: 0 in ret is what is not
 * asked for. -EINVAL names the field. */
int limitsjson_read(const json_t *object, struct launch_limits *ret, struct err *e) MUST_CHECK;
void limitsjson_write(struct jsonwrite *w, const struct launch_limits *limits);

#endif
