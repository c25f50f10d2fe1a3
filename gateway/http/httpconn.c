/*
 * httpconn - see httpconn.h. One request at a time: while a handler works,
 * nothing is read, so that what a client pipelines is bounded by one read; while
 * the client does not take its answers, no further request is looked at.
 */
#include "httpconn.h"

#include "auth.h"
#include "err.h"
#include "gate.h"
#include "httphead.h"
#include "httpparse.h"
#include "peer.h"
#include "router.h"
#include "server.h"
#include "waiting.h"

enum {
    BODY_TOTAL = 10,      /* times the limit between two bytes: the limit of a whole body */
    HEAD_GRACE_MS = 2000, /* a head that takes longer may be given up for a new connection */
};

/* Small, since anybody can hold them: without a token, thousands at a time. */
static const struct conn_limits conn_limits = { .output = 32 * 1024, .input = 16 * 1024 };

static uint64_t now_ms(const struct httpconn *h)
{
    return loop_now_ms(h->server->loop);
}

static void body_release(struct httpconn *h)
{
    if (h->tenant != NULL)
        tenant_give(h->tenant, TENANT_BODIES, buf_len(&h->body));
    buf_release(&h->body);
}

/* One more connection that cannot give way to a new one. */
static int tenant_enter(struct httpconn *h, const char *name)
{
    struct server *s = h->server;
    struct tenant *n = tenant_hold(&s->tenants, name);

    if (!tenant_may(n, TENANT_CONNECTIONS, 1, s->limits.connections) && s->tenants.shared) {
        tenant_drop(n);
        return 0;
    }
    tenant_take(n, TENANT_CONNECTIONS, 1);
    h->tenant = n;
    return 1;
}

static void tenant_leave(struct httpconn *h)
{
    if (h->tenant != NULL)
        tenant_give(h->tenant, TENANT_CONNECTIONS, 1);
    h->tenant = tenant_drop(h->tenant);
}

static void await_head(struct httpconn *h)
{
    waiting_remove(h);
    body_release(h);
    route_match_clear(&h->match);
    httpparse_reset(h->parse);
    h->request.head = NULL;
    h->request.origin = origin_drop(h->request.origin);
    h->began_us = 0;
    h->state = HTTPCONN_HEAD;
    h->started = 0;
    h->minor = 1;
    h->head_only = 0;
    h->since_ms = now_ms(h);
}

void httpconn_answered(struct httpconn *h, int close)
{
    await_head(h);
    if (close) {
        h->state = HTTPCONN_OVER;
        conn_finish(h->conn);
        return;
    }
    h->draining = !conn_writable(h->conn);
    if (h->draining) {
        conn_pause(h->conn);
        return;
    }
    tenant_leave(h);
    conn_resume(h->conn);
}

/* ---- a request ------------------------------------------------------------ */

/* In the list before the handler runs: what it begins may end within its call. */
static void dispatch(struct httpconn *h)
{
    uint64_t token = h->request.token;
    struct origin *own = origin_hold(h->request.origin), *before;

    h->request.body = buf_view(&h->body);
    h->request.params = h->match.params;
    h->state = HTTPCONN_HANDLER;
    waiting_add(h);
    before = origin_enter(own);
    h->match.route->handler(&h->request, h->match.arg);
    origin_enter(before);
    origin_drop(own);
    if (h->state == HTTPCONN_HANDLER && h->request.token == token)
        conn_pause(h->conn);
}

static void start_body(struct httpconn *h, const struct http_head *head)
{
    h->state = HTTPCONN_BODY;
    h->since_ms = h->progress_ms = now_ms(h);
    h->body_left = head->length;
    httpchunk_init(&h->chunk, h->match.route->body_max);
    if (head->expect_continue) {
        struct view go = VIEW_STR("HTTP/1.1 100 Continue\r\n\r\n");

        conn_write(h->conn, &go, 1);
    }
}

static struct origin *origin_of(struct httpconn *h, const struct http_head *head)
{
    const struct listener *l = h->listener;
    const struct arrival_by by = {
        .peer = &h->peer,
        .trusted = &h->server->trusted,
        .local = l->unix_socket || l->loopback,
        .tls = !l->unix_socket && h->server->tls != NULL,
    };
    char text[PEER_TEXT];

    arrival_read(&by, head, &h->arrival);
    return origin_of_request(head, peer_text(&h->arrival.client, text));
}

