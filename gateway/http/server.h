/*
 * server - the listening socket and what all its connections share: limits,
 * clocks, routes, who may ask. Fields are for the files of this folder.
 */
#ifndef HC_SERVER_H
#define HC_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "accesslog.h"
#include "cleanup.h"
#include "peer.h"
#include "settings.h"
#include "tenants.h"

struct auth;
struct buf;
struct conn;
struct conns;
struct err;
struct httpconn;
struct loop;
struct loop_poll;
struct loop_timer;
struct router;
struct tlscontext;
struct server;

struct server_limits {
    unsigned connections;
    uint64_t head_ms, body_ms, idle_ms, stall_ms;
    uint64_t ws_silence_ms; /* for which a WebSocket may be silent while it is pinged */
    uint64_t ws_ping_ms;    /* 0: no pings */
    size_t ws_message;      /* bytes of one incoming message */
    size_t bodies;          /* bytes of all request bodies that are being received */
    size_t ws_messages;     /* the same of WebSocket messages */
    size_t output;          /* bytes of all output that clients have not taken */
};

/* One socket that connections come in by. */
struct listener {
    struct server *server;
    struct loop_poll *poll;
    int fd;          /* borrowed */
    int unix_socket; /* 1: no TCP, and never TLS */
    int loopback;    /* 1: a TCP address that only this host reaches */
};

enum { SERVER_LISTENERS = 1 + LISTEN_MORE_MAX };

struct server {
    struct loop *loop;     /* borrowed */
    struct conns *conns;   /* owned */
    struct router *router; /* owned */
    struct auth *auth;     /* owned */
    char *headers;         /* owned: lines that every answer carries */
    char *preflight;       /* owned: lines that answers to OPTIONS carry beside them */
    struct server_limits limits;
    enum accesslog_level access;
    struct tlscontext *tls;   /* owned; NULL: plain. For new connections on TCP */
    struct peer_list trusted; /* proxies */
    struct listener listeners[SERVER_LISTENERS];
    unsigned listener_count;
    int spare_fd;             /* given up when descriptors run out, to refuse politely */
    struct httpconn *waiting; /* list of requests whose handlers have yet to answer */
    uint64_t next_token;
    struct tenants tenants;
    struct loop_timer *expiry_timer; /* while a token is yet to expire */
    uint64_t next_expiry_s;
    unsigned sockets;    /* WebSockets that are open */
    size_t output_grown; /* since all output that clients have not taken was last counted */
    int stopping;
};

/* Takes router, auth and the texts. Caller owns the result. */
struct server *server_new(struct loop *l, struct router *router, struct auth *auth, char *headers,
                          char *preflight, const struct server_limits *limits);
/* No connection may be left. The memory of its handles goes in a later turn. */
struct server *server_free(struct server *s);

int server_listen(struct server *s, int listen_fd, struct err *e) MUST_CHECK;
/* Takes the context (NULL: none); open connections keep what they have. */
void server_set_tls(struct server *s, struct tlscontext *tls);
/* No new connection; open ones end after their present answer, idle ones now,
 * WebSockets with 1012. */
void server_stop(struct server *s);
unsigned server_connections(const struct server *s);
void server_abort(struct server *s); /* closes what is left */

/* Takes auth in place of the one before. Who may not ask any more loses its
 * connections: what waits is answered 401, WebSockets are closed with 1008. */
void server_change_auth(struct server *s, struct auth *auth);
void server_recheck(struct server *s); /* the same when a token may have expired */

/* Ends the connection when clients take so little that this answer, which it did not take
 * at once, is more than its principal may have waiting. Returns 1 then. */
int server_bound_output(struct server *s, struct conn *c);
/* The Date field's value of now. */
const char *server_date(void);

#endif
