/* zsocket_own - what the files of zsocket share; nobody else includes it. */
#ifndef HC_ZSOCKET_OWN_H
#define HC_ZSOCKET_OWN_H

#include <stdatomic.h>
#include <zmq.h>

#include "deferred.h"
#include "zguard.h"
#include "zsocket.h"

struct loop_poll;
struct loop_timer;

enum {
    ZSOCKET_DEPTH_MAX = 2, /* a SUB is drained while a DEALER's message is in hand */
};

/* Bytes of big messages inside ZMQ: of a socket, in it of its kernel, in that of all. Its own object, because the I/O
 * thread frees frames after the socket is gone. */
struct flight {
    struct flight *in; /* shared; NULL: that of all */
    atomic_size_t bytes;
    atomic_uint refs; /* the socket, every message, and every flight in it */
};

/* What was read of a kernel in one turn of the loop. */
struct zsocket_turn {
    uint64_t number;
    unsigned messages;
    size_t cost;
};

struct zsocket_peer {
    struct zguard_kernel *guard;  /* owned */
    struct flight *flight;        /* shared; NULL before its first socket */
    zsocket_broke_fn *broke;      /* or NULL */
    void *arg;                    /* borrowed */
    struct zsocket_turn turns[2]; /* by type of socket */
    int heavy[2];                 /* it used up its budget when it was served last */
};

struct zsocket {
    struct zsockets *all;                 /* borrowed */
    void *zmq, *monitor;                  /* owned */
    struct zsocket_peer *peer, *own_peer; /* borrowed; owned, when there is no other */
    struct zguard *guard;                 /* owned */
    enum zsocket_type type;
    struct zsocket_ops ops;
    void *arg; /* borrowed */
    struct loop_poll *poll, *monitor_poll;
    struct zsocket *prev, *next;             /* all sockets */
    struct zsocket *dirty_prev, *dirty_next; /* NULL while not dirty */
    struct zsocket *behind;                  /* borrowed */
    uint64_t behind_since_ms;                /* 0: not waiting */
    struct flight *flight;                   /* shared, in that of the peer */
    int blocked;                             /* writable() is owed */
    int look;                                /* the monitor has to be read */
    int joined, joined_told, gone;           /* what it said */
    int closed; /* memory waits until no call into it is on the stack */
};

struct zsocket_frames; /* one message in hand */

struct zsockets {
    struct loop *loop;         /* borrowed */
    struct deferred *deferred; /* borrowed */
    void *ctx;
    struct zsocket sockets; /* ring head */
    struct zsocket dirty;   /* ring head */
    struct deferred_node reaper;
    uint64_t turn;         /* of the loop */
    struct flight *flight; /* shared: of all */
    struct loop_timer *blocked_timer, *stall_timer;
    struct loop_poll *notices;
    unsigned blocked;
    unsigned long long monitors;                      /* names given */
    struct zsocket_frames *frames[ZSOCKET_DEPTH_MAX]; /* owned, made on first use */
    unsigned depth;
};

/* ---- zsocket.c ---- */
int zsocket_events(void *zmq);        /* ZMQ_EVENTS; asking eats the edge of its descriptor */
void zsocket_mark(struct zsocket *s); /* dirty: served until nothing is left */
void zsocket_unmark(struct zsocket *s);

void zsocket_end_monitor(struct zsocket *s);

/* ---- zsocket_send.c ---- */
struct flight *flight_new(struct flight *in);
struct flight *flight_drop(struct flight *f); /* f may be NULL */
int zsocket_is_writable(struct zsocket *s);
void zsocket_set_blocked(struct zsocket *s, int blocked); /* writable() is owed, or not */

/* ---- zsocket_read.c: the loop's hooks; arg is a struct zsockets ---- */
int zsockets_readable_now(void *arg);
void zsockets_serve_turn(void *arg);

#endif
