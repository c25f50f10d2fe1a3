/*
 * conn - see conn.h. Non-blocking recv(2) and sendmsg(2) behind one poll handle
 * of the loop, so that the queue, its count and every close are in our hands.
 */
#include "conn.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "cleanup.h"
#include "err.h"

enum {
    READ_SIZE = 64 * 1024,   /* one recv; also bounds what is kept while paused */
    DIRECT_SIZE = 16 * 1024, /* from here on not copied before the first write */
    FLUSH_SIZE = 64 * 1024,  /* queued in one turn: do not wait for its end */
    IOV_BATCH = 256,
    DATA_BUDGET = 32,           /* calls of data() for one connection in one turn */
    LINGER_MS = 2000,           /* from our FIN to the close */
    LINGER_BYTES = 4 * 1024 * 1024, /* dropped while lingering */
};

enum state { OPEN, FINISHING, DEAD };

struct conns {
    struct loop *loop; /* borrowed */
    struct turn *turn; /* owned */
    struct loop_timer *timer;
    uint64_t tick_ms;
    struct conn *first, *last; /* owned list; last was heard of last */
    unsigned count;
    uint8_t scratch[READ_SIZE]; /* callbacks do not nest: one for all */
};

struct conn {
    struct conns *all;
    struct conn *prev, *next;
    const struct conn_ops *ops;
    void *arg;
    struct loop_poll *poll;
    struct turn_node work, flush;
    int fd;
    enum state state;
    int events;       /* what poll waits for */
    unsigned paused : 1;
    unsigned blocked : 1;    /* the socket is full: out waits for it */
    unsigned over : 1;       /* the queue was above its mark and drained() is due */
    unsigned resuming : 1;   /* input is to be delivered by work */
    unsigned delivering : 1; /* inside deliver() */
    unsigned eof : 1;        /* recv said so */
    unsigned eof_told : 1;
    unsigned fin : 1; /* we have sent ours */
    struct buf in;    /* taken from the socket, not yet by the protocol */
    struct buf out;
    uint64_t stall_ms, progress_ms, drain_ms, linger_until_ms;
    size_t dropped;
};

static void update_events(struct conn *c)
{
    int want = c->blocked ? LOOP_WRITE : 0;

    if (c->state == DEAD)
        return;
    if (!c->eof && (c->state == FINISHING || (!c->paused && buf_len(&c->in) == 0)))
        want |= LOOP_READ;
    if (want != c->events) {
        c->events = want;
        loop_poll_events(c->poll, want);
    }
}

/* The descriptor goes now; the object after closed(), from the loop. */
static void kill_conn(struct conn *c)
{
    if (c->state == DEAD)
        return;
    c->state = DEAD;
    c->poll = loop_poll_close(c->poll);
    close(c->fd);
    c->fd = -1;
    turn_add(c->all->turn, TURN_WORK, &c->work);
}

static void list_unlink(struct conns *all, struct conn *c)
{
    *(c->prev != NULL ? &c->prev->next : &all->first) = c->next;
    *(c->next != NULL ? &c->next->prev : &all->last) = c->prev;
}

static void list_append(struct conns *all, struct conn *c)
{
    c->prev = all->last;
    c->next = NULL;
    *(all->last != NULL ? &all->last->next : &all->first) = c;
    all->last = c;
}

static void destroy(struct conn *c)
{
    struct conns *all = c->all;

    c->ops->closed(c->arg);
    turn_remove(all->turn, TURN_WORK, &c->work);
    turn_remove(all->turn, TURN_FLUSH, &c->flush);
    list_unlink(all, c);
    if (--all->count == 0)
        all->timer = loop_timer_close(all->timer);
    buf_free(&c->in);
    buf_free(&c->out);
    free(c);
}

/* ---- output --------------------------------------------------------------- */

static void send_fin(struct conn *c)
{
    if (c->fin)
        return;
    c->fin = 1;
    c->linger_until_ms = loop_now_ms(c->all->loop) + LINGER_MS;
    if (c->eof || shutdown(c->fd, SHUT_WR) != 0)
        kill_conn(c);
}

static void wrote(struct conn *c)
{
    if (c->over && buf_len(&c->out) <= CONN_LOW)
        turn_add(c->all->turn, TURN_WORK, &c->work);
    if (buf_len(&c->out) > 0)
        return;
    buf_release(&c->out);
    if (c->state == FINISHING)
        send_fin(c);
}

static void set_blocked(struct conn *c, unsigned blocked)
{
    if (blocked && !c->blocked)
        c->progress_ms = loop_now_ms(c->all->loop);
    c->blocked = blocked;
    update_events(c);
}

/* Returns the bytes that the socket took; negative when the connection broke. */
static ssize_t send_iov(struct conn *c, struct iovec *iov, size_t count)
{
    struct msghdr msg = { .msg_iov = iov, .msg_iovlen = count };
    ssize_t n;

    do {
        n = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS))
        return 0;
    if (n < 0)
        kill_conn(c);
    return n;
}

