/* What time brings to runs: grace times, interrupts that are sent again, and the
 * connection that broke under them. */
#include "err.h"
#include "kernel_own.h"
#include "loop.h"
#include "seat.h"
#include "zsocket.h"

enum {
    WATCH_MS = 200,
    NOT_TAKEN_MS = 3000, /* an idle kernel takes a request in milliseconds */
    NO_ANSWER_MS = 5000, /* of a reply behind its idle: nothing waits for it as a run's end does */
};

enum {
    WATCH_AGAIN = 1,   /* interrupt the kernel again */
    WATCH_RELEASE = 2, /* a seat may send again: it has a new socket, or fewer requests are open */
};

static int is_open_run(const struct query *q)
{
    return q->is_run && !run_ended(&q->run);
}

static int works_on_a_run(const struct kernel *k)
{
    for (const struct query *q = queries_first(k->queries); q != NULL;
         q = queries_next(k->queries, q)) {
        if (is_open_run(q) && q->busy)
            return 1;
    }
    return 0;
}

/* ---- a connection that broke ---- */

/* A reply above ZGUARD_FRAME_MAX ends the asker's connection, and libzmq tells
 * nobody: it shows as a request that ended without a reply. The seat gets a new socket of
 * the same name; whether the kernel ever read what was sent behind is in doubt. */
static void reconnect(struct kernel *k, const struct query *lost, struct seat *s)
{
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (q->seat == lost->seat && q->channel == lost->channel && is_open_run(q) && !q->busy)
            q->doubtful = 1;
    }
    seat_reopen(s, lost->channel);
}

/* A doubtful run was lost when the kernel does not take it though it has nothing else
 * to do. */
static int watch_doubtful(struct kernel *k, struct query *q, int works, uint64_t now)
{
    if (q->busy) {
        q->doubtful = 0;
    } else if (works || q->quiet_since_ms == 0) {
        q->quiet_since_ms = now;
    } else if (now - q->quiet_since_ms >= NOT_TAKEN_MS) {
        run_end(&q->run, RUN_LOST);
        q->replied = q->idle = 1;
        kernel_tell_reply(k, q, "RunLost",
                          "the connection to the kernel broke before it took this");
        kernel_tell_idle(k, q->seat, q->header);
        kernel_run_ended(k, q);
        queries_settle(k->queries, q);
        return WATCH_RELEASE;
    }
    return 0;
}

/* When what ended at that time can last have been answered. Replies come in the order of ends, by another
 * socket than the idles, and behind a thousand runs they may be seconds late: while those of
 * what ended before come, its own may. */
static uint64_t answered_until(const struct kernel *k, uint64_t ended_ms)
{
    return k->replied_ms > ended_ms && k->replied_idle_ms <= ended_ms ? k->replied_ms : ended_ms;
}

/* An inspect_request, say, that ended without a reply: too large, or a kernel that
 * does not know it. */
static int watch_unanswered(struct kernel *k, struct query *q, uint64_t now)
{
    struct seat *s = seat_by_number(k, q->seat);

    if (now - answered_until(k, q->idle_ms) < NO_ANSWER_MS)
        return 0;
    q->replied = 1;
    kernel_tell_reply(k, q, "ReplyLost", "the kernel ended the request without a reply");
    if (s != NULL && k->phase == KERNEL_ALIVE && s->dealers[q->channel].socket != NULL &&
        zsocket_is_stuck(s->dealers[q->channel].socket))
        reconnect(k, q, s);
    queries_settle(k->queries, q);
    return WATCH_RELEASE;
}

/* ---- each run ---- */

/* No signal reaches a subshell, and a run that waits behind another one is not what would be hit. */
static int interrupt_again(struct kernel *k, struct query *q, uint64_t now)
{
    if (interrupt_waits(&q->interrupt))
        return 0; /* nothing was sent so far */
    /* Kernels of our runtime miss none: a cell that goes on chose to, and a second
     * interrupt is its user's to send. */
    if (k->recipe.sockets_fd || q->subshell[0] != '\0') {
        run_interrupt(&q->run, now);
        return 0;
    }
    if (!query_may_run(q)) {              /* on_watch() has looked */
        run_interrupt_sent(&q->run, now); /* looked at again later */
        return 0;
    }
    run_interrupt(&q->run, now);
    return WATCH_AGAIN;
}

