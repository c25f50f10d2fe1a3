/* Reading with a budget, and the order of it: iopub before the replies that came after it. */
#include <errno.h>
#include <string.h>

#include "err.h"
#include "loop.h"
#include "zsocket_own.h"

enum {
    BUDGET = 64,              /* messages of a kernel per turn: those of its SUB, of its DEALERs */
    BUDGET_COST = 256 * 1024, /* of their frames: the other kernels wait for a turn to end */
    DRAIN = 64,               /* messages that one call of zsocket_drain() reads, and their cost */
    DRAIN_COST = 1 << 20,
    HEAVY_US = 3000, /* of a turn, for all kernels that use up their budgets */
    FRAMES_MAX =
        1100, /* read at a time; a longer message is passed as its first ones, which jmsg refuses */
    BEHIND_MS = 1000, /* how long a reply waits for a flood on iopub */
};

struct zsocket_frames {
    zmq_msg_t msgs[FRAMES_MAX];
    struct view views[FRAMES_MAX];
    size_t count, cost; /* as the guard counts it */
};

/* 1: a whole message is in f; 0: none now. Parts beyond FRAMES_MAX are read and dropped. */
static int receive(void *zmq, struct zsocket_frames *f)
{
    int more = 1;

    f->count = f->cost = 0;
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
        f->cost += zmq_msg_size(m) + ZGUARD_PART_COST;
        if (m == &dropped) {
            zmq_msg_close(m);
            continue;
        }
        f->views[f->count] = (struct view){ zmq_msg_data(m), zmq_msg_size(m) };
        f->count++;
    }
    return f->count > 0;
}

static void release(struct zsocket_frames *f)
{
    for (size_t i = 0; i < f->count; i++)
        zmq_msg_close(&f->msgs[i]);
}

/* What the kernel used of this turn; all its DEALERs have one budget. */
static struct zsocket_turn *turn_of(struct zsocket *s)
{
    struct zsocket_turn *t = &s->peer->turns[s->type];

    if (t->number != s->all->turn)
        *t = (struct zsocket_turn){ .number = s->all->turn };
    return t;
}

static int has_budget(struct zsocket *s)
{
    const struct zsocket_turn *t = turn_of(s);

    return t->messages < BUDGET && t->cost < BUDGET_COST;
}

/* What the kernel published before this reply has arrived by now. It counts for the reply. */
static void drain_before(struct zsocket *s)
{
    struct zsocket *behind = s->behind;

    if (behind == NULL)
        return;
    size_t before = turn_of(behind)->cost;
    zsocket_drain(behind);
    if (!behind->closed && !s->closed)
        turn_of(s)->cost += turn_of(behind)->cost - before;
}

/* One message: its cost, or 0 when there is none. s may be closed inside by its owner; its memory
 * stays until the end of the turn. */
static size_t serve_message(struct zsocket *s, struct zsocket_frames *f)
{
    if (!receive(s->zmq, f))
        return 0;
    turn_of(s)->messages++;
    turn_of(s)->cost += f->cost;
    drain_before(s);
    if (!s->closed)
        s->ops.message(s->arg, f->views, f->count);
    release(f);
    if (!s->closed)
        zguard_give(s->guard, f->cost);
    return f->cost;
}

/* Reads messages up to the turn's budget, or a drain's; one at least. Returns 1 when more may be
 * left. */
static int serve_input(struct zsocket *s, int drain)
{
    struct zsockets *z = s->all;
    size_t count = 0, cost = 0, last;

    check(z->depth < ZSOCKET_DEPTH_MAX);
    if (z->frames[z->depth] == NULL)
        z->frames[z->depth] = xcalloc(1, sizeof *z->frames[0]);
    struct zsocket_frames *f = z->frames[z->depth++];
    do {
        last = serve_message(s, f);
        cost += last;
        count++;
    } while (last > 0 && !s->closed &&
             (drain ? count < DRAIN && cost < DRAIN_COST : has_budget(s)));
    z->depth--;
    if (!s->closed)
        s->peer->heavy[s->type] = last > 0;
    return last > 0;
}

int zsocket_drain(struct zsocket *s)
{
    zsocket_mark(s);
    return serve_input(s, 1);
}

