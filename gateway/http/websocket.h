/*
 * websocket - a connection after its upgrade: messages in and out, pings, the
 * closing handshake. What a message means is the affair of its owner.
 */
#ifndef HC_WEBSOCKET_H
#define HC_WEBSOCKET_H

#include <stddef.h>

#include "buf.h"
#include "wsframe.h"

struct accesslog_socket;
struct conn;
struct principal;
struct proof;
struct server;
struct tenant;
struct websocket;

enum { WS_SERVICE_RESTART = 1012 };

struct websocket_ops {
    /* A whole message, borrowed for the call; a text is valid UTF-8 unless it begins
     * with a NUL byte. Returns 0, or -EAGAIN: it is kept, nothing more is read, and it
     * comes again after websocket_resume(). */
    int (*message)(void *arg, int text, struct view payload);
    void (*drained)(void *arg); /* after websocket_writable() said 0 */
    /* The peer closes, or is closed for what it did: nothing comes or goes any more,
     * closed() follows. Not after websocket_close(). */
    void (*ending)(void *arg);
    void (*closed)(void *arg); /* once, the last call, from the loop */
};

/* Takes the connection over, on which the 101 was written. */
struct websocket *websocket_new(struct server *s, struct conn *c, struct tenant *n,
                                const struct websocket_ops *ops, void *arg);

/* What is told of it at its end; filled in by accesslog_opened(). */
struct accesslog_socket *websocket_account(struct websocket *w);

/* The segments are borrowed for the call. Nothing is sent after websocket_close(). */
void websocket_send(struct websocket *w, enum ws_opcode opcode, const struct view *segments,
                    size_t count);
int websocket_writable(struct websocket *w);
void websocket_resume(struct websocket *w);

/* Sends Close with the code, or without one when it is 0, behind what is queued;
 * waits a moment for the peer's. No message() comes any more. */
void websocket_close(struct websocket *w, int code);

/* Who opened it, and how that was shown; copied. */
void websocket_set_owner(struct websocket *w, const struct principal *p, const struct proof *proof);
/* Closes it with 1008 when the owner may not ask any more. */
void websocket_recheck(struct conn *c);
int websocket_is(const struct conn *c);
const struct tenant *websocket_tenant(const struct conn *c);
void websocket_stop(struct conn *c); /* the server stops: 1012 */

#endif
