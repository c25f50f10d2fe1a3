/*
 * turn - work put off to the end of the present turn of the loop. Connections
 * flush there what the callbacks of one turn wrote, all in one write, and go on
 * there with input and events that a budget made them leave.
 *
 * Two kinds, since what is done right before the loop sleeps must not touch a
 * ZeroMQ socket (a send may swallow the edge that would wake the loop): TURN_WORK
 * runs after the poll and keeps the loop from sleeping while there is more of it,
 * TURN_FLUSH runs last and only writes to TCP sockets.
 */
#ifndef HC_TURN_H
#define HC_TURN_H

#include "loop.h"

struct turn;

enum turn_kind { TURN_WORK, TURN_FLUSH, TURN_KINDS };

/* Lies in its owner; zeroed but for fn and arg. */
struct turn_node {
    loop_fn *fn;
    void *arg;
    struct turn_node *prev, *next; /* private */
    int queued;                    /* private */
};

struct turn *turn_new(struct loop *l);
/* No node may be queued. The memory goes in a later turn. Returns NULL. */
struct turn *turn_close(struct turn *t);

/* Runs the node once; nothing happens when it is queued already. A node added
 * while nodes run is run in the next turn. */
void turn_add(struct turn *t, enum turn_kind kind, struct turn_node *n);
void turn_remove(struct turn *t, enum turn_kind kind,
                 struct turn_node *n); /* also when not queued */

#endif