static int must_wait(struct zsocket *s)
{
    if (s->behind == NULL || !(zsocket_events(s->behind->zmq) & ZMQ_POLLIN)) {
        s->behind_since_ms = 0;
        return 0;
    }
    zsocket_mark(s->behind); /* asking for its events may have eaten the edge that told of input */
    uint64_t now = loop_now_ms(s->all->loop);
    if (s->behind_since_ms == 0)
        s->behind_since_ms = now;
    return now - s->behind_since_ms < BEHIND_MS;
}

/* Monitor messages: event number and value, then the endpoint. Read to the end:
 * the monitor's descriptor tells of the next one only then. */
static void read_monitor(struct zsocket *s)
{
    zmq_msg_t m;

    s->look = 0;
    for (;;) {
        zmq_msg_init(&m);
        if (zmq_msg_recv(&m, s->monitor, ZMQ_DONTWAIT) < 0) {
            int code = errno;
            zmq_msg_close(&m);
            if (code == EINTR)
                continue;
            return;
        }
        uint16_t event = 0;
        if (zmq_msg_more(&m) && zmq_msg_size(&m) >= sizeof event) {
            memcpy(&event, zmq_msg_data(&m), sizeof event);
            s->gone |= (event & (ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED)) != 0;
            s->joined |= (event & ZMQ_EVENT_HANDSHAKE_SUCCEEDED) != 0;
        }
        zmq_msg_close(&m);
    }
}

int zsocket_is_joined(struct zsocket *s)
{
    if (s->monitor != NULL && !s->joined) {
        read_monitor(s);
        s->look = s->joined || s->gone; /* the owner is still to be told */
        if (s->look)
            zsocket_mark(s);
    }
    return s->joined;
}

/* s may be closed inside by its owner. */
static void serve_monitor(struct zsocket *s)
{
    read_monitor(s);
    if (s->gone) {
        s->gone = 0;
        if (s->ops.gone != NULL)
            s->ops.gone(s->arg);
        return;
    }
    if (!s->joined || s->joined_told)
        return;
    s->joined_told = 1;
    zsocket_end_monitor(s); /* two sockets and their descriptors, for each client */
    s->ops.joined(s->arg);
}

static void serve(struct zsocket *s)
{
    int events = zsocket_events(s->zmq);

    if ((events & ZMQ_POLLIN) && !must_wait(s))
        serve_input(s, 0);
    if (!s->closed && s->blocked && zsocket_is_writable(s)) {
        zsocket_set_blocked(s, 0);
        s->ops.writable(s->arg);
    }
    /* After its last messages. */
    if (!s->closed && s->look)
        serve_monitor(s);
}

/* ---- the loop's hooks ---- */

int zsockets_readable_now(void *arg)
{
    struct zsockets *z = arg;
    int busy = 0;

    for (struct zsocket *s = z->dirty.dirty_next, *next; s != &z->dirty; s = next) {
        next = s->dirty_next;
        int events = zsocket_events(s->zmq);
        if (events & ZMQ_POLLIN || s->look || (s->blocked && zsocket_is_writable(s)))
            busy = 1;
        else
            zsocket_unmark(s);
    }
    return busy;
}

/* Those whose kernels used up no budget when they were served last, or (heavy) the others, while
 * there is time: whose turn does not come stays where it is, before those that had theirs. */
static void serve_some(struct zsocket *const *list, size_t count, enum zsocket_type type, int heavy)
{
    uint64_t end = clock_monotonic_us() + HEAVY_US;

    for (size_t i = 0; i < count; i++) {
        struct zsocket *s = list[i];
        if (s->closed || (s->peer->heavy[type] != 0) != heavy || !has_budget(s))
            continue;
        serve(s);
        /* To the end, so that all have their turn. */
        if (!s->closed && s->dirty_next != NULL) {
            zsocket_unmark(s);
            zsocket_mark(s);
        }
        if (heavy && clock_monotonic_us() >= end)
            return;
    }
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
    serve_some(list, count, type, 0);
    serve_some(list, count, type, 1);
}

void zsockets_serve_turn(void *arg)
{
    struct zsockets *z = arg;

    z->turn++;
    serve_rank(z, ZSOCKET_SUB); /* iopub first: T40 of jupyter-wire.md */
    serve_rank(z, ZSOCKET_DEALER);
}
