/*
 * auth - who may ask: the token in its three places, and without a token the
 * checks of Origin and Host that keep web pages of others out.
 */
#ifndef HC_AUTH_H
#define HC_AUTH_H

#include "cleanup.h"
#include "sessions.h"

struct auth;
struct err;
struct http_head;

struct auth_config {
    const char *token;        /* NULL or "": no authentication */
    const char *allow_origin; /* borrowed strings, copied */
    const char *allow_hosts;  /* comma list */
    int loopback;             /* the socket listens on a loopback address */
};

/* Caller owns *ret. -EIO when libcrypto fails. */
int auth_new(const struct auth_config *config, struct auth **ret, struct err *e) MUST_CHECK;
struct auth *auth_free(struct auth *a); /* accepts NULL, returns NULL */

/* 0 and the principal, or the status to answer with (401, 403 or 404; e has the
 * message). websocket: a foreign Origin gets 403 in place of 404. open: the route
 * needs no token. */
int auth_check(const struct auth *a, const struct http_head *head, int websocket, int open,
               struct principal *ret, struct err *e) MUST_CHECK;

#endif
