/*
 * front - everything that answers on the TCP port: HTTP/1.1, the Jupyter routes,
 * WebSockets. Stands on sessions.h and kernelspec.h and owns no rule of theirs.
 */
#ifndef HC_FRONT_H
#define HC_FRONT_H

#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"
#include "principals.h"

struct err;
struct front;
struct health;
struct kernelspecs;
struct loop;
struct sessions;

/* All strings are borrowed until front_stop() is done; NULL and "" both mean unset. 0 means the default. */
struct front_config {
    const char *token;      /* of the principal "default" */
    const char *principals; /* text of the file; NULL: there is none, and without a token no
                             * authentication (the Origin and Host checks stay) */
    struct principals_maxima maxima;
    const char *base_url; /* as configured, e.g. "/" or "/a%40b/"; unset: "/" */
    const char *version;  /* of GET /api */

    /* PEM texts (tlscontext.h). tls_cert NULL: plain HTTP. tls_key NULL: it stands beside the
     * certificate. tls_client_ca: clients need a certificate of it. "" is not unset here. */
    const char *tls_cert, *tls_key, *tls_client_ca;

    /* CORS: each that is set is sent as it is, on every answer. */
    const char
        *allow_origin; /* also the one foreign Origin that passes the check; "*" passes all */
    const char *allow_credentials, *allow_headers, *allow_methods, *expose_headers, *max_age;
    const char *allow_hosts;     /* comma list of further Host names for a server without a token */
    const char *trusted_proxies; /* a peer_list: whose X-Forwarded-* count (arrival.h) */

    const char *identity_header; /* by which those proxies name the principal */
    int identity_create;         /* also one that nobody knows */

    const char *access_log; /* accesslog_level_of() */
    int metrics_open;       /* /metrics asks for no token */
    struct health *health;  /* borrowed; NULL: always ready */

    int no_list_kernels; /* GET of the kernel and session lists is 403 */

    int ws_ping_set;     /* 1: ws_ping_ms counts even when it is 0 (no pings) */
    uint64_t ws_ping_ms; /* default 30 s */
    uint64_t
        ws_silence_ms; /* without a sign of life, after which a socket is given up; default three pings, at least 30 s */
    uint64_t ws_message_max; /* bytes of one message from a client; default 128 MiB */

    unsigned max_connections; /* default 4096, never more than RLIMIT_NOFILE leaves room for */
    uint64_t head_ms;         /* first byte to blank line, and accept to first byte; default 10 s */
    uint64_t body_ms; /* without a byte of an announced body; default 30 s, ten times that in all */
    uint64_t idle_ms; /* between two requests; default 75 s */
    uint64_t stall_ms; /* an answer of which the client takes nothing; default 30 s */
};

/* Starts accepting. The listening sockets stay the caller's and are to be kept open until
 * front_stop() is done. *ret is ended with front_stop(). */
int front_start(struct loop *l, struct sessions *s, struct kernelspecs *specs,
                const struct front_config *config, const int *listen_fds, unsigned listen_count,
                struct front **ret, struct err *e) MUST_CHECK;

/* Whether front_start() or front_reload() would take it; nothing is changed. starting: a
 * certificate has to be valid at this moment, which a server that runs does not ask. */
int front_check(const struct front_config *config, int starting, struct err *e) MUST_CHECK;
/* Takes over what may change while the server runs: who may ask, and the certificate of new
 * connections. Who may not ask any more loses its connections. On failure everything
 * stays as it was. */
int front_reload(struct front *f, const struct front_config *config, struct err *e) MUST_CHECK;

/*
 * Stops accepting, lets answers that are being written end (2 s at most), closes
 * WebSockets with 1012. done runs once when the last socket is closed and every
 * operation that a request began in sessions has ended; the front is freed then.
 * May be called before, after or while sessions_shutdown() runs, but `sessions`
 * must stay until done. done never runs inside this call.
 */
void front_stop(struct front *f, void (*done)(void *arg), void *arg);

#endif
