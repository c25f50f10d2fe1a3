/*
 * tenants - what each principal holds at this moment of what all connections share. While
 * several share, nobody may hold more than is left free: alone that is half, of two a
 * third each, and one more always finds room.
 */
#ifndef HC_TENANTS_H
#define HC_TENANTS_H

#include <stddef.h>

#include "principal.h"

enum tenant_good {
    TENANT_CONNECTIONS, /* with a request that is not answered, and WebSockets */
    TENANT_BODIES,      /* bytes of request bodies that are being received */
    TENANT_MESSAGES,    /* the same of WebSocket messages */
    TENANT_GOODS,
};

struct tenant;

struct tenants {
    struct tenant *first;     /* owned list: those with connections */
    size_t all[TENANT_GOODS]; /* of all of them */
    int shared;               /* 0: there is one principal, who may have everything */
};

/* The one of that name, "" for those without one; it stays until tenant_drop(). */
struct tenant *tenant_hold(struct tenants *t, const char *name);
struct tenant *tenant_hold_same(struct tenant *n);
int tenant_named(const struct tenant *n); /* 0: of NULL, and of "" */
/* Accepts NULL, returns NULL. What it took has to be given back before. */
struct tenant *tenant_drop(struct tenant *n);

void tenant_take(struct tenant *n, enum tenant_good good, size_t amount);
void tenant_give(struct tenant *n, enum tenant_good good, size_t amount);
/* 1 when it may have that much more where all may have max. */
int tenant_may(const struct tenant *n, enum tenant_good good, size_t amount, size_t max);
/* The rule by itself. */
int tenant_share(int shared, size_t own, size_t all, size_t amount, size_t max);

#endif
