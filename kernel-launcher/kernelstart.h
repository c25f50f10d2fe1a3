/*
 * kernelstart - a START_KERNEL from the request to its answer. Between them the
 * child runs under the session's limits and may be held up by the session, so
 * nothing here waits for it; at a deadline it is killed.
 */
#ifndef HC_KERNELSTART_H
#define HC_KERNELSTART_H

#include <stdint.h>

#include "cleanup.h"

struct err;
struct kernelproc;
struct launcher;
struct sandbox_start;
struct session;

/* The state was checked: generation is above the last one and nothing runs. The
 * request is answered later, unless this fails. */
int kernelstart_begin(struct launcher *l, struct session *s, const struct sandbox_start *start,
                      uint64_t request, struct err *e) MUST_CHECK;

/* Goes on with a kernel that starts: answers when it has exec'ed or failed, kills
 * it when its time is up. Call it before that child may be reaped, and whenever
 * its status_fd polls. */
void kernelstart_step(struct launcher *l, struct session *s, struct kernelproc *k, uint64_t now_ms);
/* All that start. Returns when to call again, 0 for no time. */
uint64_t kernelstart_step_all(struct launcher *l, uint64_t now_ms);

/* Its leaf was killed for this reason: what comes of it is no start any more. code
 * is positive, why is a literal. */
void kernelstart_give_up(struct kernelproc *k, int code, const char *why);

#endif
