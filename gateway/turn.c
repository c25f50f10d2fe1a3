#include "turn.h"

#include <stddef.h>

#include "err.h"

struct turns {
    struct loop *loop;      /* borrowed */
    struct turn_item items; /* ring with this as its head */
    int (*busy)(void *arg);
    loop_fn *run;
    void *source_arg; /* borrowed */
};

static int before(void *arg)
{
    struct turns *t = arg;

    /* Both are asked: the source uses the call to look at its sockets. */
    int busy = t->busy != NULL && t->busy(t->source_arg);
    return busy || t->items.next != &t->items;
}

static void after(void *arg)
{
    struct turns *t = arg;
    struct turn_item now;

    if (t->run != NULL)
        t->run(t->source_arg);
    if (t->items.next == &t->items)
        return;
    /* The ring is moved to a head of its own: an item that queues itself again
     * runs in the next turn, and one may cancel another. */
    now.next = t->items.next;
    now.prev = t->items.prev;
    now.next->prev = now.prev->next = &now;
    t->items.next = t->items.prev = &t->items;
    while (now.next != &now) {
        struct turn_item *item = now.next;
        turn_cancel(item);
        item->fn(item->arg);
    }
}

struct turns *turns_new(struct loop *l)
{
    struct turns *t = xcalloc(1, sizeof *t);

    t->loop = l;
    t->items.next = t->items.prev = &t->items;
    loop_hooks(l, before, after, t);
    return t;
}

struct turns *turns_free(struct turns *t)
{
    if (t == NULL)
        return NULL;
    loop_hooks(t->loop, NULL, NULL, NULL);
    check(t->items.next == &t->items);
    free(t);
    return NULL;
}

void turns_source(struct turns *t, int (*busy)(void *arg), loop_fn *run, void *arg)
{
    t->busy = busy;
    t->run = run;
    t->source_arg = arg;
}

void turn_later(struct turns *t, struct turn_item *item)
{
    if (item->next != NULL)
        return;
    item->prev = t->items.prev;
    item->next = &t->items;
    item->prev->next = item->next->prev = item;
}

void turn_cancel(struct turn_item *item)
{
    if (item->next == NULL)
        return;
    item->prev->next = item->next;
    item->next->prev = item->prev;
    item->prev = item->next = NULL;
}
