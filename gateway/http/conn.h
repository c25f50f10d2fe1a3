/*
 * conn - one connection, plain or in TLS: input handed to whoever speaks the protocol, a
 * counted output queue, an end that lets the peer read the last answer. And
 * conns, all connections of one server, least recently heard of first.
 *
 * Nothing is freed inside a call: an ended connection calls closed() once, from
 * the loop, and is gone after it. Sending never fails towards the caller; a
 * broken connection swallows what is sent until closed() comes.
 */
#ifndef HC_CONN_H
#define HC_CONN_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "deferred.h"

struct conn;
struct conns;
struct tlscontext;

struct conn_ops {
    /* Bytes from the peer, borrowed for the call. Returns how many were taken (may
     * be less: called again with the rest, in a later turn when a budget is used
     * up). Taking none is allowed only after conn_pause(). */
    size_t (*data)(void *arg, struct view in);
    /* The peer will send no more and has sent all that data() was given. */
    void (*eof)(void *arg);
    /* The output queue is low again after conn_writable() said 0. */
    void (*drained)(void *arg);
    /* A few times a second: deadlines. */
    void (*tick)(void *arg, uint64_t now_ms);
    /* 1 when the connection does nothing that anybody would miss. */
    int (*idle)(void *arg);
    /* 0 when what the peer does not take is counted for nobody. */
    int (*counted)(void *arg);
    void (*closed)(void *arg);
};

/* What one connection may make us hold, in bytes: queued output from which
 * conn_writable() says 0 (drained() comes at a quarter of it), and input that is
 * read at a time and kept while paused, at most CONN_READ_MAX. */
enum { CONN_READ_MAX = 64 * 1024 };
struct conn_limits {
    size_t output, input;
};

/* tick_ms: how often tick() is called while there are connections. */
struct conns *conns_new(struct loop *l, uint64_t tick_ms);
/* All connections must have closed. The memory goes in a later turn. Returns NULL. */
struct conns *conns_close(struct conns *all);
unsigned conns_count(const struct conns *all);
struct deferred *conns_deferred(struct conns *all); /* shared */
struct loop *conns_loop(struct conns *all);         /* borrowed */
/* Aborts the connection that was silent longest of those that are idle or only linger, else
 * of those whose peer does not take what is counted for nobody; 0 when there is none. */
int conns_evict(struct conns *all);
/* Connections whose TLS handshake is not done; and aborts the one of them that was silent
 * longest, 0 when there is none. */
unsigned conns_handshakes(const struct conns *all);
int conns_evict_handshake(struct conns *all);
/* 0: enough was pulled from the sources of connections in this turn. */
int conns_may_pull(struct conns *all);
void conns_pulled(struct conns *all, size_t bytes);
/* Calls fn for each; fn may end connections. */
void conns_each(struct conns *all, void (*fn)(struct conn *c, void *arg), void *arg);

/* Takes the connected, non-blocking socket. tls NULL: plain. NULL without memory, or when
 * it refuses TCP_NODELAY; the socket is closed then. */
struct conn *conn_new(struct conns *all, int fd, const struct tlscontext *tls,
                      const struct conn_limits *limits, const struct conn_ops *ops, void *arg);
/* Another protocol goes on from here (an upgrade), within data() or outside. */
void conn_set_ops(struct conn *c, const struct conn_limits *limits, const struct conn_ops *ops,
                  void *arg);
const struct conn_ops *conn_ops(const struct conn *c);
void *conn_arg(const struct conn *c);

void conn_pause(struct conn *c);  /* no data() and eof() until conn_resume() */
void conn_resume(struct conn *c); /* they come in a later turn, never inside this call */

/* Sends the segments in order. Small ones are copied and go out together at the
 * end of the turn; large ones are written at once without a copy, and only what
 * the socket does not take is copied. */
void conn_write(struct conn *c, const struct view *segments, size_t count);
int conn_writable(struct conn *c);        /* 0: stop producing until drained() */
size_t conn_queued(const struct conn *c); /* bytes not yet taken by the socket */
/* The bytes by which the queue has grown since this was last asked; what has left it meanwhile
 * takes nothing away from them. */
size_t conn_grown(struct conn *c);
/* 1 while the socket is full: the clock of conn_set_stall() runs. */
int conn_blocked(const struct conn *c);
uint64_t
conn_drain_ms(const struct conn *c); /* when a full socket last took bytes again; 0 never */

/* The longest time that a full socket may take nothing; 0 = for ever. */
void conn_set_stall(struct conn *c, uint64_t ms);

/* Writes what is queued, then says so (close_notify, FIN), reads and drops what still comes
 * for a moment (a close with unread input would be a reset that destroys the answer
 * on its way), then closes. */
void conn_finish(struct conn *c);
void conn_abort(struct conn *c);      /* closes now */
int conn_ended(const struct conn *c); /* 1 after finish, abort or a failure */

#endif
