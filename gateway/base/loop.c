#include "loop.h"

#include <time.h>
#include <uv.h>

#include "err.h"

struct loop {
    uv_loop_t uv;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t
        idle; /* runs while something is readable already: the loop then polls without waiting */
    int (*before)(void *arg);
    loop_fn *after;
    void *hook_arg; /* borrowed from who set the hooks */
};

struct loop_timer {
    uv_timer_t uv;
    loop_fn *fn;
    void *arg; /* borrowed */
};

struct loop_poll {
    uv_poll_t uv;
    loop_poll_fn *fn;
    void *arg; /* borrowed */
};

static void on_idle(uv_idle_t *h)
{
    (void)h;
}

static void on_prepare(uv_prepare_t *h)
{
    struct loop *l = h->data;

    /* uv_run() computes its time-out after the prepare callbacks: an idle handle
     * that is started here makes this very poll return at once. */
    if (l->before != NULL && l->before(l->hook_arg))
        uv_idle_start(&l->idle, on_idle);
    else
        uv_idle_stop(&l->idle);
}

static void on_check(uv_check_t *h)
{
    struct loop *l = h->data;

    if (l->after != NULL)
        l->after(l->hook_arg);
}

struct loop *loop_new(void)
{
    struct loop *l = xcalloc(1, sizeof *l);

    /* These fail only without memory or descriptors, at start-up. */
    check(uv_loop_init(&l->uv) == 0);
    check(uv_prepare_init(&l->uv, &l->prepare) == 0);
    check(uv_check_init(&l->uv, &l->check) == 0);
    check(uv_idle_init(&l->uv, &l->idle) == 0);
    l->prepare.data = l->check.data = l->idle.data = l;
    uv_prepare_start(&l->prepare, on_prepare);
    uv_check_start(&l->check, on_check);
    return l;
}

struct loop *loop_free(struct loop *l)
{
    if (l == NULL)
        return NULL;
    uv_close((uv_handle_t *)&l->prepare, NULL);
    uv_close((uv_handle_t *)&l->check, NULL);
    uv_close((uv_handle_t *)&l->idle, NULL);
    /* Runs the close callbacks that are due; an open handle makes the check below fail. */
    uv_run(&l->uv, UV_RUN_NOWAIT);
    uv_run(&l->uv, UV_RUN_NOWAIT);
    check(uv_loop_close(&l->uv) == 0);
    free(l);
    return NULL;
}

void loop_run(struct loop *l)
{
    uv_run(&l->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *l)
{
    uv_stop(&l->uv);
}

void *loop_uv(struct loop *l)
{
    return &l->uv;
}

uint64_t loop_now_ms(const struct loop *l)
{
    return uv_now(&l->uv);
}

uint64_t clock_monotonic_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t clock_realtime_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void on_timer(uv_timer_t *h)
{
    struct loop_timer *t = h->data;

    t->fn(t->arg);
}

static void free_timer(uv_handle_t *h)
{
    free(h->data);
}

struct loop_timer *loop_timer_start(struct loop *l, uint64_t delay_ms, uint64_t repeat_ms,
                                    loop_fn *fn, void *arg)
{
    struct loop_timer *t = xcalloc(1, sizeof *t);

    t->fn = fn;
    t->arg = arg;
    uv_timer_init(&l->uv, &t->uv);
    t->uv.data = t;
    /* The turn's clock may be old when a callback before took long. */
    uv_update_time(&l->uv);
    uv_timer_start(&t->uv, on_timer, delay_ms, repeat_ms);
    return t;
}

struct loop_timer *loop_timer_close(struct loop_timer *t)
{
    if (t != NULL)
        uv_close((uv_handle_t *)&t->uv, free_timer);
    return NULL;
}

static int to_uv(int events)
{
    return (events & LOOP_READ ? UV_READABLE : 0) | (events & LOOP_WRITE ? UV_WRITABLE : 0) |
           (events & LOOP_PRI ? UV_PRIORITIZED : 0);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct loop_poll *p = h->data;

    if (status < 0) {
        p->fn(p->arg, status);
        return;
    }
    p->fn(p->arg, (events & UV_READABLE ? LOOP_READ : 0) | (events & UV_WRITABLE ? LOOP_WRITE : 0) |
                      (events & UV_PRIORITIZED ? LOOP_PRI : 0));
}

struct loop_poll *loop_poll_start(struct loop *l, int fd, int events, loop_poll_fn *fn, void *arg)
{
    struct loop_poll *p = xcalloc(1, sizeof *p);

    p->fn = fn;
    p->arg = arg;
    /* Fails for a descriptor that cannot be polled or is watched already: both are ours to avoid. */
    check(uv_poll_init(&l->uv, &p->uv, fd) == 0);
    p->uv.data = p;
    loop_poll_events(p, events);
    return p;
}

void loop_poll_events(struct loop_poll *p, int events)
{
    if (events == 0)
        uv_poll_stop(&p->uv);
    else
        check(uv_poll_start(&p->uv, to_uv(events), on_poll) == 0);
}

static void free_poll(uv_handle_t *h)
{
    free(h->data);
}

struct loop_poll *loop_poll_close(struct loop_poll *p)
{
    if (p != NULL)
        uv_close((uv_handle_t *)&p->uv, free_poll);
    return NULL;
}

void loop_hooks(struct loop *l, int (*before)(void *arg), loop_fn *after, void *arg)
{
    l->before = before;
    l->after = after;
    l->hook_arg = arg;
}
