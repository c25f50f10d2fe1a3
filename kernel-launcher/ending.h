/*
 * ending - the way out: kill, reap, wait until the cgroups are empty, free,
 * answer. Nothing here waits: ending_step() goes on where things stand.
 */
#ifndef HC_ENDING_H
#define HC_ENDING_H

#include <stdint.h>

#include "cleanup.h"

struct err;
struct launcher;
struct session;

/* Kills the session; harmless when it ends already. reason is a literal. */
void ending_begin(struct launcher *l, struct session *s, const char *reason, uint64_t now_ms);

/* Kills one generation's leaf; its answers wait in the leaf. -HC_ELIMIT when too
 * many wait for it. request 0: nobody waits. */
int ending_begin_kernel(struct session *s, uint32_t kernel, uint32_t generation, uint64_t request,
                        uint64_t now_ms, struct err *e) MUST_CHECK;

/* Goes on with everything that ends. Returns the time until the next call in ms,
 * -1 when nothing ends. */
int ending_step(struct launcher *l, uint64_t now_ms);

#endif
