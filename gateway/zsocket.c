#include "zsocket.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "deferred.h"
#include "err.h"
#include "log.h"
#include "loop.h"

enum {
    SOCKETS_MAX = 32768,
    BUDGET = 64,            /* messages per socket and turn */
    BUDGET_BYTES = 1 << 20, /* of their frames: the other kernels wait for a turn to end */
    FRAMES_MAX =
        1100, /* read at a time; a longer message is passed as its first ones, which jmsg refuses */
    BIG = 8 * 1024,                /* frames from here on are counted until the kernel took them */
    BEHIND_MS = 1000,              /* how long a reply waits for a flood on iopub */
    BLOCKED_MS = 10,               /* ZMQ does not tell when bytes left: looked at again */
    FRAME_MAX = 128 * 1024 * 1024, /* above, libzmq ends the connection */
    SEND_HWM = 1000,
    RECONNECT_NEVER = INT_MAX, /* ms: 24 days, see configure() */
    DEPTH_MAX = 2,             /* a SUB is drained while a DEALER's message is in hand */
};

/* Bytes of big frames inside ZMQ. Its own object, because the I/O thread frees
 * frames after the socket is gone. */
struct flight {
    atomic_size_t bytes;
    atomic_uint refs; /* the socket and every frame */
};

struct zsocket {
    struct zsockets *all; /* borrowed */
    void *zmq, *monitor;  /* owned */
    enum zsocket_type type;
    struct zsocket_ops ops;
    void *arg; /* borrowed */
    struct loop_poll *poll, *monitor_poll;
    struct zsocket *prev, *next;             /* all sockets */
    struct zsocket *dirty_prev, *dirty_next; /* NULL while not dirty */
    struct zsocket *behind;                  /* borrowed */
    uint64_t behind_since_ms;                /* 0: not waiting */
    struct flight *flight;                   /* shared */
    int blocked;                             /* writable() is owed */
    int look;                                /* the monitor has to be read */
    int closed; /* memory waits until no call into it is on the stack */
};

/* One message in hand. */
struct frames {
    zmq_msg_t msgs[FRAMES_MAX];
    struct view views[FRAMES_MAX];
    size_t count, bytes;
};

struct zsockets {
    struct loop *loop;         /* borrowed */
    struct deferred *deferred; /* borrowed */
    void *ctx;
    struct zsocket sockets; /* ring head */
    struct zsocket dirty;   /* ring head */
    struct deferred_node reaper;
    struct loop_timer *blocked_timer;
    unsigned blocked;
    unsigned long long monitors;      /* names given */
    struct frames *frames[DEPTH_MAX]; /* owned, made on first use */
    unsigned depth;
};

static void mark_dirty(struct zsocket *s)
{
    struct zsockets *z = s->all;

    if (s->dirty_next != NULL)
        return;
    s->dirty_prev = z->dirty.dirty_prev;
    s->dirty_next = &z->dirty;
    s->dirty_prev->dirty_next = s->dirty_next->dirty_prev = s;
}

static void unmark(struct zsocket *s)
{
    if (s->dirty_next == NULL)
        return;
    s->dirty_prev->dirty_next = s->dirty_next;
    s->dirty_next->dirty_prev = s->dirty_prev;
    s->dirty_prev = s->dirty_next = NULL;
}

static int events_of(void *zmq)
{
    int events = 0;
    size_t n = sizeof events;

    if (zmq_getsockopt(zmq, ZMQ_EVENTS, &events, &n) < 0)
        return 0;
    return events;
}

/* ---- sending ---- */

static void flight_drop(struct flight *f)
{
    if (atomic_fetch_sub(&f->refs, 1) == 1)
        free(f);
}

struct big {
    struct flight *flight; /* shared */
    size_t n;
    uint8_t bytes[];
};

/* Called on ZMQ's I/O thread once the frame was written to the kernel. */
static void big_sent(void *data, void *hint)
{
    struct big *b = hint;

    (void)data;
    atomic_fetch_sub(&b->flight->bytes, b->n);
    flight_drop(b->flight);
    free(b);
}

