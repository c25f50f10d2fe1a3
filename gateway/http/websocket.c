/* websocket - see websocket.h. */
#include "websocket.h"

#include <errno.h>

#include "accesslog.h"
#include "auth.h"
#include "conn.h"
#include "err.h"
#include "server.h"

static const struct conn_limits conn_limits = { .output = 256 * 1024, .input = CONN_READ_MAX };

enum { CLOSE_MS = 5000 /* for the peer's Close after ours */ };

struct websocket {
    struct server *server; /* borrowed */
    struct conn *conn;     /* borrowed: it owns this */
    struct wsframe *frames;
    const struct websocket_ops *ops;
    void *arg;
    struct accesslog_socket account;
    struct principal owner;
    struct tenant *tenant; /* owned: of the owner */
    struct proof proof;
    size_t assembling; /* bytes of the message that is being received, or is held */
    uint64_t heard_ms, ping_ms, close_ms;
    unsigned closing : 1;  /* our Close is sent */
    unsigned held : 1;     /* a message waits in frames for websocket_resume() */
    unsigned draining : 1; /* not read because the peer does not read */
};

static uint64_t now_ms(const struct websocket *w)
{
    return loop_now_ms(w->server->loop);
}

static void account(struct websocket *w, size_t now)
{
    if (now > w->assembling)
        tenant_take(w->tenant, TENANT_MESSAGES, now - w->assembling);
    else
        tenant_give(w->tenant, TENANT_MESSAGES, w->assembling - now);
    w->assembling = now;
}

void websocket_send(struct websocket *w, enum ws_opcode opcode, const struct view *segments,
                    size_t count)
{
    uint8_t header[WS_HEADER_MAX];
    struct view head = { header, 0 };
    size_t total = 0;

    if (w->closing)
        return;
    for (size_t i = 0; i < count; i++)
        total += segments[i].n;
    if (opcode == WS_TEXT || opcode == WS_BINARY) {
        w->account.messages_out++;
        w->account.bytes_out += total;
    }
    head.n = ws_header_encode(opcode, 1, total, header);
    conn_write(w->conn, &head, 1);
    conn_write(w->conn, segments, count);
    if (server_bound_output(w->server, w->conn))
        accesslog_closing(&w->account, "server", ACCESSLOG_NO_HANDSHAKE);
}

static void send_close(struct websocket *w, int code)
{
    uint8_t payload[WS_CONTROL_MAX];
    struct view v = { payload, 0 };

    if (code != 0)
        v.n = ws_close_encode(code, (struct view){ 0 }, payload);
    accesslog_closing(&w->account, "server", code != 0 ? code : WS_NO_STATUS);
    websocket_send(w, WS_CLOSE, &v, 1);
    w->closing = 1;
}

void websocket_close(struct websocket *w, int code)
{
    if (w->closing || conn_ended(w->conn))
        return;
    send_close(w, code);
    w->close_ms = now_ms(w) + CLOSE_MS;
    w->held = 0;
    conn_resume(w->conn); /* the peer's Close is to be read */
}

/* The peer closes, broke the protocol or asked for too much. */
static void end(struct websocket *w, int code)
{
    int owner_knows = w->closing;

    if (!w->closing)
        send_close(w, code);
    conn_finish(w->conn);
    if (!owner_knows)
        w->ops->ending(w->arg);
}

/* ---- input ---------------------------------------------------------------- */

static void on_peer_close(struct websocket *w, struct view payload)
{
    struct ws_close asked;
    int answer = 0;

    if (ws_close_parse(payload, &asked, &answer, NULL) == 0) {
        accesslog_closing(&w->account, "client", asked.code);
        if (asked.code == WS_NO_STATUS)
            answer = 0;
    }
    end(w, answer);
}

/* A data message; it may be kept for later, and then comes again. */
static void on_message(struct websocket *w, int again)
{
    struct view payload;
    int rc = 0;

    if (w->closing)
        return;
    if (wsframe_kind(w->frames, NULL) < 0) {
        end(w, WS_BAD_DATA);
        return;
    }
    payload.p = wsframe_payload(w->frames, &payload.n);
    if (!again) {
        w->account.messages_in++;
        w->account.bytes_in += payload.n;
    }
    rc = w->ops->message(w->arg, wsframe_opcode(w->frames) == WS_TEXT, payload);
    w->held = rc == -EAGAIN && !w->closing;
    if (w->held)
        conn_pause(w->conn);
    else
        account(w, 0);
}

static void on_frame(struct websocket *w)
{
    struct view payload;

    switch (wsframe_opcode(w->frames)) {
    case WS_PING:
        payload.p = wsframe_payload(w->frames, &payload.n);
        websocket_send(w, WS_PONG, &payload, 1);
        break;
    case WS_CLOSE:
        payload.p = wsframe_payload(w->frames, &payload.n);
        on_peer_close(w, payload);
        break;
    case WS_TEXT:
    case WS_BINARY:
        on_message(w, 0);
        break;
    default: /* a pong is a sign of life like every byte */
        break;
    }
}

