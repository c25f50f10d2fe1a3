/* timestamp - moments as the log, the audit file and Jupyter write them: RFC 3339, in UTC. */
#ifndef HC_TIMESTAMP_H
#define HC_TIMESTAMP_H

#include <stdint.h>

#define TIMESTAMP_TEXT 28 /* "2026-01-02T03:04:05.000006Z" and a NUL */

/* Always six digits: Jupyter's clients parse with a fixed pattern (jupyter-wire.md T1). */
void timestamp_format(uint64_t realtime_us, char out[TIMESTAMP_TEXT]);

#endif