static int make_frame(struct zsocket *s, struct view v, zmq_msg_t *m)
{
    if (v.n < BIG) {
        if (zmq_msg_init_size(m, v.n) < 0)
            return -ENOMEM;
        if (v.n > 0)
            memcpy(zmq_msg_data(m), v.p, v.n);
        return 0;
    }
    struct big *b = malloc(sizeof *b + v.n);
    if (b == NULL)
        return -ENOMEM;
    b->flight = s->flight;
    b->n = v.n;
    memcpy(b->bytes, v.p, v.n);
    if (zmq_msg_init_data(m, b->bytes, v.n, big_sent, b) < 0) {
        free(b);
        return -ENOMEM;
    }
    atomic_fetch_add(&s->flight->refs, 1);
    atomic_fetch_add(&s->flight->bytes, v.n);
    return 0;
}

static void look_at_blocked(void *arg)
{
    struct zsockets *z = arg;

    for (struct zsocket *s = z->sockets.next; s != &z->sockets; s = s->next) {
        if (s->blocked)
            mark_dirty(s);
    }
}

static void set_blocked(struct zsocket *s, int blocked)
{
    struct zsockets *z = s->all;

    /* Where nobody waits for room nobody looks for it: a heartbeat's peer that closed
     * its socket would be looked at for ever. */
    if (s->blocked == blocked || s->ops.writable == NULL)
        return;
    s->blocked = blocked;
    z->blocked += blocked ? 1 : -1u;
    if (z->blocked > 0 && z->blocked_timer == NULL)
        z->blocked_timer = loop_timer_start(z->loop, BLOCKED_MS, BLOCKED_MS, look_at_blocked, z);
    else if (z->blocked == 0)
        z->blocked_timer = loop_timer_close(z->blocked_timer);
}

static int is_writable(struct zsocket *s)
{
    return atomic_load(&s->flight->bytes) < ZSOCKET_IN_FLIGHT_MAX &&
           (events_of(s->zmq) & ZMQ_POLLOUT) != 0;
}

static int send_all(struct zsocket *s, zmq_msg_t *msgs, size_t count, struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        int flags = ZMQ_DONTWAIT | (i + 1 < count ? ZMQ_SNDMORE : 0);
        if (zmq_msg_send(&msgs[i], s->zmq, flags) >= 0)
            continue;
        /* Once the first part was taken ZMQ takes the others: full is asked at the
         * border of messages, and a pipe that ends swallows the rest. */
        if (errno == EAGAIN && i == 0) {
            set_blocked(s, 1);
            return err_set(e, EAGAIN, "the kernel does not take messages now");
        }
        return err_set(e, EIO, "send to the kernel: %s", zmq_strerror(errno));
    }
    return 0;
}

int zsocket_send(struct zsocket *s, const struct view *frames, size_t count, struct err *e)
{
    check(!s->closed && count > 0);
    mark_dirty(s); /* zmq_send may have eaten the edge that told of input */
    if (!is_writable(s)) {
        set_blocked(s, 1);
        return err_set(e, EAGAIN, "the kernel does not take messages now");
    }
    zmq_msg_t *msgs = calloc(count, sizeof *msgs);
    size_t made = 0;
    int rc = msgs != NULL ? 0 : -ENOMEM;
    while (rc == 0 && made < count) {
        rc = make_frame(s, frames[made], &msgs[made]);
        made += rc == 0;
    }
    rc = rc < 0 ? err_set(e, ENOMEM, "no memory for a message") : send_all(s, msgs, count, e);
    for (size_t i = 0; i < made; i++)
        zmq_msg_close(&msgs[i]); /* of a frame that was sent: nothing is left in it */
    free(msgs);
    return rc;
}

/* ---- receiving ---- */