static size_t on_data(void *arg, struct view in)
{
    struct websocket *w = arg;
    size_t used;
    int rc = wsframe_feed(w->frames, in.p, in.n, &used, NULL);

    w->heard_ms = now_ms(w);
    if (rc < 0) {
        end(w, wsframe_close_code(w->frames));
        return in.n;
    }
    account(w, w->assembling + used);
    if (rc > 0)
        on_frame(w);
    if (conn_ended(w->conn))
        return used;
    if (!tenant_may(w->tenant, TENANT_MESSAGES, 0, w->server->limits.ws_messages) && !w->held) {
        end(w, WS_TRY_LATER);
        return used;
    }
    if (!w->held && used == in.n)
        wsframe_release(w->frames);
    if (!wsframe_busy(w->frames) && !w->held)
        account(w, 0);
    if (!conn_writable(w->conn)) { /* who does not read is not read */
        w->draining = 1;
        conn_pause(w->conn);
    }
    return used;
}

void websocket_resume(struct websocket *w)
{
    if (!w->held || conn_ended(w->conn))
        return;
    w->held = 0;
    on_message(w, 1);
    if (w->held || conn_ended(w->conn))
        return;
    wsframe_release(w->frames);
    if (!w->draining)
        conn_resume(w->conn);
}

static void on_drained(void *arg)
{
    struct websocket *w = arg;

    if (w->draining) {
        w->draining = 0;
        w->heard_ms = now_ms(w);
        if (!w->held)
            conn_resume(w->conn);
    }
    if (!w->closing)
        w->ops->drained(w->arg);
}

static void on_eof(void *arg)
{
    struct websocket *w = arg;

    accesslog_closing(&w->account, "client", ACCESSLOG_NO_HANDSHAKE);
    end(w, 0);
}

/* ---- clocks --------------------------------------------------------------- */

static void on_tick(void *arg, uint64_t now)
{
    struct websocket *w = arg;
    uint64_t every = w->server->limits.ws_ping_ms, alive;

    if (w->closing) {
        if (now >= w->close_ms)
            conn_finish(w->conn);
        return;
    }
    if (every == 0)
        return;
    if (w->held)
        w->heard_ms = now; /* we are not listening */
    alive = w->heard_ms > conn_drain_ms(w->conn) ? w->heard_ms : conn_drain_ms(w->conn);
    if (w->ping_ms > alive && now - alive > w->server->limits.ws_silence_ms) {
        accesslog_closing(&w->account, "server", ACCESSLOG_NO_HANDSHAKE);
        end(w, 0);
        return;
    }
    if (now - w->ping_ms < every)
        return;
    w->ping_ms = now;
    if (conn_queued(w->conn) == 0) /* else what is queued serves as well */
        websocket_send(w, WS_PING, NULL, 0);
}

static int on_idle(void *arg)
{
    (void)arg;
    return 0;
}

static int on_counted(void *arg)
{
    (void)arg;
    return 1;
}

static void on_closed(void *arg)
{
    struct websocket *w = arg;

    account(w, 0);
    w->closing = 1;
    tenant_give(w->tenant, TENANT_CONNECTIONS, 1);
    w->tenant = tenant_drop(w->tenant);
    w->server->sockets--;
    accesslog_closed(&w->account);
    w->ops->closed(w->arg);
    w->frames = wsframe_free(w->frames);
    free(w);
}

static const struct conn_ops conn_callbacks = {
    .data = on_data,
    .eof = on_eof,
    .drained = on_drained,
    .tick = on_tick,
    .idle = on_idle,
    .counted = on_counted,
    .closed = on_closed,
};

struct websocket *websocket_new(struct server *s, struct conn *c, struct tenant *n,
                                const struct websocket_ops *ops, void *arg)
{
    struct websocket *w = xcalloc(1, sizeof *w);

    w->server = s;
    w->conn = c;
    w->ops = ops;
    w->arg = arg;
    s->sockets++;
    w->tenant = tenant_hold_same(n);
    tenant_take(w->tenant, TENANT_CONNECTIONS, 1); /* the request gives its own back */
    w->frames = wsframe_new(s->limits.ws_message);
    w->heard_ms = w->ping_ms = now_ms(w);
    conn_set_ops(c, &conn_limits, &conn_callbacks, w);
    conn_set_stall(c, s->limits.ws_ping_ms > 0 ? s->limits.ws_silence_ms : 0);
    return w;
}

struct accesslog_socket *websocket_account(struct websocket *w)
{
    return &w->account;
}

int websocket_writable(struct websocket *w)
{
    return !w->closing && conn_writable(w->conn);
}

void websocket_set_owner(struct websocket *w, const struct principal *p, const struct proof *proof)
{
    w->owner = *p;
    w->proof = *proof;
}

void websocket_recheck(struct conn *c)
{
    struct websocket *w = conn_arg(c);

    if (!conn_ended(c) && !auth_holds(w->server->auth, &w->owner, &w->proof))
        end(w, WS_POLICY);
}

const struct tenant *websocket_tenant(const struct conn *c)
{
    const struct websocket *w = conn_arg(c);

    return w->tenant;
}

int websocket_is(const struct conn *c)
{
    return conn_ops(c) == &conn_callbacks;
}

void websocket_stop(struct conn *c)
{
    websocket_close(conn_arg(c), WS_SERVICE_RESTART);
}
