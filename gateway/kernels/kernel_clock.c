/* Deadlines of runs (runclock.h): when a run's time counts, and what each rung of the ladder
 * does. A kernel that heeds no interrupt is given up: its clients are told first, so that
 * their answer waits for nothing that it does. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "jmsg.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "seat.h"
#include "tail.h"

enum { STOPPED_MS = 2000 }; /* so late comes no look at the clocks unless we were stopped */

static uint64_t now_of(const struct kernel *k)
{
    return loop_now_ms(sessions_loop(k->all));
}

static int has_limits(const struct kernel *k)
{
    return k->session->times.cell_ms != 0 || k->session->times.stdin_ms != 0;
}

int kernel_has_clock(const struct kernel *k, const struct query *q)
{
    return has_limits(k) && (q->clock.since_ms != 0 || q->clock.asked_ms != 0);
}

/* ---- whose time counts ---- */

static int is_open_run(const struct query *q)
{
    return q->is_run && !run_ended(&q->run);
}

static void tick(struct kernel *k, struct query *q, uint64_t now)
{
    int ran = kernel_has_clock(k, q);

    if (q->busy || q->is_next)
        runclock_run(&q->clock, now);
    else
        runclock_withdraw(&q->clock);
    if (ran != kernel_has_clock(k, q))
        kernel_note_later(k);
}

void kernel_input_asked(struct kernel *k, struct query *q)
{
    runclock_ask(&q->clock, now_of(k));
}

void kernel_input_answered(struct seat *s)
{
    struct kernel *k = s->kernel;

    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (q->seat == s->number)
            runclock_answer(&q->clock, now_of(k));
    }
}

/* ---- what is told ---- */

/* The limits are those of the session, whether the server, a profile, a principal or the request
 * named them. */

const char *kernel_limit_text(const struct kernel *k, const struct query *q, char *out, size_t n)
{
    const struct time_limits *l = &k->session->times;
    char time[TIME_TEXT];

    if (q->clock.why == RUNCLOCK_STDIN)
        snprintf(out, n, "the stdin timeout of %s", time_text(l->stdin_ms, time));
    else
        snprintf(out, n, "the cell timeout of %s", time_text(l->cell_ms, time));
    return out;
}

const char *kernel_overdue_ename(const struct query *q, const char *usual)
{
    if (q->clock.rung != RUNCLOCK_END)
        return usual;
    return q->clock.why == RUNCLOCK_STDIN ? "StdinTimeout" : "CellTimeout";
}

void kernel_see_stop(struct query *q, const struct jmsg *m, const char *type)
{
    static const struct jsonscan_rules loose = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, 512 };
    const char *const keys[] = { "ename" };
    struct jsonscan_value v;

    if (strcmp(type, "error") == 0 &&
        jsonscan_object(m->content, &loose, keys, 1, &v, NULL, NULL) == 0)
        q->interrupt_seen = jsonscan_string_equals(v, "KeyboardInterrupt");
}

void kernel_tell_stop(struct kernel *k, struct query *q, int stopped)
{
    const struct time_limits *l = &k->session->times;
    char text[200], time[TIME_TEXT];

    if (q->stop_told)
        return;
    q->stop_told = 1;
    if (!stopped)
        snprintf(text, sizeof text,
                 "\n[holdcell] the cell was interrupted by the server after %s, the session's %s "
                 "timeout; it "
                 "ended as it says itself\n",
                 time_text(q->clock.why == RUNCLOCK_STDIN ? l->stdin_ms : l->cell_ms, time),
                 q->clock.why == RUNCLOCK_STDIN ? "stdin" : "cell");
    else if (q->clock.why == RUNCLOCK_STDIN)
        snprintf(text, sizeof text,
                 "\n[holdcell] cell stopped: nobody answered input() within %s, the session's "
                 "stdin timeout; variables are kept\n",
                 time_text(l->stdin_ms, time));
    else
        snprintf(text, sizeof text,
                 "\n[holdcell] cell stopped after %s by the session's cell timeout; variables "
                 "are kept\n",
                 time_text(l->cell_ms, time));
    kernel_tell_stream(k, q->header, text);
}