static void head_complete(struct httpconn *h)
{
    const struct http_head *head = httpparse_head(h->parse);
    struct err e = { 0 };
    int status, options;

    h->request.head = head;
    h->request.token = ++h->server->next_token;
    h->request.origin = origin_of(h, head);
    h->began_us = clock_monotonic_us();
    h->keep = head->keep_alive != 0;
    h->minor = head->minor == 1;
    h->head_only = view_equals(head->method, "HEAD");
    options = view_equals(head->method, "OPTIONS");
    status = gate_admit(h, head, &e);
    if (status == 0 && !options && !tenant_enter(h, h->request.principal.name)) {
        err_set(&e, HC_ELIMIT, "too many requests and WebSockets of one principal at once");
        status = 503;
    }
    if (status != 0 || options) {
        if (head->body != HTTP_BODY_NONE)
            h->keep = 0; /* the body is not read: nothing behind it can be found */
        if (status != 0)
            request_error(&h->request, status, "%s", e.msg);
        else
            request_answer(&h->request,
                           &(struct answer){ .status = 200, .headers = h->server->preflight });
        return;
    }
    if (head->body == HTTP_BODY_NONE)
        dispatch(h);
    else
        start_body(h, head);
}

/* What cannot go on: an answer, and the end of the connection. */
static void refuse(struct httpconn *h, int status, const char *message)
{
    h->keep = 0;
    if (h->request.origin == NULL)
        h->request.origin = origin_of(h, NULL);
    request_error(&h->request, status, "%s", message);
}

static size_t feed_head(struct httpconn *h, struct view in)
{
    struct err e = { 0 };
    size_t used;
    int rc = httpparse_feed(h->parse, in.p, in.n, &used, &e);

    if (rc < 0) {
        refuse(h, httpparse_status(h->parse), e.msg);
        return in.n;
    }
    if (!h->started) {
        h->started = 1;
        h->since_ms = now_ms(h);
    }
    if (rc > 0)
        head_complete(h);
    return used;
}

/* 0, or the status to answer with. */
static int keep_body(struct httpconn *h, struct view data)
{
    struct server *s = h->server;

    if (!tenant_may(h->tenant, TENANT_BODIES, data.n, s->limits.bodies) ||
        buf_add_view(&h->body, data) != 0)
        return 503;
    tenant_take(h->tenant, TENANT_BODIES, data.n);
    return 0;
}

static size_t feed_body(struct httpconn *h, struct view in)
{
    struct view data = { in.p, in.n < h->body_left ? in.n : (size_t)h->body_left };
    size_t used = data.n;
    struct err e = { 0 };
    int done;

    h->progress_ms = now_ms(h);
    if (h->request.head->body == HTTP_BODY_CHUNKED) {
        done = httpchunk_feed(&h->chunk, in.p, in.n, &used, &data, &e);
        if (done < 0) {
            refuse(h, httpchunk_status(&h->chunk), e.msg);
            return in.n;
        }
    } else {
        h->body_left -= used;
        done = h->body_left == 0;
    }
    if (keep_body(h, data) != 0) {
        refuse(h, 503, "the server holds too many request bodies");
        return in.n;
    }
    if (done)
        dispatch(h);
    return used;
}

/* ---- the connection ------------------------------------------------------- */

static void free_httpconn(struct httpconn *h)
{
    waiting_remove(h);
    body_release(h);
    tenant_leave(h);
    route_match_clear(&h->match);
    h->request.origin = origin_drop(h->request.origin);
    h->parse = httpparse_free(h->parse);
    free(h);
}

static size_t on_data(void *arg, struct view in)
{
    struct httpconn *h = arg;
    size_t used;

    check(h->state == HTTPCONN_HEAD || h->state == HTTPCONN_BODY);
    h->in_data = 1;
    used = h->state == HTTPCONN_HEAD ? feed_head(h, in) : feed_body(h, in);
    h->in_data = 0;
    if (h->upgraded)
        free_httpconn(h);
    return used;
}

/* A handler that had to wait left the connection paused, perhaps with frames that
 * came behind the request. */
void httpconn_upgraded(struct httpconn *h)
{
    struct conn *c = h->conn;

    h->upgraded = 1;
    h->state = HTTPCONN_OVER;
    if (h->in_data)
        return;
    free_httpconn(h);
    conn_resume(c);
}

/* The client may only have closed its sending side: what was asked is answered,
 * since this comes after the input in order. */
static void on_eof(void *arg)
{
    struct httpconn *h = arg;

    conn_finish(h->conn);
}

