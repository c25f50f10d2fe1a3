/* Sending, with a bound on the bytes that ZMQ holds for a kernel that does not take them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "loop.h"
#include "zsocket_own.h"

enum {
    BIG = 8 * 1024,  /* frames from here on are counted until the kernel took them */
    BLOCKED_MS = 10, /* ZMQ does not tell when bytes left: looked at again */
};

struct flight *flight_new(void)
{
    struct flight *f = xcalloc(1, sizeof *f);

    atomic_init(&f->refs, 1);
    return f;
}

void flight_drop(struct flight *f)
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

int zsocket_is_stuck(struct zsocket *s)
{
    zsocket_mark(s); /* the look may eat the edge that tells of input */
    return !(zsocket_events(s->zmq) & ZMQ_POLLOUT);
}

static void look_at_blocked(void *arg)
{
    struct zsockets *z = arg;

    for (struct zsocket *s = z->sockets.next; s != &z->sockets; s = s->next) {
        if (s->blocked)
            zsocket_mark(s);
    }
}

void zsocket_set_blocked(struct zsocket *s, int blocked)
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

int zsocket_is_writable(struct zsocket *s)
{
    return atomic_load(&s->flight->bytes) < ZSOCKET_IN_FLIGHT_MAX &&
           (zsocket_events(s->zmq) & ZMQ_POLLOUT) != 0;
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
            zsocket_set_blocked(s, 1);
            return err_set(e, EAGAIN, "the kernel does not take messages now");
        }
        return err_set(e, EIO, "send to the kernel: %s", zmq_strerror(errno));
    }
    return 0;
}

int zsocket_send(struct zsocket *s, const struct view *frames, size_t count, struct err *e)
{
    check(!s->closed && count > 0);
    zsocket_mark(s); /* zmq_send may have eaten the edge that told of input */
    if (!zsocket_is_writable(s)) {
        zsocket_set_blocked(s, 1);
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
