/* acts - one step of a hostile life: a request that makes sense, one that makes none, or noise. */
#ifndef HC_HOSTILE_ACTS_H
#define HC_HOSTILE_ACTS_H

#include "peer.h"

void act_anything(struct peer *p);
/* Bytes that differ from a request in some places; mostly the launcher has to end us for it. */
void act_mutant(struct peer *p);
void act_fd_flood(struct peer *p); /* as many descriptors as the kernel carries */

/* Argument lists: NUL-terminated strings one after another. */
struct view act_argv(const char *const *words, uint8_t *space, size_t size);

#endif