/* 1: a whole message is in f; 0: none now. Parts beyond FRAMES_MAX are read and dropped. */
static int receive(void *zmq, struct frames *f)
{
    int more = 1;

    f->count = f->bytes = 0;
    while (more) {
        zmq_msg_t dropped, *m = f->count < FRAMES_MAX ? &f->msgs[f->count] : &dropped;
        zmq_msg_init(m);
        if (zmq_msg_recv(m, zmq, ZMQ_DONTWAIT) < 0) {
            int code = errno;
            zmq_msg_close(m);
            if (code == EINTR)
                continue;
            /* ZMQ hands over whole messages: there is no EAGAIN after a first part. */
            break;
        }
        more = zmq_msg_more(m);
        f->bytes += zmq_msg_size(m);
        if (m == &dropped) {
            zmq_msg_close(m);
            continue;
        }
        f->views[f->count] = (struct view){ zmq_msg_data(m), zmq_msg_size(m) };
        f->count++;
    }
    return f->count > 0;
}

static void release(struct frames *f)
{
    for (size_t i = 0; i < f->count; i++)
        zmq_msg_close(&f->msgs[i]);
}

/* Reads messages up to the budget, one at least. Returns 1 when more may be left. s may be closed
 * inside by its owner; its memory stays until the end of the turn. */
static int serve_input(struct zsocket *s)
{
    struct zsockets *z = s->all;

    check(z->depth < DEPTH_MAX);
    if (z->frames[z->depth] == NULL)
        z->frames[z->depth] = xcalloc(1, sizeof *z->frames[0]);
    struct frames *f = z->frames[z->depth++];
    size_t bytes = 0;
    int more = 1;
    for (int i = 0; i < BUDGET && bytes < BUDGET_BYTES && !s->closed; i++) {
        if (!receive(s->zmq, f)) {
            more = 0;
            break;
        }
        bytes += f->bytes;
        /* What the kernel published before this reply has arrived by now. */
        if (s->behind != NULL)
            zsocket_drain(s->behind);
        if (!s->closed)
            s->ops.message(s->arg, f->views, f->count);
        release(f);
    }
    z->depth--;
    return more;
}

int zsocket_drain(struct zsocket *s)
{
    mark_dirty(s);
    return serve_input(s);
}

static int must_wait(struct zsocket *s)
{
    if (s->behind == NULL || !(events_of(s->behind->zmq) & ZMQ_POLLIN)) {
        s->behind_since_ms = 0;
        return 0;
    }
    mark_dirty(s->behind); /* asking for its events may have eaten the edge that told of input */
    uint64_t now = loop_now_ms(s->all->loop);
    if (s->behind_since_ms == 0)
        s->behind_since_ms = now;
    return now - s->behind_since_ms < BEHIND_MS;
}

/* Monitor messages: event number and value, then the endpoint. Read to the end:
 * the monitor's descriptor tells of the next one only then. */
static int heard_of_end(struct zsocket *s)
{
    zmq_msg_t m;
    int gone = 0;

    s->look = 0;
    for (;;) {
        zmq_msg_init(&m);
        if (zmq_msg_recv(&m, s->monitor, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&m);
            return gone;
        }
        uint16_t event = 0;
        if (zmq_msg_more(&m) && zmq_msg_size(&m) >= sizeof event) {
            memcpy(&event, zmq_msg_data(&m), sizeof event);
            gone |= (event & (ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED)) != 0;
        }
        zmq_msg_close(&m);
    }
}

static void serve(struct zsocket *s)
{
    int events = events_of(s->zmq);

    if ((events & ZMQ_POLLIN) && !must_wait(s))
        serve_input(s);
    if (!s->closed && s->blocked && is_writable(s)) {
        set_blocked(s, 0);
        s->ops.writable(s->arg);
    }
    /* After its last messages. */
    if (!s->closed && s->look && heard_of_end(s))
        s->ops.gone(s->arg);
}

/* ---- the loop's hooks ---- */

static int readable_now(void *arg)
{
    struct zsockets *z = arg;
    int busy = 0;

    for (struct zsocket *s = z->dirty.dirty_next, *next; s != &z->dirty; s = next) {
        next = s->dirty_next;
        int events = events_of(s->zmq);
        if (events & ZMQ_POLLIN || s->look || (s->blocked && is_writable(s)))
            busy = 1;
        else
            unmark(s);
    }
    return busy;
}

