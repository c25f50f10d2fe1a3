/* front - see front.h: puts the server together from the settings, and ends it. */
#include "front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "auth.h"
#include "buf.h"
#include "err.h"
#include "httpurl.h"
#include "jupyter.h"
#include "log.h"
#include "loop.h"
#include "nbsessions.h"
#include "probes.h"
#include "router.h"
#include "server.h"
#include "sessions.h"
#include "tlscontext.h"

enum {
    HEADERS_MAX = 16 * 1024,
    FD_RESERVE = 256, /* descriptors for everything that is no connection */
    STOP_TICK_MS = 10,
    STOP_ABORT_MS = 2500, /* then what has not closed is closed */
    DEFAULT_CONNECTIONS = 4096,
};

#define DEFAULT_WS_MESSAGE ((size_t)128 << 20)
#define BODIES_MAX         ((size_t)64 << 20)
#define OUTPUT_MAX         ((size_t)512 << 20)

struct front {
    struct loop *loop; /* borrowed */
    struct server *server;
    struct jupyter jupyter;
    struct probes probes;
    struct loop_timer *stop_timer;
    uint64_t stopped_ms;
    void (*done)(void *arg);
    void *done_arg;
};

static const char *set(const char *s)
{
    return s != NULL && s[0] != '\0' ? s : NULL;
}

static uint64_t or_default(uint64_t value, uint64_t fallback)
{
    return value != 0 ? value : fallback;
}

/* ---- what every answer carries -------------------------------------------- */

