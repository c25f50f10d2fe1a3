/*
 * channels - the WebSocket /api/kernels/ID/channels: one client of a kernel. Pulls
 * the kernel's events while the socket takes them, so that a slow client only
 * lags; stops reading the socket while the kernel's queue is full.
 */
#include <errno.h>
#include <string.h>

#include "client.h"
#include "conn.h"
#include "deferred.h"
#include "err.h"
#include "httphead.h"
#include "httpurl.h"
#include "jmsg.h"
#include "jupyter.h"
#include "kernel.h"
#include "log.h"
#include "metrics.h"
#include "origin.h"
#include "pending.h"
#include "request.h"
#include "server.h"
#include "timestamp.h"
#include "websocket.h"
#include "wschannel.h"
#include "wshandshake.h"

enum {
    SESSION_ID_MAX = 1024,  /* bytes of the session_id parameter */
    FRAME_KEEP = 64 * 1024, /* a longer message's buffers are given back */
    PROXY_MAX = 10 << 20,   /* what jupyter_server's gateway client accepts (T4) */
    PULL_BUDGET = 64,       /* events for one socket in one turn */
};

struct channels {
    struct conns *conns;       /* borrowed */
    struct deferred *deferred; /* borrowed */
    int observer;              /* who opened it only reads */
    struct websocket *ws;      /* NULL until the 101 is written, and after its end */
    struct client *client;     /* NULL after client_detach() */
    struct deferred_node pull;
    enum wschannel_framing framing;
    struct wschannel_frame frame; /* for what is sent */
    struct wschannel_in in;       /* for what comes */
};

/* ---- kernel to client ----------------------------------------------------- */

static void send_event(struct channels *c, const struct client_event *ev)
{
    static struct log_limit limit, large;
    struct jmsg m = { .buffers = ev->buffers, .buffer_count = (unsigned)ev->buffer_count };
    char date[TIMESTAMP_TEXT];
    struct err e = { 0 };

    m.header = ev->header;
    m.parent_header = ev->parent_header;
    m.metadata = ev->metadata;
    m.content = ev->content;
    timestamp_format(clock_realtime_us(), date);
    if (wschannel_encode(&c->frame, c->framing, (enum jmsg_channel)ev->channel, &m, date, &e) !=
        0) {
        if (log_allowed(&limit, 10))
            log_warn("event_dropped", "seq=%llu error=\"%s\"", (unsigned long long)ev->seq, e.msg);
        return;
    }
    if (c->frame.total > PROXY_MAX && log_allowed(&large, 10))
        log_warn("large_message", "bytes=%zu note=\"clients behind jupyter_server take 10 MiB\"",
                 c->frame.total);
    metrics_add(METRIC_CLIENT_MESSAGES, ev->channel, METRIC_TO, 0, 1);
    metrics_add(METRIC_CLIENT_BYTES, ev->channel, METRIC_TO, 0, c->frame.total);
    conns_pulled(c->conns, c->frame.total);
    websocket_send(c->ws, c->frame.binary ? WS_BINARY : WS_TEXT, c->frame.segments, c->frame.count);
}

/* Also straight from the client's readable(): what is sent in one turn leaves in one write. */
static void on_pull(void *arg)
{
    struct channels *c = arg;
    struct client_event ev;

    for (unsigned n = 0; c->client != NULL && c->ws != NULL && websocket_writable(c->ws); n++) {
        if (n == PULL_BUDGET || !conns_may_pull(c->conns)) {
            deferred_add(c->deferred, DEFERRED_WORK, &c->pull);
            break;
        }
        if (!client_next(c->client, &ev))
            break;
        send_event(c, &ev);
    }
    if (c->frame.total > FRAME_KEEP) {
        wschannel_frame_free(&c->frame);
        wschannel_frame_init(&c->frame);
    }
}

static void detach(struct channels *c)
{
    struct client *client = c->client;

    c->client = NULL;
    if (client != NULL)
        client_detach(client);
}

static int close_code(enum client_end why)
{
    switch (why) {
    case CLIENT_DELETED:
        return WS_NORMAL; /* stay away: the kernel is gone for good */
    case CLIENT_LAGGED:
        return WS_TRY_LATER;
    case CLIENT_SHUTDOWN:
        return WS_SERVICE_RESTART;
    case CLIENT_REPLACED:
    case CLIENT_DEAD:
        break;
    }
    return 0;
}

static void on_ended(void *arg, enum client_end why)
{
    struct channels *c = arg;

    if (c->ws != NULL)
        websocket_close(c->ws, close_code(why));
    detach(c);
}

/* ---- client to kernel ----------------------------------------------------- */

static void count_received(const struct channels *c, size_t bytes)
{
    metrics_add(METRIC_CLIENT_MESSAGES, c->in.channel, METRIC_FROM, 0, 1);
    metrics_add(METRIC_CLIENT_BYTES, c->in.channel, METRIC_FROM, 0, bytes);
}

