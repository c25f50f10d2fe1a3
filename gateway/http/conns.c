/* conns - all connections of one server (conn.h): list, count, clock, eviction. */
#include "cleanup.h"
#include "conn_private.h"
#include "err.h"

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

struct conns *conns_new(struct loop *l, uint64_t tick_ms)
{
    struct conns *all = xcalloc(1, sizeof *all);

    all->loop = l;
    all->tick_ms = tick_ms;
    all->deferred = deferred_new(l);
    return all;
}

struct conns *conns_close(struct conns *all)
{
    if (all == NULL)
        return NULL;
    check(all->count == 0);
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

int conns_evict(struct conns *all)
{
    for (struct conn *c = all->first; c != NULL; c = c->next) {
        if (c->state == CONN_OPEN && c->ops->idle(c->arg)) {
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
