/*
 * httpconn - the HTTP/1.x life of one connection: heads, bodies, one request
 * after the other in order, deadlines. Ends as a WebSocket or with the connection.
 */
#ifndef HC_HTTPCONN_H
#define HC_HTTPCONN_H

#include "arrival.h"
#include "conn.h"
#include "httpchunk.h"
#include "origin.h"
#include "request.h"
#include "router.h"

struct httpparse;
struct listener;
struct server;

enum httpconn_state {
    HTTPCONN_HEAD, /* between requests, or within a head */
    HTTPCONN_BODY,
    HTTPCONN_HANDLER, /* waits for the handler's answer; nothing is read meanwhile */
    HTTPCONN_OVER,    /* the last answer is given */
};

/* Private to httpconn.c, gate.c, waiting.c, answer.c and server.c. */
struct httpconn {
    struct request request;
    struct server *server; /* borrowed */
    struct conn *conn;     /* borrowed: it owns this */
    struct httpparse *parse;
    struct httpchunk chunk;
    struct buf body;
    uint64_t body_left; /* of a body with a length */
    enum httpconn_state state;
    uint64_t since_ms;    /* when the state, or the head's first byte, came */
    uint64_t progress_ms; /* last byte of the body */
    uint64_t began_us;    /* when the head was complete; 0 before */
    struct peer peer;
    const struct listener *listener; /* borrowed from the server */
    struct arrival arrival;          /* of the present request */
    struct route_match match;
    struct tenant *tenant; /* owned: of a request until its answer is taken; else NULL */
    struct httpconn *prev_waiting, *next_waiting;
    unsigned started : 1;   /* a byte of the head has come */
    unsigned keep : 1;      /* the connection goes on after the answer */
    unsigned minor : 1;     /* HTTP/1.<minor> of the request */
    unsigned head_only : 1; /* HEAD: no body in the answer */
    unsigned waiting : 1;   /* in the server's list */
    unsigned draining : 1;  /* paused until the output queue is low */
    unsigned in_data : 1;   /* inside data(), which frees an upgraded one itself */
    unsigned upgraded : 1;
};

/* Takes the socket. */
void httpconn_start(const struct listener *l, int fd);
/* Answers 503 and closes; plain only. */
void httpconn_refuse(const struct listener *l, int fd);
void httpconn_stop(struct conn *c); /* the server stops */
/* Who asks may not ask any more: what is not answered yet is answered 401. Who may still, but
 * has other limits now, has them also in a request whose body is on its way. */
void httpconn_recheck(struct conn *c);
int httpconn_is(const struct conn *c);
const struct tenant *httpconn_tenant(const struct conn *c); /* NULL between requests */

/* The answer is written: the next request, or the end. */
void httpconn_answered(struct httpconn *h, int close);
/* The connection is a WebSocket's: h ends. */
void httpconn_upgraded(struct httpconn *h);

#endif