static int on_message(void *arg, int text, struct view payload)
{
    static struct log_limit limit;
    struct channels *c = arg;
    struct err e = { 0 };
    int rc;

    if (c->client == NULL)
        return 0;
    if (c->observer) {
        metrics_count(METRIC_DROPPED, METRIC_OBSERVER);
        if (log_allowed(&limit, 5))
            log_warn("observer_frame", "note=\"what observers send is dropped\"");
        return 0;
    }
    rc = wschannel_decode(&c->in, c->framing, text, payload, &jmsg_limits_default, &e);
    if (rc == 0 && c->in.channel == JMSG_IOPUB)
        rc = err_set(&e, HC_EPARSE, "a client sends nothing on iopub");
    if (rc == 0) {
        struct client_message m = {
            .channel = c->in.channel,
            .header = c->in.msg.header,
            .parent_header = c->in.msg.parent_header,
            .metadata = c->in.msg.metadata,
            .content = c->in.msg.content,
            .buffers = c->in.msg.buffers,
            .buffer_count = c->in.msg.buffer_count,
        };

        rc = client_send(c->client, &m, &e);
    }
    if (rc == 0)
        count_received(c, payload.n);
    wschannel_in_free(&c->in);
    if (rc == -EAGAIN)
        return rc;
    if (rc != 0)
        metrics_count(METRIC_DROPPED, METRIC_CLIENT_MALFORMED);
    /* One bad message costs only itself. */
    if (rc != 0 && log_allowed(&limit, 20))
        log_warn("message_dropped", "error=\"%s\"", e.msg);
    return 0;
}

static void on_writable(void *arg)
{
    struct channels *c = arg;

    if (c->ws != NULL)
        websocket_resume(c->ws);
}

static void on_drained(void *arg)
{
    struct channels *c = arg;

    deferred_add(c->deferred, DEFERRED_WORK, &c->pull);
}

static void free_channels(struct channels *c)
{
    c->ws = NULL;
    detach(c);
    deferred_remove(c->deferred, DEFERRED_WORK, &c->pull);
    wschannel_frame_free(&c->frame);
    wschannel_in_free(&c->in);
    free(c);
}

static void on_ending(void *arg)
{
    detach(arg);
}

static void on_closed(void *arg)
{
    free_channels(arg);
}

static const struct websocket_ops websocket_callbacks = {
    .message = on_message,
    .drained = on_drained,
    .ending = on_ending,
    .closed = on_closed,
};

static const struct client_ops client_callbacks = {
    .readable = on_pull,
    .writable = on_writable,
    .ended = on_ended,
};

/* ---- opening -------------------------------------------------------------- */

/* The client's session_id; one with a NUL or too long is refused rather than cut. */
static int session_id(const struct request *r, struct buf *out, struct err *e)
{
    struct view v;
    int rc = http_query_get(r->head->query, "session_id", out, e);

    if (rc == -EMSGSIZE)
        return err_set(e, EINVAL, "session_id is longer than %d bytes", SESSION_ID_MAX);
    if (rc < 0)
        return rc;
    v = buf_view(out);
    if (v.n > 0 && memchr(v.p, '\0', v.n) != NULL)
        return err_set(e, EINVAL, "session_id has a NUL byte");
    return buf_add(out, "", 1);
}

static struct channels *channels_new(const struct request *r)
{
    struct channels *c = xcalloc(1, sizeof *c);
    const struct http_head *head = r->head;

    c->conns = r->server->conns;
    c->deferred = conns_deferred(c->conns);
    c->observer = r->principal.role == ROLE_OBSERVER;
    c->pull = (struct deferred_node){ .fn = on_pull, .arg = c };
    c->framing = ws_handshake_offers(head, WSCHANNEL_V1_PROTOCOL) ? WSCHANNEL_V1 : WSCHANNEL_LEGACY;
    wschannel_frame_init(&c->frame);
    return c;
}

static void open_channels(struct request *r, struct kernel *k)
{
    char accept[WS_ACCEPT_TEXT];
    struct err e = { 0 };
    autobuf struct buf id;
    struct channels *c;
    struct origin *before;
    int status = 400, rc;

    buf_init(&id, SESSION_ID_MAX + 1);
    if (ws_handshake_check(r->head, accept, &status, &e) != 0 || session_id(r, &id, &e) != 0) {
        request_last(r);
        request_error(r, status, "%s", e.msg);
        return;
    }
    c = channels_new(r);
    before = origin_enter(r->origin); /* the handler may have waited */
    /* A session_id is a seat with replies and questions for its owner: an observer gets
     * one of its own, which hears iopub alone. */
    rc = client_attach(k, c->observer ? NULL : (const char *)buf_view(&id).p, &client_callbacks, c,
                       &c->client, &e);
    origin_enter(before);
    if (rc != 0) {
        c->client = NULL;
        free_channels(c);
        request_failed(r, &e);
        return;
    }
    c->ws = request_upgrade(r, accept, c->framing == WSCHANNEL_V1 ? WSCHANNEL_V1_PROTOCOL : NULL,
                            &websocket_callbacks, c);
    deferred_add(c->deferred, DEFERRED_WORK, &c->pull);
}

static void on_ready(struct jupyter *j, uint64_t token, struct request *r, struct kernel *k,
                     const struct err *e)
{
    (void)token;
    (void)e;
    if (r == NULL)
        return;
    k = jupyter_kernel(r, j); /* answers when it is gone */
    if (k != NULL)
        open_channels(r, k);
}

/* Token and Origin are checked by now. The 101 of a busy kernel comes at once; that
 * of a kernel that starts waits a little: GatewayKernelClient (nbclient) fails when
 * its first question is not answered within a second of it. */
void channels_open(struct request *r, void *arg)
{
    struct jupyter *j = arg;
    struct kernel *k = jupyter_kernel(r, j);
    char accept[WS_ACCEPT_TEXT];
    int status;

    if (k == NULL)
        return;
    if (!kernel_is_starting(k) || ws_handshake_check(r->head, accept, &status, NULL) != 0) {
        open_channels(r, k);
        return;
    }
    pending_ready(j, k, r->token, on_ready);
}
