/*
 * turn - work that is done at the end of this turn of the loop, once, however
 * often it was asked for: telling clients that events wait, closing what a
 * callback further up still uses.
 */
#ifndef HC_TURN_H
#define HC_TURN_H

#include "loop.h"

struct turns;

/* Lives in the object that it is about; turn_cancel() before that goes. */
struct turn_item {
    loop_fn *fn;
    void *arg;                     /* borrowed */
    struct turn_item *prev, *next; /* NULL while not queued */
};

struct turns *turns_new(struct loop *l);
struct turns *turns_free(struct turns *t);

/* Runs at the end of each turn, before the items; busy() says whether it has
 * something to do already, and the loop then does not sleep. */
void turns_source(struct turns *t, int (*busy)(void *arg), loop_fn *run, void *arg);

void turn_later(struct turns *t, struct turn_item *item);
void turn_cancel(struct turn_item *item); /* not queued: nothing happens */

#endif