/* What is to be done when all were looked at. */
static int watch_one(struct kernel *k, struct query *q, uint64_t now)
{
    /* A reply may run ahead of a flood on iopub: while that flows, its idle may come. */
    if (q->run.replied && k->iopub_ms > q->run.first_end_ms)
        q->run.first_end_ms = k->iopub_ms;
    if (q->idle && !q->replied)
        q->run.first_end_ms = answered_until(k, q->idle_ms);
    if (kernel_run_is_lost(q, now)) {
        kernel_end_lost(k, q);
        return WATCH_RELEASE;
    }
    if (silence_is_ignored(&k->silence, q, now)) {
        kernel_end_ignored(k, q);
        return WATCH_RELEASE;
    }
    enum run_due due = run_check(&q->run, now);

    if (due == RUN_INTERRUPT_AGAIN)
        return interrupt_again(k, q, now);
    if (due != RUN_ENDED)
        return 0;
    if (run_wants_reply(&q->run) && !q->replied) {
        q->replied = 1; /* one that comes later is a second one */
        if (q->run.state == RUN_TIMED_OUT)
            kernel_tell_stop(k, q, 1);
        kernel_tell_reply(k, q, q->run.state == RUN_LOST ? "RunLost" : "KeyboardInterrupt",
                          q->inherited ? kernel_lost_text
                                       : "the kernel ended the cell without a reply");
        struct seat *s = seat_by_number(k, q->seat);
        if (q->run.state == RUN_LOST && !q->inherited && s != NULL && k->phase == KERNEL_ALIVE)
            reconnect(k, q, s);
    }
    if (!q->idle) {
        q->idle = 1;
        kernel_tell_dropped(k, q);
        kernel_tell_stream(k, q->header, "\n[holdcell] the end of this cell's output was lost\n");
        kernel_tell_idle(k, q->seat, q->header);
    }
    kernel_run_ended(k, q);
    queries_settle(k->queries, q);
    return WATCH_RELEASE;
}

static void on_watch(void *arg)
{
    struct kernel *k = arg;
    uint64_t now = loop_now_ms(sessions_loop(k->all));
    int todo = 0, unanswered = 0;
    const int works = works_on_a_run(k);

    queries_mark_next(k->queries, now);
    for (struct query *q = queries_first(k->queries), *next; q != NULL; q = next) {
        next = queries_next(k->queries, q);
        if (is_open_run(q) && q->doubtful)
            todo |= watch_doubtful(k, q, works, now);
        else if (is_open_run(q))
            todo |= watch_one(k, q, now);
        else if (query_lacks_answer(q))
            unanswered = 1, todo |= watch_unanswered(k, q, now);
    }
    if (kernel_check_clocks(k, now))
        return;
    kernel_check_interrupt(k);
    kernel_watch_inherited(k, now);
    kernel_watch_silence(k, now);
    kernel_inheritance_done(k);
    if ((todo & WATCH_AGAIN) && k->phase == KERNEL_ALIVE)
        kernel_send_interrupt(k);
    if (todo & WATCH_RELEASE)
        seats_release(k); /* this adds queries */
    if (queries_runs(k->queries) > 0 || unanswered)
        return;
    k->run_timer = loop_timer_close(k->run_timer);
    seats_sweep(k);
}

void kernel_watch(struct kernel *k)
{
    if (k->run_timer != NULL)
        return;
    k->clocks_ms = loop_now_ms(sessions_loop(k->all));
    k->run_timer = loop_timer_start(sessions_loop(k->all), WATCH_MS, WATCH_MS, on_watch, k);
}

void kernel_watch_runs(struct kernel *k)
{
    if (queries_runs(k->queries) > 0)
        kernel_watch(k);
}
