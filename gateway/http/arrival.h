/*
 * arrival - how a request came in: by which connection, and, when that is a proxy which the
 * operator trusts, from whom the proxy had it (X-Forwarded-For, -Host, -Proto). Of all
 * others these fields are ignored: everybody can send them.
 */
#ifndef HC_ARRIVAL_H
#define HC_ARRIVAL_H

#include "buf.h"
#include "peer.h"

struct http_head;

enum arrival_scheme { SCHEME_UNKNOWN, SCHEME_HTTP, SCHEME_HTTPS };

struct arrival {
    struct peer peer;           /* the other end of the connection */
    struct peer client;         /* the same, or who asked the proxies that are trusted */
    struct view host;           /* that the client asked for (borrowed from the head) */
    enum arrival_scheme scheme; /* that the client used; unknown behind proxies that do not tell */
    int trusted;                /* peer is one of the trusted proxies */
    int local;                  /* by a loopback address or a Unix socket: from this host alone */
};

/* What is known of the connection. */
struct arrival_by {
    const struct peer *peer;
    const struct peer_list *trusted;
    int local, tls;
};

void arrival_read(const struct arrival_by *by, const struct http_head *head, struct arrival *ret);

#endif
