/*
 * request - one HTTP request as a route's handler sees it, and the ways to answer
 * it. Each request is answered once; the answer ends it: r must not be touched
 * afterwards. A handler that has to wait keeps the token, returns without an
 * answer and finds the request again by it, or not, when the client has gone.
 */
#ifndef HC_REQUEST_H
#define HC_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "auth.h"
#include "buf.h"
#include "principal.h"

struct err;
struct http_head;
struct jsonwrite;
struct origin;
struct server;
struct websocket;
struct websocket_ops;

struct request {
    const struct http_head *head; /* borrowed, as all below, until the answer */
    const char *const *params;    /* of the route's pattern, decoded */
    struct view body;             /* whole */
    struct principal principal;
    struct proof proof;    /* of the principal */
    struct origin *origin; /* hold it to keep it */
    uint64_t token;        /* never 0, never used again */
    struct server *server;
};

/* The request that waits for its answer, or NULL. */
struct request *request_find(struct server *s, uint64_t token);

struct answer {
    int status;
    const char *type;          /* Content-Type; NULL without a body */
    struct view body;          /* borrowed for the call */
    const char *cache_control; /* NULL: no-store */
    const char *headers;       /* further lines, each with its CRLF, or NULL */
    int close;                 /* the connection ends after this answer */
};
void request_answer(struct request *r, const struct answer *a);

/* A 200 to GET or HEAD, with an entity tag; 304 to a client that has it, and, when ranges is
 * set, the part that is asked for. a->headers must be NULL. */
void request_content(struct request *r, const struct answer *a, int ranges);

/* The connection is to end after the answer that is yet to come. */
void request_last(struct request *r);

/* 204, or 200 without a body. */
void request_empty(struct request *r, int status);
/* The error model: {"reason": phrase of the status, "message": text}. */
void request_error(struct request *r, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A 503 that says when to come again: Retry-After, and retry_after in the body. */
void request_busy(struct request *r, unsigned seconds, const char *message);
/* The same, with the status that belongs to the code. */
void request_failed(struct request *r, const struct err *e);
int status_of_error(int code); /* of errno values and HC_E*, in one table */

/* Answers with what w wrote to body (500 if that failed); frees body. location may be NULL.
 * A 200 to GET goes by request_content(). */
void request_json(struct request *r, int status, struct jsonwrite *w, struct buf *body,
                  const char *location);

/*
 * Answers 101 and makes the connection a WebSocket, within the handler or later.
 * accept is the Sec-WebSocket-Accept value, protocol the selected subprotocol or
 * NULL. Owned by the connection: gone after ops->closed().
 */
struct websocket *request_upgrade(struct request *r, const char *accept, const char *protocol,
                                  const struct websocket_ops *ops, void *arg);

#endif
