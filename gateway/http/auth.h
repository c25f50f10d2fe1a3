/*
 * auth - who may ask: the token in its three places, and without a token the
 * checks of Origin and Host that keep web pages of others out.
 */
#ifndef HC_AUTH_H
#define HC_AUTH_H

#include "cleanup.h"
#include "principals.h"

struct arrival;
struct auth;
struct err;
struct http_head;

struct auth_config {
    const char *token;      /* of the principal "default"; NULL or "": it has none */
    const char *principals; /* text of the file (principals.h); NULL: there is none */
    struct principals_maxima maxima;
    int open; /* no authentication */
    /* The field by which trusted proxies name the principal; NULL: none does. */
    const char *identity_header;
    int identity_create; /* a name that nobody has becomes a principal without limits of its own */
    const char *allow_origin; /* borrowed strings, copied */
    const char *allow_hosts;  /* comma list */
};

/* Caller owns *ret. -EIO when libcrypto fails. */
int auth_new(const struct auth_config *config, struct auth **ret, struct err *e) MUST_CHECK;
struct auth *auth_free(struct auth *a); /* accepts NULL, returns NULL */

/* How somebody showed who he is: enough to ask again later whether it still holds. */
enum proof_kind {
    PROOF_NONE, /* nothing was asked for */
    PROOF_TOKEN,
    PROOF_PROXY, /* the token is a trusted proxy's, which named the principal */
    PROOF_UNIX,  /* likewise, and its Unix socket stands for the token */
};
struct proof {
    enum proof_kind kind;
    uint8_t digest[PRINCIPAL_DIGEST]; /* SHA-256 of the token */
};

/* 0 and the principal, or the status to answer with (401, 403 or 404; e has the
 * message). websocket: a foreign Origin gets 403 in place of 404. open: the route
 * needs no token. */
int auth_check(const struct auth *a, const struct http_head *head, const struct arrival *from,
               int websocket, int open, struct principal *ret, struct proof *ret_proof,
               struct err *e) MUST_CHECK;

/* 1 while the proof still makes the same principal with the same role. */
int auth_holds(const struct auth *a, const struct principal *p, const struct proof *proof);
/* The same, and *p has what it may do now: limits, profiles, data. */
int auth_renew(const struct auth *a, struct principal *p, const struct proof *proof);

/* 1 when there is or may be more than one principal. */
int auth_several(const struct auth *a);

/* When the next token expires, in seconds of CLOCK_REALTIME; 0: none does. */
uint64_t auth_next_expiry(const struct auth *a);

#endif
