#include "culling.h"

#include "cull.h"
#include "kernel_own.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "seat.h"
#include "sessions_own.h"

/* What clients asked, and not what the kernel says: a cell may have it say busy for ever. Messages that wait
 * for the kernel to come up are work too. */
static int has_work(const struct kernel *k)
{
    uint64_t now = loop_now_ms(k->all->loop);

    if (k->adopted || queries_runs(k->queries) > 0 || k->seeding != NULL)
        return 1;
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (query_works(q, now))
            return 1;
    }
    for (const struct seat *s = k->seats; s != NULL; s = s->next) {
        if (s->held != NULL)
            return 1;
    }
    return 0;
}

static void on_culled(void *arg, uint64_t token, struct kernel *k, const struct err *e)
{
    (void)arg;
    (void)token;
    (void)k;
    (void)e; /* its end is in the log */
}

/* Kernels that are dead for good leave by themselves, whatever the times are. */
static void look_at(struct sessions *s, struct kernel *k, uint64_t now)
{
    const struct cull_case c = {
        .idle_ms = now > k->activity.last_ms ? now - k->activity.last_ms : 0,
        .spec_ms = k->recipe.cull_ms,
        .busy = has_work(k),
        .connections = k->connections,
    };
    uint64_t limit;

    if (k->goal == KERNEL_DELETE || k->phase == KERNEL_GONE ||
        !cull_is_due(&s->policy.cull, &c, &limit))
        return;
    metrics_count(METRIC_KERNELS_CULLED, 0);
    kernel_audit(k, "kernel_cull", NULL, NULL);
    log_info("kernel_culled",
             "kernel=%s principal=%s idle_s=%llu limit_s=%llu busy=%d connections=%u", k->id,
             kernel_owner(k), (unsigned long long)(c.idle_ms / 1000),
             (unsigned long long)(limit / 1000), c.busy, c.connections);
    kernel_delete(k, on_culled, s, 0);
}

static void on_cull(void *arg)
{
    struct sessions *s = arg;
    uint64_t now = loop_now_ms(s->loop);

    for (struct kernel *k = sessions_first_kernel(s), *next; k != NULL && !s->stopping; k = next) {
        next = sessions_next_kernel(k);
        look_at(s, k, now);
    }
}

static void on_note(void *arg)
{
    struct sessions *s = arg;

    for (struct kernel *k = sessions_first_kernel(s); k != NULL; k = sessions_next_kernel(k)) {
        if (k->phase == KERNEL_ALIVE && k->goal == KERNEL_RUN &&
            (k->noted_ms != k->activity.last_ms || k->noted_busy != kernel_works(k)))
            kernel_note_later(k);
    }
}

void culling_start(struct sessions *s)
{
    uint64_t ms = s->policy.cull.interval_ms > 0 ? s->policy.cull.interval_ms : CULL_INTERVAL_MS;

    s->cull_timer = loop_timer_start(s->loop, ms, ms, on_cull, s);
    s->note_timer = loop_timer_start(s->loop, CULLING_NOTE_MS, CULLING_NOTE_MS, on_note, s);
}

void culling_stop(struct sessions *s)
{
    s->cull_timer = loop_timer_close(s->cull_timer);
    s->note_timer = loop_timer_close(s->note_timer);
}