static void flush_out(struct conn *c)
{
    struct view v = buf_view(&c->out);
    struct iovec iov = { (void *)v.p, v.n };
    ssize_t n = v.n > 0 ? send_iov(c, &iov, 1) : 0;

    if (n < 0)
        return;
    if (n > 0 && c->blocked)
        c->progress_ms = c->drain_ms = loop_now_ms(c->all->loop);
    buf_consume(&c->out, (size_t)n);
    set_blocked(c, (size_t)n < v.n);
    wrote(c);
}

static void on_flush(void *arg)
{
    struct conn *c = arg;

    if (c->state != DEAD && !c->blocked)
        flush_out(c);
}

static void append(struct conn *c, const struct view *segments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (buf_add_view(&c->out, segments[i]) != 0) { /* no memory */
            kill_conn(c);
            return;
        }
    }
}

/* Copies what lies behind the first `skip` bytes of the segments. */
static void append_rest(struct conn *c, const struct view *segments, size_t count, size_t skip)
{
    for (size_t i = 0; i < count && c->state != DEAD; i++) {
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
            append_rest(c, segments + first, count - first, (size_t)sent - of_queue);
            if (c->state != DEAD)
                set_blocked(c, 1);
            return;
        }
        buf_consume(&c->out, queued.n);
    }
    wrote(c);
}

void conn_write(struct conn *c, const struct view *segments, size_t count)
{
    size_t total = 0;

    if (c->state != OPEN)
        return;
    for (size_t i = 0; i < count; i++)
        total += segments[i].n;
    if (total >= DIRECT_SIZE && !c->blocked) {
        write_direct(c, segments, count);
        return;
    }
    append(c, segments, count);
    if (c->state == DEAD || c->blocked)
        return;
    if (buf_len(&c->out) >= FLUSH_SIZE)
        flush_out(c);
    else
        turn_add(c->all->turn, TURN_FLUSH, &c->flush);
}

int conn_writable(struct conn *c)
{
    if (c->state != OPEN)
        return 0;
    if (buf_len(&c->out) < CONN_HIGH)
        return 1;
    c->over = 1;
    return 0;
}

size_t conn_queued(const struct conn *c)
{
    return buf_len(&c->out);
}

uint64_t conn_drain_ms(const struct conn *c)
{
    return c->drain_ms;
}

void conn_set_stall(struct conn *c, uint64_t ms)
{
    c->stall_ms = ms;
}

/* ---- input ---------------------------------------------------------------- */

/* Hands the bytes on until the protocol pauses, ends or the budget is used up.
 * Returns how many it took. */
static size_t deliver(struct conn *c, struct view in)
{
    size_t taken = 0;
    unsigned calls = 0;

    c->delivering = 1;
    while (taken < in.n && c->state == OPEN && !c->paused && calls++ < DATA_BUDGET) {
        size_t used = c->ops->data(c->arg, (struct view){ in.p + taken, in.n - taken });

        check(used <= in.n - taken);
        check(used > 0 || c->paused || c->state != OPEN);
        taken += used;
    }
    c->delivering = 0;
    return taken;
}

/* What is left waits in c->in: delivered by work when nothing but the budget stood
 * in the way, else after conn_resume(). */
static void after_delivery(struct conn *c)
{
    if (c->state != OPEN)
        return;
    if (buf_len(&c->in) == 0)
        buf_release(&c->in);
    if (!c->paused && buf_len(&c->in) > 0)
        conn_resume(c);
    if (c->eof && !c->eof_told && !c->paused && buf_len(&c->in) == 0) {
        c->eof_told = 1;
        c->ops->eof(c->arg);
    }
    update_events(c);
}

static void deliver_kept(struct conn *c)
{
    size_t taken = deliver(c, buf_view(&c->in));

    buf_consume(&c->in, taken);
    after_delivery(c);
}

static void deliver_read(struct conn *c, struct view in)
{
    size_t taken = deliver(c, in);

    if (c->state == OPEN && taken < in.n && buf_add(&c->in, in.p + taken, in.n - taken) != 0) {
        kill_conn(c);
        return;
    }
    after_delivery(c);
}

static void drop_input(struct conn *c, size_t n)
{
    c->dropped += n;
    if (c->dropped > LINGER_BYTES)
        kill_conn(c);
}

static void on_readable(struct conn *c)
{
    ssize_t n = recv(c->fd, c->all->scratch, sizeof c->all->scratch, MSG_DONTWAIT);

    if (n < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            kill_conn(c);
        return;
    }
    list_unlink(c->all, c);
    list_append(c->all, c);
    c->eof = n == 0;
    if (c->state == FINISHING) {
        if (c->eof && c->fin)
            kill_conn(c);
        else if (c->eof)
            update_events(c);
        else
            drop_input(c, (size_t)n);
        return;
    }
    deliver_read(c, (struct view){ c->all->scratch, (size_t)n });
}