static void on_drained(void *arg)
{
    struct httpconn *h = arg;

    if (!h->draining)
        return;
    h->draining = 0;
    tenant_leave(h);
    h->since_ms = now_ms(h);
    conn_resume(h->conn);
}

/* Answers that wait, but for no socket: no event and no clock of the connection would end it. */
static int stuck(const struct httpconn *h, uint64_t now)
{
    return h->draining && !conn_blocked(h->conn) && conn_queued(h->conn) > 0 &&
           now - h->since_ms >= h->server->limits.stall_ms;
}

static void on_tick(void *arg, uint64_t now)
{
    struct httpconn *h = arg;
    const struct server_limits *l = &h->server->limits;

    if (h->state == HTTPCONN_HEAD && !h->draining) {
        /* A new connection has to ask soon; one that has asked may rest. */
        int fresh = h->request.token == 0;

        if (h->started && now - h->since_ms >= l->head_ms)
            refuse(h, 408, "the request did not come in time");
        else if (!h->started && now - h->since_ms >= (fresh ? l->head_ms : l->idle_ms))
            conn_finish(h->conn);
    } else if (h->state == HTTPCONN_HEAD && stuck(h, now)) {
        conn_abort(h->conn);
    } else if (h->state == HTTPCONN_BODY && (now - h->progress_ms >= l->body_ms ||
                                             now - h->since_ms >= BODY_TOTAL * l->body_ms)) {
        refuse(h, 408, "the body of the request did not come in time");
    }
}

static int on_idle(void *arg)
{
    struct httpconn *h = arg;

    return h->state == HTTPCONN_HEAD && conn_queued(h->conn) == 0 &&
           (!h->started || now_ms(h) - h->since_ms > HEAD_GRACE_MS);
}

/* A request that is being worked on is never in the way; an answer is counted until it is
 * taken, if its request needed a token. */
static int on_counted(void *arg)
{
    const struct httpconn *h = arg;

    return (h->state != HTTPCONN_HEAD && h->state != HTTPCONN_OVER) || tenant_named(h->tenant);
}

static void on_closed(void *arg)
{
    free_httpconn(arg);
}

static const struct conn_ops ops = {
    .data = on_data,
    .eof = on_eof,
    .drained = on_drained,
    .tick = on_tick,
    .idle = on_idle,
    .counted = on_counted,
    .closed = on_closed,
};

static struct httpconn *httpconn_new(const struct listener *l, int fd)
{
    struct httpconn *h = xcalloc(1, sizeof *h);
    struct server *s = l->server;

    h->conn = conn_new(s->conns, fd, l->unix_socket ? NULL : s->tls, &conn_limits, &ops, h);
    if (h->conn == NULL) {
        free(h);
        return NULL;
    }
    h->server = h->request.server = s;
    h->peer = peer_of_socket(fd);
    h->listener = l;
    h->parse = httpparse_new(NULL);
    h->minor = 1;
    buf_init(&h->body, SIZE_MAX / 2); /* bounded by route and server */
    route_match_init(&h->match);
    conn_set_stall(h->conn, s->limits.stall_ms);
    h->since_ms = now_ms(h);
    return h;
}

void httpconn_start(const struct listener *l, int fd)
{
    (void)httpconn_new(l, fd);
}

void httpconn_refuse(const struct listener *l, int fd)
{
    struct httpconn *h = httpconn_new(l, fd);

    if (h != NULL)
        refuse(h, 503, "the server has too many connections");
}

int httpconn_is(const struct conn *c)
{
    return conn_ops(c) == &ops;
}

const struct tenant *httpconn_tenant(const struct conn *c)
{
    const struct httpconn *h = conn_arg(c);

    return h->tenant;
}

void httpconn_recheck(struct conn *c)
{
    struct httpconn *h = conn_arg(c);
    const struct auth *auth = h->server->auth;
    int holds = 1;

    /* A handler has the principal in use; what is yet to be handled is handled as of now. */
    if (h->state == HTTPCONN_BODY)
        holds = auth_renew(auth, &h->request.principal, &h->request.proof);
    else if (h->state == HTTPCONN_HANDLER)
        holds = auth_holds(auth, &h->request.principal, &h->request.proof);
    if (!holds)
        refuse(h, 401, "a valid token is needed");
}

void httpconn_stop(struct conn *c)
{
    struct httpconn *h = conn_arg(c);

    if (h->state == HTTPCONN_HEAD)
        conn_finish(c);
}
