/*
 * connwrite - the output side of a connection (conn.h): one queue, counted; large
 * segments go to the socket without a copy.
 */
#include <sys/socket.h>
#include <sys/uio.h>

#include "conn_private.h"
#include "err.h"

enum {
    DIRECT_SIZE = 16 * 1024, /* from here on not copied before the first write */
    FLUSH_SIZE = 64 * 1024,  /* queued in one turn: do not wait for its end */
    IOV_BATCH = 256,
};

static void send_fin(struct conn *c)
{
    if (c->fin)
        return;
    c->fin = 1;
    c->linger_until_ms = loop_now_ms(c->all->loop) + CONN_LINGER_MS;
    if (c->eof || shutdown(c->fd, SHUT_WR) != 0)
        conn_kill(c);
}

/* What the transport has to say at the end goes before the FIN. */
void conn_end_output(struct conn *c)
{
    transport_bye(&c->transport);
    if (transport_pending(&c->transport) > 0)
        conn_flush(c);
    else
        send_fin(c);
}

/* Some has left the queue. */
static void shrunk(struct conn *c)
{
    if (conn_queued(c) < c->told)
        c->told = conn_queued(c);
}

static void wrote(struct conn *c)
{
    if (c->over && conn_queued(c) <= c->limits.output / 4)
        deferred_add(c->all->deferred, DEFERRED_WORK, &c->work);
    if (buf_len(&c->out) > 0)
        return;
    buf_release(&c->out);
    if (c->state == CONN_FINISHING && !c->blocked)
        conn_end_output(c);
}

static void set_blocked(struct conn *c, unsigned blocked)
{
    if (blocked && !c->blocked)
        c->progress_ms = loop_now_ms(c->all->loop);
    c->blocked = blocked;
    conn_update_events(c);
}

/* Returns the bytes that were taken; negative when the connection broke. */
static ssize_t send_iov(struct conn *c, struct iovec *iov, size_t count)
{
    uint64_t before = c->transport.sent;
    ssize_t n = transport_write(&c->transport, iov, count);

    if (n < 0)
        conn_kill(c);
    else if (c->blocked && c->transport.sent > before)
        c->progress_ms = c->drain_ms = loop_now_ms(c->all->loop);
    return n;
}

void conn_flush(struct conn *c)
{
    struct view v = buf_view(&c->out);
    struct iovec iov = { (void *)v.p, v.n };
    ssize_t n = conn_queued(c) > 0 ? send_iov(c, &iov, 1) : 0;

    if (n < 0)
        return;
    buf_consume(&c->out, (size_t)n);
    shrunk(c);
    /* Before the end of the handshake no socket can be waited for. */
    set_blocked(c, transport_pending(&c->transport) > 0 ||
                       (buf_len(&c->out) > 0 && transport_ready(&c->transport)));
    wrote(c);
}

void conn_on_flush(void *arg)
{
    struct conn *c = arg;

    if (c->state != CONN_DEAD && !c->blocked)
        conn_flush(c);
}

static void append(struct conn *c, const struct view *segments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (buf_add_view(&c->out, segments[i]) != 0) { /* no memory */
            conn_kill(c);
            return;
        }
    }
}

/* Copies what lies behind the first `skip` bytes of the segments. */
static void append_rest(struct conn *c, const struct view *segments, size_t count, size_t skip)
{
    for (size_t i = 0; i < count && c->state != CONN_DEAD; i++) {
        size_t n = skip < segments[i].n ? skip : segments[i].n;
        struct view rest = { segments[i].p + n, segments[i].n - n };

        skip -= n;
        if (rest.n > 0)
            append(c, &rest, 1);
    }
}

/* Writes queue and segments at once, batch after batch, until the socket is full. */
static void write_direct(struct conn *c, const struct view *segments, size_t count)
{
    for (size_t at = 0; at < count;) {
        struct iovec iov[IOV_BATCH];
        struct view queued = buf_view(&c->out);
        size_t n = 0, first = at, total = queued.n;
        ssize_t sent;

        if (queued.n > 0)
            iov[n++] = (struct iovec){ (void *)queued.p, queued.n };
        for (; at < count && n < IOV_BATCH; at++) {
            iov[n++] = (struct iovec){ (void *)segments[at].p, segments[at].n };
            total += segments[at].n;
        }
        sent = send_iov(c, iov, n);
        if (sent < 0)
            return;
        if ((size_t)sent < total) {
            size_t of_queue = (size_t)sent < queued.n ? (size_t)sent : queued.n;

            buf_consume(&c->out, of_queue);
            shrunk(c);
            append_rest(c, segments + first, count - first, (size_t)sent - of_queue);
            if (c->state != CONN_DEAD)
                set_blocked(c, 1);
            return;
        }
        buf_consume(&c->out, queued.n);
        shrunk(c);
    }
    if (transport_pending(&c->transport) > 0)
        set_blocked(c, 1);
    wrote(c);
}

void conn_write(struct conn *c, const struct view *segments, size_t count)
{
    size_t total = 0;

    if (c->state != CONN_OPEN)
        return;
    for (size_t i = 0; i < count; i++)
        total += segments[i].n;
    if (total >= DIRECT_SIZE && !c->blocked && transport_ready(&c->transport)) {
        write_direct(c, segments, count);
        return;
    }
    append(c, segments, count);
    if (c->state == CONN_DEAD || c->blocked)
        return;
    if (buf_len(&c->out) >= FLUSH_SIZE)
        conn_flush(c);
    else
        deferred_add(c->all->deferred, DEFERRED_FLUSH, &c->flush);
}

int conn_writable(struct conn *c)
{
    if (c->state != CONN_OPEN)
        return 0;
    if (conn_queued(c) < c->limits.output)
        return 1;
    c->over = 1;
    return 0;
}

size_t conn_queued(const struct conn *c)
{
    return buf_len(&c->out) + transport_pending(&c->transport);
}

size_t conn_grown(struct conn *c)
{
    size_t before = c->told;

    c->told = conn_queued(c);
    return c->told > before ? c->told - before : 0;
}

int conn_blocked(const struct conn *c)
{
    return c->blocked;
}

uint64_t conn_drain_ms(const struct conn *c)
{
    return c->drain_ms;
}

void conn_set_stall(struct conn *c, uint64_t ms)
{
    c->stall_ms = ms;
}
