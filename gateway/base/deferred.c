/*
 * deferred - see deferred.h. A uv_check runs the work, a uv_prepare the flushes; a no-op
 * uv_idle is active while work waits, so that the poll between them returns at once.
 */
#include "deferred.h"

#include <uv.h>

#include "err.h"

struct queue {
    struct deferred_node head; /* ring: head.next is the first */
    unsigned count;
};

struct deferred {
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
    struct queue queues[DEFERRED_KINDS];
    unsigned open_handles;
};

static void node_unlink(struct queue *q, struct deferred_node *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->queued = 0;
    q->count--;
}

static void node_append(struct queue *q, struct deferred_node *n)
{
    n->prev = q->head.prev;
    n->next = &q->head;
    q->head.prev->next = n;
    q->head.prev = n;
    n->queued = 1;
    q->count++;
}

/* Runs as many as were queued when it was called, not those that they add. */
static void queue_run(struct queue *q)
{
    for (unsigned left = q->count; left > 0 && q->count > 0; left--) {
        struct deferred_node *n = q->head.next;

        node_unlink(q, n);
        n->fn(n->arg);
    }
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle;
}

static void on_check(uv_check_t *handle)
{
    struct deferred *t = handle->data;

    queue_run(&t->queues[DEFERRED_WORK]);
    if (t->queues[DEFERRED_WORK].count == 0)
        uv_idle_stop(&t->idle);
}

static void on_prepare(uv_prepare_t *handle)
{
    struct deferred *t = handle->data;

    queue_run(&t->queues[DEFERRED_FLUSH]);
}

struct deferred *deferred_new(struct loop *l)
{
    struct deferred *t = xcalloc(1, sizeof *t);
    uv_loop_t *uv = loop_uv(l);

    for (unsigned kind = 0; kind < DEFERRED_KINDS; kind++)
        t->queues[kind].head.prev = t->queues[kind].head.next = &t->queues[kind].head;
    check(uv_prepare_init(uv, &t->prepare) == 0);
    check(uv_check_init(uv, &t->check) == 0);
    check(uv_idle_init(uv, &t->idle) == 0);
    t->prepare.data = t->check.data = t->idle.data = t;
    t->open_handles = 3;
    check(uv_prepare_start(&t->prepare, on_prepare) == 0);
    check(uv_check_start(&t->check, on_check) == 0);
    return t;
}

static void on_close(uv_handle_t *handle)
{
    struct deferred *t = handle->data;

    if (--t->open_handles == 0)
        free(t);
}

struct deferred *deferred_close(struct deferred *t)
{
    if (t == NULL)
        return NULL;
    for (unsigned kind = 0; kind < DEFERRED_KINDS; kind++)
        check(t->queues[kind].count == 0);
    uv_close((uv_handle_t *)&t->prepare, on_close);
    uv_close((uv_handle_t *)&t->check, on_close);
    uv_close((uv_handle_t *)&t->idle, on_close);
    return NULL;
}

void deferred_add(struct deferred *t, enum deferred_kind kind, struct deferred_node *n)
{
    if (n->queued)
        return;
    node_append(&t->queues[kind], n);
    if (kind == DEFERRED_WORK)
        check(uv_idle_start(&t->idle, on_idle) == 0);
}

void deferred_remove(struct deferred *t, enum deferred_kind kind, struct deferred_node *n)
{
    if (n->queued)
        node_unlink(&t->queues[kind], n);
}
