/*
 * conn - see conn.h. A non-blocking transport behind one poll handle of the loop, so that
 * the queue, its count and every close are in our hands.
 */
#include "conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "cleanup.h"
#include "conn_private.h"
#include "err.h"
#include "log.h"
#include "logescape.h"
#include "peer.h"

enum {
    DATA_BUDGET = 32,               /* calls of data() for one connection in one turn */
    LINGER_BYTES = 4 * 1024 * 1024, /* dropped while lingering */
    STALL_MS = 30000, /* of the last bytes of a connection without a limit of its own */
};

void conn_update_events(struct conn *c)
{
    int want = c->blocked ? LOOP_WRITE : 0;

    if (c->state == CONN_DEAD)
        return;
    if (!c->eof && (c->state == CONN_FINISHING || (!c->paused && buf_len(&c->in) == 0)))
        want |= LOOP_READ;
    if (want != c->events) {
        c->events = want;
        loop_poll_events(c->poll, want);
    }
}

void conn_kill(struct conn *c)
{
    if (c->state == CONN_DEAD)
        return;
    c->state = CONN_DEAD;
    c->poll = loop_poll_close(c->poll);
    conns_shaken(c->all, c);
    close(c->fd);
    c->fd = -1;
    deferred_add(c->all->deferred, DEFERRED_WORK, &c->work);
}

static void destroy(struct conn *c)
{
    struct conns *all = c->all;

    c->ops->closed(c->arg);
    deferred_remove(all->deferred, DEFERRED_WORK, &c->work);
    deferred_remove(all->deferred, DEFERRED_FLUSH, &c->flush);
    conns_remove(all, c);
    transport_free(&c->transport);
    buf_free(&c->in);
    buf_free(&c->out);
    free(c);
}

/* ---- input ---------------------------------------------------------------- */

/* Hands the bytes on until the protocol pauses, ends or the budget is used up.
 * Returns how many it took. */
static size_t deliver(struct conn *c, struct view in)
{
    size_t taken = 0;
    unsigned calls = 0;

    c->delivering = 1;
    while (taken < in.n && c->state == CONN_OPEN && !c->paused && calls++ < DATA_BUDGET) {
        size_t used = c->ops->data(c->arg, (struct view){ in.p + taken, in.n - taken });

        check(used <= in.n - taken);
        check(used > 0 || c->paused || c->state != CONN_OPEN);
        taken += used;
    }
    c->delivering = 0;
    return taken;
}

static void deliver_later(struct conn *c)
{
    c->resuming = 1;
    deferred_add(c->all->deferred, DEFERRED_WORK, &c->work);
}

/* What is left waits in c->in: delivered by work when nothing but the budget stood
 * in the way, else after conn_resume(). */
static void after_delivery(struct conn *c)
{
    if (c->state != CONN_OPEN)
        return;
    if (buf_len(&c->in) == 0)
        buf_release(&c->in);
    if (!c->paused && buf_len(&c->in) > 0)
        deliver_later(c);
    if (c->eof && !c->eof_told && !c->paused && buf_len(&c->in) == 0) {
        c->eof_told = 1;
        c->ops->eof(c->arg);
    }
    conn_update_events(c);
}

static void deliver_kept(struct conn *c)
{
    size_t taken = deliver(c, buf_view(&c->in));

    buf_consume(&c->in, taken);
    if (c->state != CONN_OPEN)
        buf_release(&c->in);
    after_delivery(c);
}

static void deliver_read(struct conn *c, struct view in)
{
    size_t taken = deliver(c, in);

    if (c->state == CONN_OPEN && taken < in.n && buf_add(&c->in, in.p + taken, in.n - taken) != 0) {
        conn_kill(c);
        return;
    }
    after_delivery(c);
}

static void drop_input(struct conn *c, size_t n)
{
    c->dropped += n;
    if (c->dropped > LINGER_BYTES)
        conn_kill(c);
}

/* Nobody listens any more: encrypted or not, it is dropped as it comes. */
static void read_and_drop(struct conn *c)
{
    ssize_t n = recv(c->fd, c->all->scratch, c->limits.input, MSG_DONTWAIT);

    if (n < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            conn_kill(c);
        return;
    }
    c->eof = n == 0;
    if (c->eof && c->fin)
        conn_kill(c);
    else if (c->eof)
        conn_update_events(c);
    else
        drop_input(c, (size_t)n);
}

/* A peer that speaks no right TLS may still read our alert; one that did so before has
 * forfeited that time, and its protocol is told at once. */
static void tls_failed(struct conn *c, const struct err *e)
{
    static struct log_limit limit;
    struct peer peer = peer_of_socket(c->fd);
    char name[PEER_TEXT];

    if (log_allowed(&limit, 60))
        log_warn("tls", "peer=\"%s\" error=%s", peer_text(&peer, name), LOG_QUOTED(e->msg));
    if (c->handshake) {
        conn_finish(c);
        return;
    }
    conn_flush(c);
    conn_kill(c);
}

static void on_readable(struct conn *c)
{
    struct err e = { 0 };
    ssize_t n = transport_read(&c->transport, c->all->scratch, c->all->cipher, c->limits.input, &e);

    if (n == -EAGAIN)
        return;
    if (n == -HC_EPARSE) {
        tls_failed(c, &e);
        return;
    }
    if (n < 0) {
        conn_kill(c);
        return;
    }
    conns_heard(c->all, c);
    c->eof = n == 0 || transport_ended(&c->transport);
    deliver_read(c, (struct view){ c->all->scratch, (size_t)n });
}