/* ---- the ladder ---- */

static void on_not_gone(void *arg)
{
    struct kernel *k = arg;

    k->timer = loop_timer_close(k->timer);
    kernel_kill_leaf(k);
}

static void log_rung(const struct kernel *k, const struct query *q, const char *event)
{
    char limit[80];

    log_info(event, "kernel=%s generation=%u principal=%s run=%llu limit=%s", k->id, k->generation,
             kernel_owner(k), (unsigned long long)q->number,
             LOG_QUOTED(kernel_limit_text(k, q, limit, sizeof limit)));
}

static void tell_where(struct kernel *k, const struct query *q)
{
    char stack[400], text[480];

    if (tail_stack(k->tail, stack, sizeof stack)[0] == '\0')
        return;
    snprintf(text, sizeof text, "\n[holdcell] the cell stood at %s\n", stack);
    kernel_tell_stream(k, q->header, text);
}

/* Frees the queries: q is gone afterwards. */
static void give_up(struct kernel *k, const struct query *q)
{
    char text[300], limit[80];

    log_rung(k, q, "run_not_stopped");
    snprintf(k->reason, sizeof k->reason, "time-out: %s",
             kernel_limit_text(k, q, limit, sizeof limit));
    snprintf(text, sizeof text,
             "the kernel is killed: time-out, a cell ran into %s and did not end when it was "
             "interrupted; variables are lost",
             limit);
    metrics_count(METRIC_KERNEL_DEATHS, METRIC_TIMEOUT);
    metrics_count(METRIC_KERNEL_RESTARTS, METRIC_AUTOMATIC);
    kernel_audit(k, "kernel_died", "reason", "timeout");
    log_warn("kernel_died", "kernel=%s generation=%u principal=%s reason=\"%s\"", k->id,
             k->generation, kernel_owner(k), k->reason);
    k->overdue = 1;
    kernel_phase(k, KERNEL_ENDING);
    tell_where(k, q);
    kernel_end_runs(k, RUN_KILLED, "KernelDied", text, "restarting");
    k->heartbeat = heartbeat_stop(k->heartbeat);
    kernel_note(k);
    kernel_signal(k, SIGTERM);
    kernel_timer(k, RUNCLOCK_KILL_MS, on_not_gone);
}

/* Threads of subshells cannot be interrupted: the signal would hit a cell of the main shell. 1:
 * the signal is to be sent, whatever became of the first interrupt. */
static int interrupt(struct kernel *k, struct query *q, enum runclock_rung rung, uint64_t now)
{
    if (!q->run.overdue)
        log_rung(k, q, "run_overdue");
    run_overdue(&q->run, now);
    if (q->subshell[0] != '\0')
        return 0;
    if (rung != RUNCLOCK_INTERRUPT)
        return 1;
    kernel_interrupt_run(k, q);
    return 0;
}

int kernel_check_clocks(struct kernel *k, uint64_t now)
{
    uint64_t before = k->clocks_ms;
    int to_interrupt = 0, ask_where = 0;

    k->clocks_ms = now;
    if (!has_limits(k) || k->phase != KERNEL_ALIVE)
        return 0;
    uint64_t missed = before != 0 && now - before > STOPPED_MS ? now - before : 0;
    queries_mark_next(k->queries, now);
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        /* What has its reply or its idle ends soon by other rules. */
        if (!is_open_run(q) || q->doubtful || q->run.replied || q->run.idle)
            continue;
        runclock_shift(&q->clock, missed);
        tick(k, q, now);
        enum runclock_rung rung = runclock_check(&q->clock, &k->session->times, now);
        if (rung == RUNCLOCK_END) {
            give_up(k, q);
            return 1;
        }
        if (rung != RUNCLOCK_WAIT)
            to_interrupt |= interrupt(k, q, rung, now);
        ask_where |= rung == RUNCLOCK_INTERRUPT_AGAIN;
    }
    if (ask_where)
        kernel_ask_where(k);
    if (to_interrupt)
        kernel_send_interrupt(k);
    return 0;
}
