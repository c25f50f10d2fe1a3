/*
 * server - see server.h: accepting, within limits. Above the limit an idle
 * connection gives way to the new one; when none is idle the new one is told 503.
 */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#include "auth.h"
#include "conn.h"
#include "err.h"
#include "httpconn.h"
#include "log.h"
#include "loop.h"
#include "router.h"
#include "tlscontext.h"
#include "websocket.h"

enum {
    ACCEPT_BUDGET = 64, /* in one turn */
    POLITE_REFUSALS =
        64,              /* connections beyond the limit that are told so; others are just closed */
    HANDSHAKES_PART = 4, /* of the connections may be in the middle of a TLS handshake */
    TICK_MAX_MS = 1000,
    TICK_MIN_MS = 10,
    EXPIRY_TICK_MS = 1000,
};

static uint64_t min_ms(uint64_t a, uint64_t b)
{
    return b > 0 && b < a ? b : a;
}

/* A quarter of the shortest limit: late by that at most. */
static uint64_t tick_ms(const struct server_limits *l)
{
    uint64_t ms = 4 * TICK_MAX_MS;

    ms = min_ms(min_ms(min_ms(min_ms(min_ms(ms, l->head_ms), l->body_ms), l->idle_ms), l->stall_ms),
                l->ws_ping_ms) /
         4;
    return ms < TICK_MIN_MS ? TICK_MIN_MS : ms;
}

struct server *server_new(struct loop *l, struct router *router, struct auth *auth, char *headers,
                          char *preflight, const struct server_limits *limits)
{
    struct server *s = xcalloc(1, sizeof *s);

    s->loop = l;
    s->router = router;
    s->auth = auth;
    s->tenants.shared = auth_several(auth);
    s->headers = headers;
    s->preflight = preflight;
    s->limits = *limits;
    s->spare_fd = -1;
    s->conns = conns_new(l, tick_ms(limits));
    return s;
}

static void stop_listening(struct server *s)
{
    for (unsigned i = 0; i < s->listener_count; i++)
        s->listeners[i].poll = loop_poll_close(s->listeners[i].poll);
}

struct server *server_free(struct server *s)
{
    if (s == NULL)
        return NULL;
    stop_listening(s);
    s->expiry_timer = loop_timer_close(s->expiry_timer);
    if (s->spare_fd >= 0)
        close(s->spare_fd);
    s->conns = conns_close(s->conns);
    s->router = router_free(s->router);
    s->auth = auth_free(s->auth);
    s->tls = tlscontext_free(s->tls);
    free(s->headers);
    free(s->preflight);
    free(s);
    return NULL;
}

/* No descriptor is left: the spare one makes room to take the connection off the
 * queue and close it, else it would stay there and wake us for ever. */
