/*
 * conn_private - what conn.c (life and input), connwrite.c (output) and conns.c
 * (all connections) share. Nobody else includes it.
 */
#ifndef HC_CONN_PRIVATE_H
#define HC_CONN_PRIVATE_H

#include "conn.h"
#include "transport.h"

enum { CONN_LINGER_MS = 2000 /* from our FIN to the close */ };

enum conn_state { CONN_OPEN, CONN_FINISHING, CONN_DEAD };

struct conns {
    struct loop *loop;         /* borrowed */
    struct deferred *deferred; /* owned */
    struct loop_timer *timer;
    uint64_t tick_ms;
    struct conn *first, *last; /* owned list; last was heard of last */
    unsigned count, handshakes;
    unsigned handshake_steps; /* in this turn */
    size_t pulled;            /* bytes, likewise */
    struct deferred_node turn_end;
    /* Callbacks do not nest: one for all. */
    uint8_t scratch[CONN_READ_MAX + TRANSPORT_SLACK], cipher[CONN_READ_MAX + TRANSPORT_SLACK];
};

struct conn {
    struct conns *all;
    struct conn *prev, *next;
    const struct conn_ops *ops;
    struct conn_limits limits;
    void *arg;
    struct loop_poll *poll;
    struct deferred_node work, flush;
    struct transport transport;
    int fd;
    enum conn_state state;
    int events; /* what poll waits for */
    unsigned paused : 1;
    unsigned blocked : 1;    /* the socket is full: out waits for it */
    unsigned over : 1;       /* the queue was above its mark and drained() is due */
    unsigned resuming : 1;   /* input is to be delivered by work */
    unsigned delivering : 1; /* inside deliver() */
    unsigned eof : 1;        /* recv said so */
    unsigned eof_told : 1;
    unsigned fin : 1;       /* we have sent ours */
    unsigned handshake : 1; /* of TLS, not done */
    struct buf in;          /* taken from the socket, not yet by the protocol */
    struct buf out;
    uint64_t stall_ms, progress_ms, drain_ms, linger_until_ms;
    size_t dropped;
    size_t told; /* of the queue, to conn_grown() */
};

void conn_update_events(struct conn *c);
void conn_kill(
    struct conn *c); /* the descriptor goes now, the object after closed(), from the loop */
void conn_flush(struct conn *c);      /* writes the queue until the socket is full */
void conn_end_output(struct conn *c); /* the queue is empty: no more will come from us */
void conn_on_flush(void *arg);        /* the DEFERRED_FLUSH node */
void conn_tick(struct conn *c, uint64_t now);

void conns_add(struct conns *all, struct conn *c);
void conns_remove(struct conns *all, struct conn *c);
void conns_heard(struct conns *all, struct conn *c); /* moves it to the end of the list */
/* 0: enough handshakes went on in this turn; the rest has to wait for the next one. */
int conns_may_shake(struct conns *all);
void conns_shaken(struct conns *all, struct conn *c); /* done, or given up */

#endif