static void on_poll(void *arg, int events)
{
    struct conn *c = arg;

    if (c->state == DEAD)
        return;
    if (events < 0) { /* the peer reset the connection */
        kill_conn(c);
        return;
    }
    if (events & LOOP_WRITE)
        flush_out(c);
    if ((events & LOOP_READ) && (c->events & LOOP_READ) && c->state != DEAD)
        on_readable(c);
}

static void on_work(void *arg)
{
    struct conn *c = arg;

    if (c->state == DEAD) {
        destroy(c);
        return;
    }
    if (c->over && buf_len(&c->out) <= CONN_LOW) {
        c->over = 0;
        if (c->state == OPEN)
            c->ops->drained(c->arg);
    }
    if (c->resuming && c->state == OPEN) {
        c->resuming = 0;
        if (!c->paused)
            deliver_kept(c);
    }
}

void conn_pause(struct conn *c)
{
    c->paused = 1;
    if (!c->delivering)
        update_events(c);
}

void conn_resume(struct conn *c)
{
    if (c->state != OPEN)
        return;
    c->paused = 0;
    c->resuming = 1;
    turn_add(c->all->turn, TURN_WORK, &c->work);
}

/* ---- life ----------------------------------------------------------------- */

static void set_socket_options(int fd)
{
    int on = 1, idle = 60, interval = 15, probes = 4;

    /* Without it the last segment of an answer waits for an ACK that the client delays
     * by 40 ms. The others find peers that vanished; none of these calls can fail in a
     * way that would matter (tests use socket pairs, which refuse them). */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static void on_tick(void *arg);

struct conn *conn_new(struct conns *all, int fd, const struct conn_ops *ops, void *arg)
{
    struct conn *c = xcalloc(1, sizeof *c);

    set_socket_options(fd);
    c->all = all;
    c->fd = fd;
    c->ops = ops;
    c->arg = arg;
    c->work = (struct turn_node){ .fn = on_work, .arg = c };
    c->flush = (struct turn_node){ .fn = on_flush, .arg = c };
    buf_init(&c->in, READ_SIZE);
    buf_init(&c->out, SIZE_MAX / 2); /* bounded by who writes: conn_writable() */
    c->events = LOOP_READ;
    c->poll = loop_poll_start(all->loop, fd, c->events, on_poll, c);
    list_append(all, c);
    if (all->count++ == 0)
        all->timer = loop_timer_start(all->loop, all->tick_ms, all->tick_ms, on_tick, all);
    return c;
}

void conn_set_ops(struct conn *c, const struct conn_ops *ops, void *arg)
{
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
    if (c->state != OPEN)
        return;
    c->state = FINISHING;
    buf_release(&c->in);
    if (buf_len(&c->out) == 0)
        send_fin(c);
    update_events(c);
}

void conn_abort(struct conn *c)
{
    kill_conn(c);
}

int conn_ended(const struct conn *c)
{
    return c->state != OPEN;
}

static void tick(struct conn *c, uint64_t now)
{
    if (c->state == DEAD)
        return;
    if ((c->blocked && c->stall_ms > 0 && now - c->progress_ms >= c->stall_ms) ||
        (c->fin && now >= c->linger_until_ms)) {
        kill_conn(c);
        return;
    }
    if (c->state == OPEN)
        c->ops->tick(c->arg, now);
}

static void tick_one(struct conn *c, void *arg)
{
    tick(c, loop_now_ms(arg));
}

static void on_tick(void *arg)
{
    struct conns *all = arg;

    conns_each(all, tick_one, all->loop);
}

struct conns *conns_new(struct loop *l, uint64_t tick_ms)
{
    struct conns *all = xcalloc(1, sizeof *all);

    all->loop = l;
    all->tick_ms = tick_ms;
    all->turn = turn_new(l);
    return all;
}

struct conns *conns_close(struct conns *all)
{
    if (all == NULL)
        return NULL;
    check(all->count == 0);
    all->turn = turn_close(all->turn);
    free(all);
    return NULL;
}

unsigned conns_count(const struct conns *all)
{
    return all->count;
}

struct turn *conns_turn(struct conns *all)
{
    return all->turn;
}

struct loop *conns_loop(struct conns *all)
{
    return all->loop;
}

int conns_evict(struct conns *all)
{
    for (struct conn *c = all->first; c != NULL; c = c->next) {
        if (c->state == OPEN && c->ops->idle(c->arg)) {
            conn_abort(c);
            return 1;
        }
    }
    return 0;
}

/* Ending a connection leaves it in the list until the loop destroys it. */
void conns_each(struct conns *all, void (*fn)(struct conn *c, void *arg), void *arg)
{
    for (struct conn *c = all->first; c != NULL; c = c->next)
        fn(c, arg);
}
