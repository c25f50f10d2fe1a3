/* Sending, with a bound on the bytes that ZMQ holds for a kernel that does not take them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "loop.h"
#include "zsocket_own.h"

enum {
    BIG = 8 * 1024,  /* messages from here on are counted until the kernel took them */
    BLOCKED_MS = 10, /* ZMQ does not tell when bytes left: looked at again */
};

struct flight *flight_new(struct flight *in)
{
    struct flight *f = xcalloc(1, sizeof *f);

    f->in = in;
    if (in != NULL)
        atomic_fetch_add(&in->refs, 1);
    atomic_init(&f->refs, 1);
    return f;
}

struct flight *flight_drop(struct flight *f)
{
    while (f != NULL && atomic_fetch_sub(&f->refs, 1) == 1) {
        struct flight *in = f->in;

        free(f);
        f = in;
    }
    return NULL;
}

static void flight_add(struct flight *f, size_t n)
{
    atomic_fetch_add(&f->refs, 1);
    for (; f != NULL; f = f->in)
        atomic_fetch_add(&f->bytes, n);
}

static void flight_remove(struct flight *f, size_t n)
{
    for (struct flight *i = f; i != NULL; i = i->in)
        atomic_fetch_sub(&i->bytes, n);
    flight_drop(f);
}

/* The kernel may have as much as all together leave free. */
static int flight_has_room(const struct flight *of_socket)
{
    const struct flight *kernel = of_socket->in, *all = kernel->in;
    size_t own = atomic_load(&kernel->bytes);

    return own == 0 || own + atomic_load(&all->bytes) < ZSOCKET_ALL_IN_FLIGHT_MAX;
}

/* A frame that tells when it has left. The last one of a message does so for the whole: however its bytes are cut into
 * frames, they are counted. */
struct counted {
    struct flight *flight; /* shared */
    size_t n;              /* bytes of the message */
    uint8_t bytes[];
};

/* Called on ZMQ's I/O thread once the frame was written to the kernel. */
static void counted_sent(void *data, void *hint)
{
    struct counted *c = hint;

    (void)data;
    flight_remove(c->flight, c->n);
    free(c);
}

static int make_frame(struct view v, zmq_msg_t *m)
{
    if (zmq_msg_init_size(m, v.n) < 0)
        return -ENOMEM;
    if (v.n > 0)
        memcpy(zmq_msg_data(m), v.p, v.n);
    return 0;
}

static int make_counted_frame(struct zsocket *s, struct view v, size_t of_message, zmq_msg_t *m)
{
    struct counted *c = malloc(sizeof *c + v.n);

    if (c == NULL)
        return -ENOMEM;
    c->flight = s->flight;
    c->n = of_message;
    if (v.n > 0)
        memcpy(c->bytes, v.p, v.n);
    if (zmq_msg_init_data(m, c->bytes, v.n, counted_sent, c) < 0) {
        free(c);
        return -ENOMEM;
    }
    flight_add(s->flight, of_message);
    return 0;
}

/* What ZMQ takes for it, with the frames themselves: a message may be of nothing but empty ones. */
static size_t bytes_of(const struct view *frames, size_t count)
{
    size_t n = count * sizeof(zmq_msg_t);

    for (size_t i = 0; i < count; i++)
        n += frames[i].n;
    return n;
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

/* bytes: of the message. A small one needs no room among those of others: an interrupt passes. */
static int takes(struct zsocket *s, size_t bytes)
{
    return atomic_load(&s->flight->bytes) < ZSOCKET_IN_FLIGHT_MAX &&
           (bytes < BIG || flight_has_room(s->flight)) &&
           (zsocket_events(s->zmq) & ZMQ_POLLOUT) != 0;
}

int zsocket_is_writable(struct zsocket *s)
{
    return takes(s, BIG);
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

int zsocket_takes(struct zsocket *s, size_t bytes)
{
    zsocket_mark(s); /* the look may eat the edge that tells of input, and so may zmq_send */
    int can = takes(s, bytes);
    if (!can)
        zsocket_set_blocked(s, 1);
    return can;
}

int zsocket_send(struct zsocket *s, const struct view *frames, size_t count, struct err *e)
{
    check(!s->closed && count > 0);
    size_t bytes = bytes_of(frames, count);
    if (!zsocket_takes(s, bytes))
        return err_set(e, EAGAIN, "the kernel does not take messages now");
    zmq_msg_t *msgs = calloc(count, sizeof *msgs);
    size_t made = 0;
    int rc = msgs != NULL ? 0 : -ENOMEM;
    while (rc == 0 && made < count) {
        int last = made + 1 == count;
        rc = last && bytes >= BIG ? make_counted_frame(s, frames[made], bytes, &msgs[made])
                                  : make_frame(frames[made], &msgs[made]);
        made += rc == 0;
    }
    rc = rc < 0 ? err_set(e, ENOMEM, "no memory for a message") : send_all(s, msgs, count, e);
    for (size_t i = 0; i < made; i++)
        zmq_msg_close(&msgs[i]); /* of a frame that was sent: nothing is left in it */
    free(msgs);
    return rc;
}
