/*
 * deferred - work put off to the end of the present turn of the loop. Connections
 * flush there what the callbacks of one turn wrote, all in one write, and go on
 * there with input and events that a budget made them leave.
 *
 * Two kinds, since what is done right before the loop sleeps must not touch a
 * ZeroMQ socket (a send may swallow the edge that would wake the loop): DEFERRED_WORK
 * runs after the poll and keeps the loop from sleeping while there is more of it,
 * DEFERRED_FLUSH runs last and only writes to TCP sockets.
 */
#ifndef HC_DEFERRED_H
#define HC_DEFERRED_H

#include "loop.h"

struct deferred;

enum deferred_kind { DEFERRED_WORK, DEFERRED_FLUSH, DEFERRED_KINDS };

/* Lies in its owner; zeroed but for fn and arg. */
struct deferred_node {
    loop_fn *fn;
    void *arg;
    struct deferred_node *prev, *next; /* private */
    int queued;                        /* private */
};

struct deferred *deferred_new(struct loop *l);
/* No node may be queued. The memory goes in a later turn. Returns NULL. */
struct deferred *deferred_close(struct deferred *t);

/* Runs the node once; nothing happens when it is queued already. A node added
 * while nodes run is run in the next turn. */
void deferred_add(struct deferred *t, enum deferred_kind kind, struct deferred_node *n);
void deferred_remove(struct deferred *t, enum deferred_kind kind,
                     struct deferred_node *n); /* also when not queued */

#endif
