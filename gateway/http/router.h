/*
 * router - finds the route of a path and method in the tables of the fronts.
 * Paths are compared segment by segment after decoding; a trailing slash is
 * served like none.
 */
#ifndef HC_ROUTER_H
#define HC_ROUTER_H

#include <stddef.h>

#include "buf.h"

struct request;
struct router;

/* Answers the request, now or later (request.h). arg is the table's. */
typedef void route_handler(struct request *r, void *arg);

enum {
    ROUTE_OPEN = 1,      /* no token needed */
    ROUTE_ROOT = 4,      /* also at the root, outside of the base URL */
    ROUTE_PROBE = 4 | 8, /* likewise, and nothing of a request is checked: it tells no secret */
    ROUTE_ALL = 16,      /* tells of all principals: not for each of them */
    ROUTE_WEBSOCKET = 2, /* a foreign Origin gets 403; else 404, as of Jupyter's servers */
};

struct route {
    const char *method; /* OPTIONS is answered for every path that has a route */
    /* Segments: literal; `{id}` a Jupyter id, five groups of [A-Za-z0-9_] with '-' between;
     * `{name}` any one segment; `{path}` one or more up to the end, joined by '/'. */
    const char *pattern;
    route_handler *handler;
    size_t body_max; /* bytes; 0: a request with a body is refused (413) */
    unsigned flags;
};

enum { ROUTE_PARAMS = 2, ROUTE_ALLOW_SIZE = 64 };

struct route_match {
    const struct route *route; /* borrowed; for a 405 any of the path */
    void *arg;
    char allow[ROUTE_ALLOW_SIZE]; /* methods of the path */
    const char *params
        [ROUTE_PARAMS]; /* decoded, no NUL within; in the order of the pattern; borrowed from text */
    struct buf text;
};

/* base_url: raw, begins with '/'. Owned by the caller; borrowed strings are copied. */
struct router *router_new(const char *base_url);
struct router *router_free(struct router *r);
const char *router_base(const struct router *r); /* begins and ends with '/', as configured */
/* The table is borrowed for the router's life. */
void router_add(struct router *r, const struct route *routes, size_t count, void *arg);

/* Returns 200, 404 or 405 (allow is set). m is initialised by route_match_init(),
 * and to be cleared before it is used again. */
int router_match(const struct router *r, struct view method, struct view path,
                 struct route_match *m);
void route_match_init(struct route_match *m);
void route_match_clear(struct route_match *m);

/* 1 when text has the form of a Jupyter id. */
int route_is_id(struct view text);

#endif