/* Reading makes TLS answer: the handshake, tickets, alerts. */
static void on_readable_open(struct conn *c)
{
    if (c->handshake && !conns_may_shake(c->all))
        return;
    on_readable(c);
    if (c->handshake && transport_ready(&c->transport))
        conns_shaken(c->all, c);
    if (c->state != CONN_DEAD && transport_pending(&c->transport) > 0)
        deferred_add(c->all->deferred, DEFERRED_FLUSH, &c->flush);
}

static void on_poll(void *arg, int events)
{
    struct conn *c = arg;

    if (c->state == CONN_DEAD)
        return;
    if (events < 0) { /* the peer reset the connection */
        conn_kill(c);
        return;
    }
    if (events & LOOP_WRITE)
        conn_flush(c);
    if (!(events & LOOP_READ) || !(c->events & LOOP_READ))
        return;
    if (c->state == CONN_OPEN)
        on_readable_open(c);
    else if (c->state == CONN_FINISHING)
        read_and_drop(c);
}

static void on_work(void *arg)
{
    struct conn *c = arg;

    if (c->state == CONN_DEAD) {
        destroy(c);
        return;
    }
    if (c->over && conn_queued(c) <= c->limits.output / 4) {
        c->over = 0;
        if (c->state == CONN_OPEN)
            c->ops->drained(c->arg);
    }
    if (c->resuming && c->state == CONN_OPEN) {
        c->resuming = 0;
        if (!c->paused)
            deliver_kept(c);
    }
}

void conn_pause(struct conn *c)
{
    c->paused = 1;
    if (!c->delivering)
        conn_update_events(c);
}

void conn_resume(struct conn *c)
{
    if (!c->paused || c->state != CONN_OPEN)
        return;
    c->paused = 0;
    deliver_later(c);
}

/* ---- life ----------------------------------------------------------------- */

/* Without TCP_NODELAY the last segment of an answer waits for an ACK that the client delays
 * by 40 ms. The others find peers that vanished; they fail in no way that would matter.
 * Unix sockets have none of TCP's. */
static int set_socket_options(int fd)
{
    int on = 1, idle = 60, interval = 15, probes = 4;

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 && errno != EOPNOTSUPP)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    return 0;
}

struct conn *conn_new(struct conns *all, int fd, const struct tlscontext *tls,
                      const struct conn_limits *limits, const struct conn_ops *ops, void *arg)
{
    struct conn *c = xcalloc(1, sizeof *c);

    if (set_socket_options(fd) < 0 || transport_init(&c->transport, fd, tls) < 0) {
        close(fd);
        free(c);
        return NULL;
    }
    c->all = all;
    c->fd = fd;
    conn_set_ops(c, limits, ops, arg);
    c->work = (struct deferred_node){ .fn = on_work, .arg = c };
    c->flush = (struct deferred_node){ .fn = conn_on_flush, .arg = c };
    buf_init(&c->in, CONN_READ_MAX + TRANSPORT_SLACK);
    buf_init(&c->out, SIZE_MAX / 2); /* bounded by who writes: conn_writable() */
    c->events = LOOP_READ;
    c->poll = loop_poll_start(all->loop, fd, c->events, on_poll, c);
    conns_add(all, c);
    if (tls != NULL) {
        c->handshake = 1;
        all->handshakes++;
    }
    return c;
}

void conn_set_ops(struct conn *c, const struct conn_limits *limits, const struct conn_ops *ops,
                  void *arg)
{
    check(limits->input > 0 && limits->input <= CONN_READ_MAX);
    c->limits = *limits;
    c->ops = ops;
    c->arg = arg;
}

const struct conn_ops *conn_ops(const struct conn *c)
{
    return c->ops;
}

void *conn_arg(const struct conn *c)
{
    return c->arg;
}

void conn_finish(struct conn *c)
{
    if (c->state != CONN_OPEN)
        return;
    c->state = CONN_FINISHING;
    conns_shaken(c->all, c);
    if (c->stall_ms == 0)
        c->stall_ms = STALL_MS;
    if (!c->delivering) /* else its bytes are still being read */
        buf_release(&c->in);
    if (!transport_ready(&c->transport)) /* what cannot be encrypted any more */
        buf_release(&c->out);
    if (buf_len(&c->out) == 0 && !c->blocked)
        conn_end_output(c);
    conn_update_events(c);
}

void conn_abort(struct conn *c)
{
    conn_kill(c);
    buf_release(&c->out); /* many may be ended in one turn, for what they hold */
}

int conn_ended(const struct conn *c)
{
    return c->state != CONN_OPEN;
}

void conn_tick(struct conn *c, uint64_t now)
{
    if (c->state == CONN_DEAD)
        return;
    if ((c->blocked && c->stall_ms > 0 && now - c->progress_ms >= c->stall_ms) ||
        (c->fin && now >= c->linger_until_ms)) {
        conn_kill(c);
        return;
    }
    if (c->state == CONN_OPEN)
        c->ops->tick(c->arg, now);
}
