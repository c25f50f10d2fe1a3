#include "accesslog.h"

#include <string.h>

#include "audit.h"
#include "err.h"
#include "httpconn.h"
#include "httphead.h"
#include "httpurl.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "origin.h"
#include "server.h"

enum {
    PATH_MAX_LOGGED = 512,
    ANONYMOUS_PER_MINUTE = 600, /* lines that somebody without a token can cause */
};

enum accesslog_level accesslog_level_of(const char *name)
{
    if (name == NULL || strcmp(name, "auto") == 0)
        return ACCESSLOG_AUTO;
    if (strcmp(name, "off") == 0)
        return ACCESSLOG_OFF;
    return strcmp(name, "debug") == 0 ? ACCESSLOG_DEBUG : ACCESSLOG_INFO;
}

static int only_reads(const struct http_head *head)
{
    return head != NULL && (view_equals(head->method, "GET") || view_equals(head->method, "HEAD") ||
                            view_equals(head->method, "OPTIONS"));
}

/* 0 when no line is to be written. */
static int level_of(const struct httpconn *h, int status, enum logline_level *ret)
{
    static struct log_limit limit;
    enum accesslog_level access = h->server->access;

    if (access == ACCESSLOG_AUTO)
        access = status >= 500 || status == 401 || status == 403 || !only_reads(h->request.head)
                     ? ACCESSLOG_INFO
                     : ACCESSLOG_DEBUG;
    *ret = access == ACCESSLOG_INFO ? LOGLINE_INFO : LOGLINE_DEBUG;
    return access != ACCESSLOG_OFF && log_enabled(*ret) &&
           (h->request.origin->principal[0] != '\0' || log_allowed(&limit, ANONYMOUS_PER_MINUTE));
}

static const char *pattern_of(const struct httpconn *h)
{
    return h->match.route != NULL ? h->match.route->pattern : "";
}

static void count(const struct httpconn *h, int status, uint64_t took_us)
{
    unsigned route = metrics_route(pattern_of(h));
    unsigned method =
        h->request.head != NULL ? metrics_method(h->request.head->method) : METRIC_OTHER;

    check(status >= 100 && status < 600);
    metrics_add(METRIC_HTTP_REQUESTS, route, method, (unsigned)status / 100 - 1, 1);
    metrics_observe(METRIC_HTTP_TIME, route, took_us);
}

/* A line for each up to a bound, since anybody can fail; the next one tells how many had none. */
static void audit_login(const struct httpconn *h, int given)
{
    static uint64_t minute, lines, held;
    uint64_t now = clock_monotonic_us() / 60000000;
    struct auditline l;

    if (!audit_on())
        return;
    if (now != minute) {
        minute = now;
        lines = 0;
    }
    if (lines++ >= ANONYMOUS_PER_MINUTE) {
        held++;
        return;
    }
    audit_begin(&l, "login_failure", "", h->request.origin);
    auditline_string(&l, "reason", given ? "wrong_token" : "no_token");
    auditline_string(&l, "route", pattern_of(h));
    if (held > 0)
        auditline_uint(&l, "without_a_line", held);
    held = 0;
    audit_note(&l);
}

static void count_login(const struct httpconn *h)
{
    const struct http_head *head = h->request.head;
    struct view raw;
    int given = head != NULL && (http_value(head, "authorization").n > 0 ||
                                 http_query_find(head->query, "token", &raw) > 0);

    audit_login(h, given);
    metrics_count(METRIC_LOGIN_FAILURES, given ? METRIC_WRONG_TOKEN : METRIC_NO_TOKEN);
}

static struct view bounded(struct view v, size_t max)
{
    return (struct view){ v.p, v.n < max ? v.n : max };
}

static void add_who(struct logline *l, const struct origin *o)
{
    logline_string(l, "principal", view_cstr(o->principal));
    logline_string(l, "peer", view_cstr(o->peer));
}

void accesslog_answered(const struct httpconn *h, int status, size_t bytes)
{
    const struct http_head *head = h->request.head;
    uint64_t took_us = h->began_us != 0 ? clock_monotonic_us() - h->began_us : 0;
    enum logline_level level;
    struct logline l;

    count(h, status, took_us);
    if (status == 401)
        count_login(h);
    if (!level_of(h, status, &level))
        return;
    log_begin(&l, level, "request");
    if (head != NULL) {
        logline_string(&l, "method", head->method);
        logline_string(&l, "route", view_cstr(pattern_of(h)));
        logline_string(&l, "path", bounded(head->path, PATH_MAX_LOGGED));
    }
    logline_uint(&l, "status", (uint64_t)status);
    logline_uint(&l, "bytes", bytes);
    logline_uint(&l, "duration_us", took_us);
    add_who(&l, h->request.origin);
    origin_fields(h->request.origin, &l);
    log_end(&l);
}

/* ---- WebSockets ---- */

static int socket_enabled(const struct accesslog_socket *s, enum logline_level *ret)
{
    *ret = s->level == ACCESSLOG_DEBUG ? LOGLINE_DEBUG : LOGLINE_INFO;
    return s->origin != NULL && s->level != ACCESSLOG_OFF && log_enabled(*ret);
}

void accesslog_opened(const struct httpconn *h, struct accesslog_socket *s)
{
    enum logline_level level;
    struct logline l;

    *s = (struct accesslog_socket){
        .origin = origin_hold(h->request.origin),
        .path = view_dup(bounded(h->request.head->path, PATH_MAX_LOGGED)),
        .level = h->server->access,
        .opened_us = clock_monotonic_us(),
    };
    count(h, 101, s->opened_us - h->began_us);
    metrics_count(METRIC_WEBSOCKETS_OPENED, 0);
    if (!socket_enabled(s, &level))
        return;
    log_begin(&l, level, "websocket_opened");
    logline_string(&l, "route", view_cstr(h->match.route->pattern));
    logline_string(&l, "path", view_cstr(s->path));
    add_who(&l, s->origin);
    origin_fields(s->origin, &l);
    log_end(&l);
}

void accesslog_closing(struct accesslog_socket *s, const char *by, int code)
{
    if (s->by != NULL)
        return;
    s->by = by;
    s->code = code;
}

void accesslog_closed(struct accesslog_socket *s)
{
    enum logline_level level;
    struct logline l;

    if (s->by == NULL)
        accesslog_closing(s, "client", ACCESSLOG_NO_HANDSHAKE);
    if (socket_enabled(s, &level)) {
        log_begin(&l, level, "websocket_closed");
        logline_string(&l, "path", view_cstr(s->path));
        logline_uint(&l, "code", (uint64_t)s->code);
        logline_string(&l, "by", view_cstr(s->by));
        logline_uint(&l, "messages_in", s->messages_in);
        logline_uint(&l, "messages_out", s->messages_out);
        logline_uint(&l, "bytes_in", s->bytes_in);
        logline_uint(&l, "bytes_out", s->bytes_out);
        logline_uint(&l, "duration_us", clock_monotonic_us() - s->opened_us);
        add_who(&l, s->origin);
        origin_fields(s->origin, &l);
        log_end(&l);
    }
    s->origin = origin_drop(s->origin);
    free(s->path);
    s->path = NULL;
}
