/*
 * origin - who began something, from where and by which request: carried from a
 * request to its kernel's start, its runs and their lines in log and audit file. Shared: the
 * last who holds it frees it.
 *
 * The present one is that of the request whose handler runs: every line that is
 * written meanwhile names it.
 */
#ifndef HC_ORIGIN_H
#define HC_ORIGIN_H

#include <stdint.h>

#include "buf.h"
#include "traceparent.h"

struct http_head;
struct logline;

enum {
    ORIGIN_REQUEST_MAX = 128, /* bytes of a client's X-Request-Id */
    ORIGIN_PEER_MAX = 64,
    ORIGIN_PRINCIPAL_MAX = 64,
};

struct origin {
    unsigned holders;
    int traced;               /* parent and span are set */
    struct traceparent trace; /* the caller's */
    uint8_t span_id[TRACE_SPAN_BYTES];
    char principal[ORIGIN_PRINCIPAL_MAX]; /* "" before somebody is known */
    char request_id[ORIGIN_REQUEST_MAX + 1];
    char peer[ORIGIN_PEER_MAX]; /* address of the client, "" when unknown */
};

/* A request's: takes X-Request-Id when it is sane, else makes one, and traceparent when it is
 * valid. head may be NULL. Held once by the caller. */
struct origin *origin_of_request(const struct http_head *head, const char *peer);
struct origin *origin_hold(struct origin *o); /* accepts NULL */
struct origin *origin_drop(struct origin *o); /* accepts NULL, returns NULL */
void origin_principal(struct origin *o, const char *name);

/* The present one from here on; returns the one before, to be put back. Not held:
 * who sets it unsets it before it goes. */
struct origin *origin_enter(struct origin *o);
struct origin *origin_now(void); /* NULL: nothing that somebody asked for */

/* Something that the request of o began: a span of its own below that of the request. */
void origin_make_span(uint8_t out[TRACE_SPAN_BYTES]);
void origin_child_fields(const struct origin *o, const uint8_t span_id[TRACE_SPAN_BYTES],
                         struct logline *l);

/* Adds request_id and, when traced, trace_id, span_id and parent_span_id. */
void origin_fields(const struct origin *o, struct logline *l);

#endif