/* A value with a line break would be a header of its own. */
static int add_header(struct buf *b, const char *name, const char *value, struct err *e)
{
    if (set(value) == NULL)
        return 0;
    for (const char *p = value; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return err_set(e, EINVAL, "the value of %s has a control character", name);
    if (buf_addf(b, "%s: %s\r\n", name, value) != 0)
        return err_set(e, EINVAL, "the value of %s is too long", name);
    return 0;
}

static int common_headers(const struct front_config *c, char **ret, struct err *e)
{
    autobuf struct buf b;
    int rc;

    buf_init(&b, HEADERS_MAX);
    if ((rc = add_header(&b, "X-Content-Type-Options", "nosniff", e)) != 0 ||
        (rc = add_header(&b, "Content-Security-Policy",
                         "frame-ancestors 'self'; default-src 'none'", e)) != 0 ||
        (rc = add_header(&b, "Access-Control-Allow-Origin", c->allow_origin, e)) != 0 ||
        (rc = add_header(&b, "Access-Control-Allow-Credentials", c->allow_credentials, e)) != 0 ||
        (rc = add_header(&b, "Access-Control-Allow-Headers", c->allow_headers, e)) != 0 ||
        (rc = add_header(&b, "Access-Control-Allow-Methods", c->allow_methods, e)) != 0 ||
        (rc = add_header(&b, "Access-Control-Expose-Headers", c->expose_headers, e)) != 0 ||
        (rc = add_header(&b, "Access-Control-Max-Age", c->max_age, e)) != 0)
        return rc;
    *ret = view_dup(buf_view(&b));
    return 0;
}

/* Who opens the server to an origin and says no more means what clients need. */
static int preflight_headers(const struct front_config *c, char **ret, struct err *e)
{
    int open = set(c->allow_origin) != NULL;
    autobuf struct buf b;
    int rc;

    buf_init(&b, HEADERS_MAX);
    if (open && set(c->allow_headers) == NULL &&
        (rc = add_header(&b, "Access-Control-Allow-Headers", "accept, content-type, authorization",
                         e)) != 0)
        return rc;
    if (open && set(c->allow_methods) == NULL &&
        (rc = add_header(&b, "Access-Control-Allow-Methods",
                         "GET, PUT, POST, PATCH, DELETE, OPTIONS", e)) != 0)
        return rc;
    *ret = buf_len(&b) > 0 ? view_dup(buf_view(&b)) : xstrdup("");
    return 0;
}

/* ---- settings ------------------------------------------------------------- */

static unsigned connection_limit(unsigned asked)
{
    struct rlimit limit;
    unsigned want = asked != 0 ? asked : DEFAULT_CONNECTIONS;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return want;
    if (limit.rlim_cur <= 2 * FD_RESERVE)
        return want < limit.rlim_cur / 2 ? want : (unsigned)(limit.rlim_cur / 2);
    return want < limit.rlim_cur - FD_RESERVE ? want : (unsigned)(limit.rlim_cur - FD_RESERVE);
}

static struct server_limits limits_of(const struct front_config *c)
{
    struct server_limits l = {
        .connections = connection_limit(c->max_connections),
        .head_ms = or_default(c->head_ms, 10000),
        .body_ms = or_default(c->body_ms, 30000),
        .idle_ms = or_default(c->idle_ms, 75000),
        .stall_ms = or_default(c->stall_ms, 30000),
        .ws_ping_ms = c->ws_ping_set ? c->ws_ping_ms : or_default(c->ws_ping_ms, 30000),
        .ws_message = (size_t)or_default(c->ws_message_max, DEFAULT_WS_MESSAGE),
        .bodies = BODIES_MAX,
    };

    l.ws_silence_ms = 3 * l.ws_ping_ms > 30000 ? 3 * l.ws_ping_ms : 30000;
    l.ws_silence_ms = or_default(c->ws_silence_ms, l.ws_silence_ms);
    l.ws_messages = 4 * l.ws_message;
    l.output = OUTPUT_MAX;
    return l;
}

static int base_url_of(const struct front_config *c, const char **ret, struct err *e)
{
    const char *base = set(c->base_url) != NULL ? c->base_url : "/";

    if (base[0] != '/' || strpbrk(base, "?# \r\n") != NULL || !http_percent_valid(view_cstr(base)))
        return err_set(e, EINVAL, "'%s' is no base URL: it begins with '/'", base);
    *ret = base;
    return 0;
}

/* ---- life ----------------------------------------------------------------- */

static int auth_of(const struct front_config *config, struct auth **ret, struct err *e)
{
    const struct auth_config c = {
        .token = set(config->token),
        .principals = config->principals,
        .maxima = config->maxima,
        .open = set(config->token) == NULL && config->principals == NULL,
        .allow_origin = config->allow_origin,
        .allow_hosts = config->allow_hosts,
        .identity_header = set(config->identity_header),
        .identity_create = config->identity_create,
    };

    return auth_new(&c, ret, e);
}

static int trusted_of(const struct front_config *c, struct peer_list *ret, struct err *e)
{
    int rc = peer_list_parse(c->trusted_proxies, ret, e);

    return rc < 0 ? err_wrap(e, "option --trusted-proxy") : 0;
}

static int server_of(struct front *f, const struct front_config *config, const char *base,
                     struct err *e)
{
    autofree char *headers = NULL, *preflight = NULL;
    struct server_limits limits = limits_of(config);
    struct auth *auth = NULL;
    struct peer_list trusted;
    int rc;

    if ((rc = trusted_of(config, &trusted, e)) != 0 ||
        (rc = common_headers(config, &headers, e)) != 0 ||
        (rc = preflight_headers(config, &preflight, e)) != 0 ||
        (rc = auth_of(config, &auth, e)) != 0)
        return rc;
    f->server = server_new(f->loop, router_new(base), auth, take_ptr(headers), take_ptr(preflight),
                           &limits);
    f->server->trusted = trusted;
    f->server->access = accesslog_level_of(config->access_log);
    return 0;
}

/* *ret NULL: no TLS. Caller owns it. */
static int tls_of(const struct front_config *c, struct tlscontext **ret, struct err *e)
{
    /* An empty text is an empty file: an error, and never a server without TLS. */
    const struct tlscontext_config config = {
        .cert = c->tls_cert,
        .key = c->tls_key,
        .client_ca = c->tls_client_ca,
    };

    *ret = NULL;
    return config.cert != NULL ? tlscontext_new(&config, ret, e) : 0;
}

static void restore_notebooks(void *arg, const struct principal *owner, struct kernel *k)
{
    struct jupyter *j = arg;

    nbsessions_restore(j->notebooks, owner, k);
}

static void free_front(struct front *f)
{
    f->server = server_free(f->server);
    f->jupyter.notebooks = nbsessions_free(f->jupyter.notebooks);
    free(f->jupyter.document[0]);
    free(f->jupyter.document[1]);
    free(f);
}

int front_start(struct loop *l, struct sessions *s, struct kernelspecs *specs,
                const struct front_config *config, const int *listen_fds, unsigned listen_count,
                struct front **ret, struct err *e)
{
    struct front *f = xcalloc(1, sizeof *f);
    const char *base = NULL;
    struct tlscontext *tls = NULL;
    int rc;

    f->loop = l;
    if ((rc = base_url_of(config, &base, e)) != 0 || (rc = tls_of(config, &tls, e)) != 0 ||
        (rc = server_of(f, config, base, e)) != 0) {
        tlscontext_free(tls);
        free(f);
        return rc;
    }
    f->jupyter = (struct jupyter){
        .server = f->server,
        .sessions = s,
        .specs = specs,
        .notebooks = nbsessions_new(),
        .base = router_base(f->server->router),
        .version = set(config->version) != NULL ? config->version : "0",
        .list_kernels = !config->no_list_kernels,
        .started_us = clock_realtime_us(),
    };
    sessions_each_kernel(s, restore_notebooks, &f->jupyter);
    router_add(f->server->router, jupyter_routes, jupyter_route_count, &f->jupyter);
    server_set_tls(f->server, tls);
    f->probes = (struct probes){ .server = f->server, .sessions = s, .health = config->health };
    probes_add(f->server->router, &f->probes, config->metrics_open);
    for (unsigned i = 0; i < listen_count && rc == 0; i++)
        rc = server_listen(f->server, listen_fds[i], e);
    if (rc != 0) {
        free_front(f);
        return rc;
    }
    *ret = f;
    return 0;
}

int front_check(const struct front_config *config, int starting, struct err *e)
{
    autofree char *headers = NULL, *preflight = NULL;
    const char *base;
    struct auth *auth = NULL;
    struct tlscontext *tls = NULL;
    struct peer_list trusted;
    int rc;

    if ((rc = base_url_of(config, &base, e)) != 0 || (rc = trusted_of(config, &trusted, e)) != 0 ||
        (rc = common_headers(config, &headers, e)) != 0 ||
        (rc = preflight_headers(config, &preflight, e)) != 0 ||
        (rc = auth_of(config, &auth, e)) != 0)
        return rc;
    auth_free(auth);
    rc = tls_of(config, &tls, e);
    if (rc == 0 && tls != NULL && starting)
        rc = tlscontext_check_dates(tls, e);
    tlscontext_free(tls);
    return rc;
}

/* A certificate that is no good at this moment does not take the place of one that may be;
 * nor does it hold up the rest of the settings, which may lock somebody out. */
static void change_tls(struct front *f, struct tlscontext *tls)
{
    struct err e = { 0 };

    if (tls == NULL)
        return;
    if (tlscontext_check_dates(tls, &e) == 0) {
        server_set_tls(f->server, tls);
        return;
    }
    log_error("tls_not_taken", "error=%s note=\"new connections get the certificate of before\"",
              LOG_QUOTED(e.msg));
    tlscontext_free(tls);
}

int front_reload(struct front *f, const struct front_config *config, struct err *e)
{
    struct auth *auth = NULL;
    struct tlscontext *tls = NULL;
    int rc = tls_of(config, &tls, e);

    if (rc == 0)
        rc = auth_of(config, &auth, e);
    if (rc < 0) {
        tlscontext_free(tls);
        return rc;
    }
    server_change_auth(f->server, auth);
    change_tls(f, tls);
    return 0;
}

static void on_stop_tick(void *arg)
{
    struct front *f = arg;
    void (*done)(void *arg) = f->done;
    void *done_arg = f->done_arg;

    if (loop_now_ms(f->loop) - f->stopped_ms >= STOP_ABORT_MS)
        server_abort(f->server);
    if (server_connections(f->server) > 0 || f->jupyter.calls > 0)
        return;
    f->stop_timer = loop_timer_close(f->stop_timer);
    free_front(f);
    done(done_arg);
}

void front_stop(struct front *f, void (*done)(void *arg), void *arg)
{
    check(f->done == NULL);
    f->done = done;
    f->done_arg = arg;
    f->stopped_ms = loop_now_ms(f->loop);
    server_stop(f->server);
    f->stop_timer = loop_timer_start(f->loop, 0, STOP_TICK_MS, on_stop_tick, f);
}
