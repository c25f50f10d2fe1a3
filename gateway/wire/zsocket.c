#include "zsocket.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "loop.h"
#include "zsocket_own.h"

enum {
    SOCKETS_MAX = 32768,
    SEND_HWM = 1000,
    RECONNECT_NEVER = INT_MAX, /* ms: 24 days, see configure() */
    STALL_LOOK_MS = 1000,
    ZERO_COPY_RECV = 10, /* zmq.h of 4.3 names it for programs built with DRAFT alone */
};

void zsocket_mark(struct zsocket *s)
{
    struct zsockets *z = s->all;

    if (s->dirty_next != NULL)
        return;
    s->dirty_prev = z->dirty.dirty_prev;
    s->dirty_next = &z->dirty;
    s->dirty_prev->dirty_next = s->dirty_next->dirty_prev = s;
}

void zsocket_unmark(struct zsocket *s)
{
    if (s->dirty_next == NULL)
        return;
    s->dirty_prev->dirty_next = s->dirty_next;
    s->dirty_next->dirty_prev = s->dirty_prev;
    s->dirty_prev = s->dirty_next = NULL;
}

int zsocket_events(void *zmq)
{
    int events = 0, rc;
    size_t n = sizeof events;

    /* A signal may come behind the edge that it has eaten: asked until there is an answer. */
    do
        rc = zmq_getsockopt(zmq, ZMQ_EVENTS, &events, &n);
    while (rc < 0 && errno == EINTR);
    return rc < 0 ? 0 : events;
}

/* ---- one socket ---- */

static void on_poll(void *arg, int events)
{
    (void)events;
    zsocket_mark(arg);
}

static void on_monitor(void *arg, int events)
{
    struct zsocket *s = arg;

    (void)events;
    s->look = 1;
    zsocket_mark(s);
}

static int set_int(void *zmq, int option, int value)
{
    return zmq_setsockopt(zmq, option, &value, sizeof value);
}

