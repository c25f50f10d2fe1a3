/* conns - all connections of one server (conn.h): list, count, clock, eviction. */
#include "cleanup.h"
#include "conn_private.h"
#include "err.h"

/* Of TLS: a public-key operation each, a millisecond with an RSA key. More of them in one
 * turn would hold up whoever is connected already. */
enum { HANDSHAKE_BUDGET = 16 };

/* Bytes for all WebSockets in one turn: the same large output for a crowd of them would
 * hold up everybody else. */
enum { PULL_BUDGET = 16 * 1024 * 1024 };

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

static void tick_one(struct conn *c, void *arg)
{
    conn_tick(c, loop_now_ms(arg));
}

static void on_tick(void *arg)
{
    struct conns *all = arg;

    conns_each(all, tick_one, all->loop);
}

void conns_add(struct conns *all, struct conn *c)
{
    list_append(all, c);
    if (all->count++ == 0)
        all->timer = loop_timer_start(all->loop, all->tick_ms, all->tick_ms, on_tick, all);
}

void conns_remove(struct conns *all, struct conn *c)
{
    list_unlink(all, c);
    if (--all->count == 0)
        all->timer = loop_timer_close(all->timer);
}

void conns_heard(struct conns *all, struct conn *c)
{
    list_unlink(all, c);
    list_append(all, c);
}

static void on_turn_end(void *arg)
{
    struct conns *all = arg;

    all->handshake_steps = 0;
    all->pulled = 0;
}

int conns_may_shake(struct conns *all)
{
    deferred_add(all->deferred, DEFERRED_FLUSH, &all->turn_end);
    return all->handshake_steps++ < HANDSHAKE_BUDGET;
}

int conns_may_pull(struct conns *all)
{
    return all->pulled < PULL_BUDGET;
}

void conns_pulled(struct conns *all, size_t bytes)
{
    deferred_add(all->deferred, DEFERRED_FLUSH, &all->turn_end);
    all->pulled += bytes;
}

void conns_shaken(struct conns *all, struct conn *c)
{
    if (!c->handshake)
        return;
    c->handshake = 0;
    all->handshakes--;
}

struct conns *conns_new(struct loop *l, uint64_t tick_ms)
{
    struct conns *all = xcalloc(1, sizeof *all);

    all->loop = l;
    all->tick_ms = tick_ms;
    all->deferred = deferred_new(l);
    all->turn_end = (struct deferred_node){ .fn = on_turn_end, .arg = all };
    return all;
}

struct conns *conns_close(struct conns *all)
{
    if (all == NULL)
        return NULL;
    check(all->count == 0 && all->handshakes == 0);
    deferred_remove(all->deferred, DEFERRED_FLUSH, &all->turn_end);
    all->deferred = deferred_close(all->deferred);
    free(all);
    return NULL;
}

unsigned conns_count(const struct conns *all)
{
    return all->count;
}

struct deferred *conns_deferred(struct conns *all)
{
    return all->deferred;
}

struct loop *conns_loop(struct conns *all)
{
    return all->loop;
}

/* One that lingers has its answer, as far as we know; without this a crowd of refused ones
 * would keep everybody out for as long as they linger. */
static int may_give_way(const struct conn *c)
{
    return (c->state == CONN_OPEN && c->ops->idle(c->arg)) ||
           (c->state == CONN_FINISHING && c->fin);
}

/* Answers that nobody takes, and that nobody's share bounds: without this a crowd that asks
 * for what needs no token and reads nothing would keep everybody out. */
static int must_give_way(const struct conn *c)
{
    return c->state != CONN_DEAD && c->blocked && !c->ops->counted(c->arg);
}

int conns_evict(struct conns *all)
{
    struct conn *second = NULL;

    for (struct conn *c = all->first; c != NULL; c = c->next) {
        if (may_give_way(c)) {
            conn_abort(c);
            return 1;
        }
        if (second == NULL && must_give_way(c))
            second = c;
    }
    if (second != NULL)
        conn_abort(second);
    return second != NULL;
}

unsigned conns_handshakes(const struct conns *all)
{
    return all->handshakes;
}

int conns_evict_handshake(struct conns *all)
{
    for (struct conn *c = all->first; c != NULL; c = c->next) {
        if (c->handshake) {
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