static void serve_rank(struct zsockets *z, enum zsocket_type type)
{
    struct zsocket *list[256];
    size_t count = 0;

    /* A copy of the list: callbacks open, close and touch sockets. Those beyond it
     * stay dirty and have their turn next. */
    for (struct zsocket *s = z->dirty.dirty_next; s != &z->dirty && count < 256;
         s = s->dirty_next) {
        if (s->type == type)
            list[count++] = s;
    }
    for (size_t i = 0; i < count; i++) {
        if (!list[i]->closed)
            serve(list[i]);
    }
    /* Who was served goes to the end, so that all have their turn. */
    for (size_t i = 0; i < count; i++) {
        if (!list[i]->closed && list[i]->dirty_next != NULL) {
            unmark(list[i]);
            mark_dirty(list[i]);
        }
    }
}

static void reap(void *arg)
{
    struct zsockets *z = arg;

    for (struct zsocket *s = z->sockets.next, *next; s != &z->sockets; s = next) {
        next = s->next;
        if (!s->closed)
            continue;
        s->prev->next = s->next;
        s->next->prev = s->prev;
        free(s);
    }
}

static void serve_turn(void *arg)
{
    struct zsockets *z = arg;

    serve_rank(z, ZSOCKET_SUB); /* iopub first: T40 of jupyter-wire.md */
    serve_rank(z, ZSOCKET_DEALER);
}

/* ---- making and ending ---- */

static void on_poll(void *arg, int events)
{
    (void)events;
    mark_dirty(arg);
}

static void on_monitor(void *arg, int events)
{
    struct zsocket *s = arg;

    (void)events;
    s->look = 1;
    mark_dirty(s);
}

static int set_int(void *zmq, int option, int value)
{
    return zmq_setsockopt(zmq, option, &value, sizeof value);
}

static int configure(void *zmq, const struct zsocket_options *o)
{
    int64_t frame_max = FRAME_MAX;
    int rc = set_int(zmq, ZMQ_LINGER, 0);

    rc |= zmq_setsockopt(zmq, ZMQ_MAXMSGSIZE, &frame_max, sizeof frame_max);
    /* A vanished peer is an event for us, not for libzmq. But -1 makes it end the pipe
     * at once (4.3.4), also between two parts of a message that is being read, and
     * then abort: "!_more" in fq.cpp. A kernel could end us by closing its socket. */
    rc |= set_int(zmq, ZMQ_RECONNECT_IVL, RECONNECT_NEVER);
    if (o->type == ZSOCKET_SUB) {
        /* Before connect: a PUB drops for a subscriber that is full. */
        rc |= set_int(zmq, ZMQ_RCVHWM, 0);
        rc |= zmq_setsockopt(zmq, ZMQ_SUBSCRIBE, "", 0);
        if (o->welcome != NULL)
            rc |= zmq_setsockopt(zmq, ZMQ_SUBSCRIBE, o->welcome, strlen(o->welcome));
    } else {
        rc |= set_int(zmq, ZMQ_SNDHWM, SEND_HWM);
        rc |= set_int(zmq, ZMQ_RCVHWM, 0);
        rc |= zmq_setsockopt(zmq, ZMQ_ROUTING_ID, o->identity, strlen(o->identity));
    }
    return rc;
}

static int zmq_descriptor(void *zmq)
{
    int fd = -1;
    size_t n = sizeof fd;

    check(zmq_getsockopt(zmq, ZMQ_FD, &fd, &n) == 0);
    return fd;
}

/* The SUB's end is told through a PAIR inside the context. */
static int open_monitor(struct zsocket *s)
{
    char name[64];

    snprintf(name, sizeof name, "inproc://monitor-%llu", ++s->all->monitors);
    if (zmq_socket_monitor(s->zmq, name, ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED) < 0)
        return -errno;
    s->monitor = zmq_socket(s->all->ctx, ZMQ_PAIR);
    if (s->monitor == NULL)
        return -errno;
    set_int(s->monitor, ZMQ_LINGER, 0);
    if (zmq_connect(s->monitor, name) < 0)
        return -errno;
    s->look = 1; /* its descriptor is silent until it was read once */
    s->monitor_poll =
        loop_poll_start(s->all->loop, zmq_descriptor(s->monitor), LOOP_READ, on_monitor, s);
    return 0;
}