static int configure(void *zmq, const struct zsocket_options *o)
{
    int64_t frame_max = ZGUARD_FRAME_MAX;
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

/* Handshake and end are told through a PAIR inside the context. */
static int open_monitor(struct zsocket *s)
{
    int events = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED;
    char name[64];

    snprintf(name, sizeof name, "inproc://monitor-%llu", ++s->all->monitors);
    if (s->ops.joined != NULL)
        events |= ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
    if (zmq_socket_monitor(s->zmq, name, events) < 0)
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

void zsocket_end_monitor(struct zsocket *s)
{
    s->look = 0;
    s->monitor_poll = loop_poll_close(s->monitor_poll);
    if (s->monitor == NULL)
        return;
    zmq_socket_monitor(s->zmq, NULL, 0);
    zmq_close(s->monitor);
    s->monitor = NULL;
}

struct zsocket_peer *zsocket_peer_new(zsocket_broke_fn *broke, void *arg)
{
    struct zsocket_peer *p = xcalloc(1, sizeof *p);

    p->guard = zguard_kernel_new();
    p->broke = broke;
    p->arg = arg;
    return p;
}

struct zsocket_peer *zsocket_peer_free(struct zsocket_peer *p)
{
    if (p == NULL)
        return NULL;
    p->guard = zguard_kernel_drop(p->guard);
    p->flight = flight_drop(p->flight);
    free(p);
    return NULL;
}

static int connect_guarded(struct zsocket *s, const char *path)
{
    char endpoint[ZGUARD_ENDPOINT];

    s->guard = zguard_open(s->peer->guard, path, endpoint);
    return zmq_connect(s->zmq, endpoint) < 0 ? -errno : 0;
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
    if (o->peer == NULL)
        s->own_peer = zsocket_peer_new(NULL, NULL);
    s->peer = o->peer != NULL ? o->peer : s->own_peer;
    if (s->peer->flight == NULL)
        s->peer->flight = flight_new(z->flight);
    s->flight = flight_new(s->peer->flight);
    s->next = z->sockets.next;
    s->prev = &z->sockets;
    s->next->prev = s->prev->next = s;

    s->zmq = zmq_socket(z->ctx, o->type == ZSOCKET_SUB ? ZMQ_SUB : ZMQ_DEALER);
    if (s->zmq == NULL || configure(s->zmq, o) < 0)
        rc = -errno;
    if (rc == 0 && (ops->gone != NULL || ops->joined != NULL))
        rc = open_monitor(s);
    if (rc == 0)
        rc = connect_guarded(s, o->path);
    if (rc < 0) {
        s = zsocket_close(s);
        return err_set(e, -rc, "open a socket to the kernel: %s", zmq_strerror(-rc));
    }
    s->poll = loop_poll_start(z->loop, zmq_descriptor(s->zmq), LOOP_READ, on_poll, s);
    zsocket_mark(s);
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
    zsocket_set_blocked(s, 0);
    zsocket_unmark(s);
    s->poll = loop_poll_close(s->poll);
    zsocket_end_monitor(s);
    s->guard = zguard_close(s->guard); /* first: zguard.h */
    if (s->zmq != NULL)
        zmq_close(s->zmq);
    s->own_peer = zsocket_peer_free(s->own_peer);
    s->peer = NULL;
    s->flight = flight_drop(s->flight);
    zsocket_replace(s, NULL);
    s->closed = 1;
    deferred_add(z->deferred, DEFERRED_WORK, &z->reaper);
    return NULL;
}

/* ---- all of them ---- */

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

/* A callback may close sockets, whose memory stays until reap(). */
static void on_notices(void *arg, int events)
{
    struct zsockets *z = arg;

    (void)events;
    zguard_notices_taken();
    for (struct zsocket *s = z->sockets.next; s != &z->sockets; s = s->next) {
        const char *why = s->closed ? NULL : zguard_fault(s->guard);
        if (why != NULL && s->peer->broke != NULL)
            s->peer->broke(s->peer->arg, why);
    }
}

static void look_for_stalls(void *arg)
{
    (void)arg;
    zguard_end_stalled(ZGUARD_STALL_MS);
}

/* Without zero copy: with it a part of 34 bytes may hold a buffer of 18 KiB. */
static int make_context(struct zsockets *z)
{
    z->ctx = zmq_ctx_new();
    if (z->ctx == NULL || zmq_ctx_set(z->ctx, ZMQ_MAX_SOCKETS, SOCKETS_MAX) < 0 ||
        zmq_ctx_set(z->ctx, ZERO_COPY_RECV, 0) < 0)
        return -errno;
    return 0;
}

struct zsockets *zsockets_new(struct loop *l, struct deferred *t, struct err *e)
{
    struct zsockets *z = xcalloc(1, sizeof *z);

    z->loop = l;
    z->deferred = t;
    z->sockets.next = z->sockets.prev = &z->sockets;
    z->dirty.dirty_next = z->dirty.dirty_prev = &z->dirty;
    z->reaper = (struct deferred_node){ .fn = reap, .arg = z };
    z->flight = flight_new(NULL);
    int rc = make_context(z), notices = rc < 0 ? rc : zguard_notices();
    if (notices < 0) {
        z = zsockets_free(z);
        return err_set(e, -notices, "ZMQ context: %s", zmq_strerror(-notices)), NULL;
    }
    z->notices = loop_poll_start(l, notices, LOOP_READ, on_notices, z);
    z->stall_timer = loop_timer_start(l, STALL_LOOK_MS, STALL_LOOK_MS, look_for_stalls, z);
    loop_hooks(l, zsockets_readable_now, zsockets_serve_turn, z);
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
    z->stall_timer = loop_timer_close(z->stall_timer);
    z->notices = loop_poll_close(z->notices);
    for (unsigned i = 0; i < ZSOCKET_DEPTH_MAX; i++)
        free(z->frames[i]);
    if (z->ctx != NULL)
        zmq_ctx_term(z->ctx); /* waits for nothing: linger is 0 everywhere */
    z->flight = flight_drop(z->flight);
    free(z);
    return NULL;
}