static void shed_connection(const struct listener *l)
{
    struct server *s = l->server;
    static struct log_limit limit;
    int fd;

    if (log_allowed(&limit, 5))
        log_warn("accept", "error=\"no file descriptor left\" connections=%u",
                 conns_count(s->conns));
    conns_evict(s->conns);
    if (s->spare_fd < 0)
        return;
    close(s->spare_fd);
    fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Handshakes cost most and prove nothing yet: whoever is in the middle of one longest
 * gives way, so that a crowd of them never keeps the next one out. */
static void bound_handshakes(struct server *s)
{
    static struct log_limit limit;

    if (conns_handshakes(s->conns) < s->limits.connections / HANDSHAKES_PART + 1)
        return;
    if (log_allowed(&limit, 5))
        log_warn("accept", "error=\"too many TLS handshakes under way\" handshakes=%u",
                 conns_handshakes(s->conns));
    conns_evict_handshake(s->conns);
}

static void take_connection(const struct listener *l, int fd)
{
    static struct log_limit limit;
    struct server *s = l->server;
    const struct tlscontext *tls = l->unix_socket ? NULL : s->tls;
    unsigned count = conns_count(s->conns);

    if (tls != NULL)
        bound_handshakes(s);
    if (count < s->limits.connections || conns_evict(s->conns)) {
        httpconn_start(l, fd);
        return;
    }
    if (log_allowed(&limit, 5))
        log_warn("accept", "error=\"too many connections\" connections=%u", count);
    if (tls == NULL && count < s->limits.connections + POLITE_REFUSALS)
        httpconn_refuse(l, fd);
    else
        close(fd);
}

static void on_accept(void *arg, int events)
{
    const struct listener *l = arg;

    (void)events;
    for (unsigned n = 0; n < ACCEPT_BUDGET; n++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            take_connection(l, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            shed_connection(l);
        else if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO)
            continue;
        return;
    }
}

static int is_loopback(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    if (a->ss_family == AF_INET6) {
        const struct in6_addr *six = &((const struct sockaddr_in6 *)a)->sin6_addr;

        return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
    }
    return 0;
}

int server_listen(struct server *s, int listen_fd, struct err *e)
{
    int flags = fcntl(listen_fd, F_GETFL);
    struct sockaddr_storage a = { 0 };
    socklen_t n = sizeof a;
    struct listener *l;

    if (flags < 0 || fcntl(listen_fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        getsockname(listen_fd, (struct sockaddr *)&a, &n) != 0)
        return err_sys(e, errno, "listening socket");
    if (s->listener_count == SERVER_LISTENERS)
        return err_set(e, E2BIG, "more than %d listening sockets", SERVER_LISTENERS);
    if (s->spare_fd < 0)
        s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    l = &s->listeners[s->listener_count++];
    *l = (struct listener){ .server = s,
                            .fd = listen_fd,
                            .unix_socket = a.ss_family == AF_UNIX,
                            .loopback = is_loopback(&a) };
    l->poll = loop_poll_start(s->loop, listen_fd, LOOP_READ, on_accept, l);
    server_recheck(s);
    return 0;
}

void server_set_tls(struct server *s, struct tlscontext *tls)
{
    tlscontext_free(s->tls);
    s->tls = tls;
}

static void stop_one(struct conn *c, void *arg)
{
    (void)arg;
    if (httpconn_is(c))
        httpconn_stop(c);
    else
        websocket_stop(c);
}

void server_stop(struct server *s)
{
    s->stopping = 1;
    stop_listening(s);
    conns_each(s->conns, stop_one, NULL);
}

static void recheck_one(struct conn *c, void *arg)
{
    (void)arg;
    if (httpconn_is(c))
        httpconn_recheck(c);
    else
        websocket_recheck(c);
}

/* Time goes on while nobody asks: what was opened with a token that expires ends then. */
static void on_expiry_tick(void *arg)
{
    struct server *s = arg;

    if ((uint64_t)time(NULL) >= s->next_expiry_s)
        server_recheck(s);
}

void server_recheck(struct server *s)
{
    s->next_expiry_s = auth_next_expiry(s->auth);
    if (s->next_expiry_s == 0)
        s->expiry_timer = loop_timer_close(s->expiry_timer);
    else if (s->expiry_timer == NULL)
        s->expiry_timer =
            loop_timer_start(s->loop, EXPIRY_TICK_MS, EXPIRY_TICK_MS, on_expiry_tick, s);
    conns_each(s->conns, recheck_one, NULL);
}

void server_change_auth(struct server *s, struct auth *auth)
{
    auth_free(s->auth);
    s->auth = auth;
    s->tenants.shared = auth_several(auth);
    server_recheck(s);
}

/* ---- output that nobody takes ---- */

/* Less than that is bounded by the connection's own limit; and so much more there may be of all
 * queues before they are counted again: to go over thousands of connections for each frame would
 * hold up everybody. */
enum { OUTPUT_SMALL = 64 * 1024 };

struct output {
    const struct tenant *of;
    size_t own, all;
};

static const struct tenant *tenant_of(const struct conn *c)
{
    return httpconn_is(c) ? httpconn_tenant(c) : websocket_tenant(c);
}

static void add_output(struct conn *c, void *arg)
{
    struct output *o = arg;
    size_t n = conn_queued(c);

    o->all += n;
    if (n > 0 && tenant_of(c) == o->of)
        o->own += n;
}

int server_bound_output(struct server *s, struct conn *c)
{
    static struct log_limit limit;

    if (conn_queued(c) < OUTPUT_SMALL || conn_ended(c))
        return 0;
    s->output_grown += conn_grown(c);
    if (s->output_grown < OUTPUT_SMALL)
        return 0;
    struct output o = { .of = tenant_of(c) };
    conns_each(s->conns, add_output, &o);
    if (tenant_share(s->tenants.shared, o.own, o.all, 0, s->limits.output)) {
        s->output_grown = 0;
        return 0;
    }
    if (log_allowed(&limit, 5))
        log_warn("answers_not_taken", "bytes=%zu of=%zu note=\"a connection is closed for it\"",
                 o.own, o.all);
    conn_abort(c);
    return 1;
}

static void abort_one(struct conn *c, void *arg)
{
    (void)arg;
    conn_abort(c);
}

void server_abort(struct server *s)
{
    conns_each(s->conns, abort_one, NULL);
}

unsigned server_connections(const struct server *s)
{
    return conns_count(s->conns);
}

const char *server_date(void)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    static char text[40];
    static time_t last = -1;
    time_t now = time(NULL);
    struct tm tm;

    if (now != last && gmtime_r(&now, &tm) != NULL) {
        snprintf(text, sizeof text, "%.3s, %02d %.3s %d %02d:%02d:%02d GMT", days + 3 * tm.tm_wday,
                 tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
                 tm.tm_sec);
        last = now;
    }
    return text;
}