int zsocket_open(struct zsockets *z, const struct zsocket_options *o, const struct zsocket_ops *ops,
                 void *arg, struct zsocket **ret, struct err *e)
{
    struct zsocket *s = xcalloc(1, sizeof *s);
    int rc = 0;

    check(o->type == ZSOCKET_SUB || (o->identity != NULL && *o->identity != '\0' &&
                                     strlen(o->identity) <= ZSOCKET_IDENTITY_MAX));
    s->all = z;
    s->type = o->type;
    s->ops = *ops;
    s->arg = arg;
    s->behind = o->behind;
    s->flight = xcalloc(1, sizeof *s->flight);
    atomic_init(&s->flight->refs, 1);
    s->next = z->sockets.next;
    s->prev = &z->sockets;
    s->next->prev = s->prev->next = s;

    s->zmq = zmq_socket(z->ctx, o->type == ZSOCKET_SUB ? ZMQ_SUB : ZMQ_DEALER);
    if (s->zmq == NULL || configure(s->zmq, o) < 0)
        rc = -errno;
    if (rc == 0 && ops->gone != NULL)
        rc = open_monitor(s);
    if (rc == 0 && zmq_connect(s->zmq, o->endpoint) < 0)
        rc = -errno;
    if (rc < 0) {
        s = zsocket_close(s);
        return err_set(e, -rc, "open a socket to the kernel: %s", zmq_strerror(-rc));
    }
    s->poll = loop_poll_start(z->loop, zmq_descriptor(s->zmq), LOOP_READ, on_poll, s);
    mark_dirty(s);
    *ret = s;
    return 0;
}

void zsocket_replace(struct zsocket *from, struct zsocket *to)
{
    struct zsockets *z = from->all;

    for (struct zsocket *o = z->sockets.next; o != &z->sockets; o = o->next) {
        if (o->behind == from)
            o->behind = to;
    }
}

struct zsocket *zsocket_close(struct zsocket *s)
{
    if (s == NULL)
        return NULL;
    check(!s->closed);
    struct zsockets *z = s->all;
    set_blocked(s, 0);
    unmark(s);
    s->poll = loop_poll_close(s->poll);
    s->monitor_poll = loop_poll_close(s->monitor_poll);
    if (s->monitor != NULL) {
        zmq_socket_monitor(s->zmq, NULL, 0);
        zmq_close(s->monitor);
    }
    if (s->zmq != NULL)
        zmq_close(s->zmq);
    flight_drop(s->flight);
    zsocket_replace(s, NULL);
    s->closed = 1;
    deferred_add(z->deferred, DEFERRED_WORK, &z->reaper);
    return NULL;
}

struct zsockets *zsockets_new(struct loop *l, struct deferred *t, struct err *e)
{
    struct zsockets *z = xcalloc(1, sizeof *z);

    z->loop = l;
    z->deferred = t;
    z->sockets.next = z->sockets.prev = &z->sockets;
    z->dirty.dirty_next = z->dirty.dirty_prev = &z->dirty;
    z->reaper = (struct deferred_node){ .fn = reap, .arg = z };
    z->ctx = zmq_ctx_new();
    if (z->ctx == NULL || zmq_ctx_set(z->ctx, ZMQ_MAX_SOCKETS, SOCKETS_MAX) < 0) {
        int code = errno;
        z = zsockets_free(z);
        return err_set(e, code, "ZMQ context: %s", zmq_strerror(code)), NULL;
    }
    loop_hooks(l, readable_now, serve_turn, z);
    return z;
}

struct zsockets *zsockets_free(struct zsockets *z)
{
    if (z == NULL)
        return NULL;
    deferred_remove(z->deferred, DEFERRED_WORK, &z->reaper);
    reap(z);
    check(z->sockets.next == &z->sockets);
    loop_hooks(z->loop, NULL, NULL, NULL);
    z->blocked_timer = loop_timer_close(z->blocked_timer);
    for (unsigned i = 0; i < DEPTH_MAX; i++)
        free(z->frames[i]);
    if (z->ctx != NULL)
        zmq_ctx_term(z->ctx); /* waits for nothing: linger is 0 everywhere */
    free(z);
    return NULL;
}
