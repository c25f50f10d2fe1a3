/*
 * zsocket - ZMQ sockets in the loop: DEALERs and SUBs of kernels. ZMQ_FD is an
 * edge-triggered hint, so a socket that was touched stays on a dirty list until
 * ZMQ_EVENTS says that nothing is left; each kernel is served 64 messages or
 * 256 KiB per turn, and a multipart message is read to its last part at once.
 */
#ifndef HC_ZSOCKET_H
#define HC_ZSOCKET_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct err;
struct loop;
struct deferred;
struct zsocket;
struct zsockets; /* the ZMQ context and all its sockets */

struct zsocket_peer;

enum zsocket_type { ZSOCKET_DEALER, ZSOCKET_SUB };

enum {
    ZSOCKET_IDENTITY_MAX = 64,
    /* Bytes given to ZMQ that the kernel did not take yet: of one socket, and of all sockets of the gateway. Of those a
     * kernel may have as many as are left free, and a message in any case. */
    ZSOCKET_IN_FLIGHT_MAX = 32 * 1024 * 1024,
    ZSOCKET_ALL_IN_FLIGHT_MAX = 512 * 1024 * 1024,
};

/* A kernel, for the limits of what its sockets hold together (zguard.h). broke(): it did what no
 * kernel may, and the connection is no more. */
typedef void zsocket_broke_fn(void *arg, const char *why);
struct zsocket_peer *zsocket_peer_new(zsocket_broke_fn *broke, void *arg);
/* Its sockets are closed before. Accepts NULL, returns NULL. */
struct zsocket_peer *zsocket_peer_free(struct zsocket_peer *p);

/* Frames are borrowed for the call. The callee may close the socket. */
typedef void zsocket_fn(void *arg, const struct view *frames, size_t count);
typedef void zsocket_note_fn(void *arg);

struct zsocket_ops {
    zsocket_fn *message;
    zsocket_note_fn *writable; /* after -EAGAIN of zsocket_send(); may be NULL */
    /* SUB: the peer closed the connection, or never took it; DEALER: likewise before joined().
     * May be NULL. */
    zsocket_note_fn *gone;
    /* DEALER: ZMTP's handshake is over, see zsocket_is_joined(). May be NULL. */
    zsocket_note_fn *joined;
};

struct zsocket_options {
    enum zsocket_type type;
    const char *path;          /* of the kernel's unix socket */
    struct zsocket_peer *peer; /* borrowed; NULL: one that has this socket alone */
    const char *identity;      /* DEALER; not empty, at most ZSOCKET_IDENTITY_MAX */
    const char
        *welcome; /* SUB: a second subscription, unique, whose welcome proves the first; or NULL */
    struct zsocket *
        behind; /* DEALER: what has arrived on this one is read first; borrowed, see zsocket_close() */
};

struct zsockets *zsockets_new(struct loop *l, struct deferred *t, struct err *e);
struct zsockets *zsockets_free(struct zsockets *z); /* all sockets are closed by then */

/* Connects once; there is no reconnect. */
int zsocket_open(struct zsockets *z, const struct zsocket_options *o, const struct zsocket_ops *ops,
                 void *arg, struct zsocket **ret, struct err *e) MUST_CHECK;
/* Unsent messages are dropped (linger 0). Sockets that stand behind this one no
 * longer do. Accepts NULL, returns NULL. */
struct zsocket *zsocket_close(struct zsocket *s);

/* Sockets that stand behind `from` stand behind `to` from now on. */
void zsocket_replace(struct zsocket *from, struct zsocket *to);

/* Sends all frames or none. -EAGAIN: the queue is full, writable() will tell. */
int zsocket_send(struct zsocket *s, const struct view *frames, size_t count,
                 struct err *e) MUST_CHECK;

/* 1 when it takes no message now: its queue is full, or a message above libzmq's limit
 * came, which ends the connection for good and is told nobody. */
int zsocket_is_stuck(struct zsocket *s);
/* 1: a message of so many bytes would be sent now; 0: writable() is owed. */
int zsocket_takes(struct zsocket *s, size_t bytes);

/* 1 once the handshake is over: the peer has taken the connection, and our identity is on
 * its way to it before anything that another socket sends from now on, since one thread
 * writes for all of them. A ROUTER drops what is for an identity that it does not know yet.
 * Peers that speak a ZMTP before 3.0 (RFC 23) never get there. For sockets with joined(). */
int zsocket_is_joined(struct zsocket *s);

/* Reads all that is there now, up to a bound. 1 when more is left. */
int zsocket_drain(struct zsocket *s);

#endif
