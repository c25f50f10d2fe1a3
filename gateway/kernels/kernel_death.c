/* What is made of a death: what the process said last is read, its runs end with a
 * reason, then it starts again or is given up. Failures of the launcher likewise. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "tail.h"

enum {
    DRAIN_LOOK_MS = 15, /* between looks at what a dead kernel still said */
    DRAIN_QUIET = 3,    /* looks without news that end it */
    DRAIN_MAX_MS = 1000,
    SANDBOX_END_MS = 10000, /* until a sandbox that ends is gone */
    ROOM_AGAIN_MS = 5000,
    SHUTDOWN_SAID_MS = 10000, /* a client's shutdown_request explains an exit within this time */
    INTERRUPT_SENT_MS = 5000, /* an interrupt likewise, or SIGINT as what killed it */
};

static uint64_t now_of(const struct kernel *k)
{
    return loop_now_ms(sessions_loop(k->all));
}

/* The cell whose interrupt ended the process, as SIGINT does that of xeus-python; NULL: none. Those
 * of subshells are never sent one. */
static struct query *ended_by_interrupt(const struct kernel *k)
{
    const struct launch_kernel_exited *x = &k->exit;

    if (k->death[0] != '\0' || x->out_of_memory || (x->signo != 0 && x->signo != SIGINT))
        return NULL;
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (q->is_run && q->run.state == RUN_RUNNING && !q->replied && q->run.interrupts > 0 &&
            q->subshell[0] == '\0' && now_of(k) - q->run.interrupt_ms <= INTERRUPT_SENT_MS)
            return q;
    }
    return NULL;
}

/* Who reads the reason learns what it was interrupted for. */
static void blame_interrupt(struct kernel *k, struct query *q)
{
    char what[sizeof k->reason], limit[80];

    snprintf(what, sizeof what, "%s", k->reason);
    if (!q->run.overdue) {
        snprintf(k->reason, sizeof k->reason, "%.200s when it was interrupted", what);
        return;
    }
    q->clock.rung = RUNCLOCK_END; /* the deadline is what ended the run */
    snprintf(k->reason, sizeof k->reason, "time-out: %s, %.120s when it was interrupted for that",
             kernel_limit_text(k, q, limit, sizeof limit), what);
}

/* overdue: a deadline is what ended it. */
static enum run_state describe_death(struct kernel *k, int overdue, char *out, size_t n)
{
    const struct launch_kernel_exited *x = &k->exit;
    char lines[160], tasks[KERNEL_SHORT_TEXT];

    static const char *const names[] = {
        [METRIC_OOM] = "oom",         [METRIC_SIGNAL] = "signal",   [METRIC_EXIT] = "exit",
        [METRIC_SANDBOX] = "sandbox", [METRIC_TIMEOUT] = "timeout", [METRIC_PROTOCOL] = "protocol"
    };
    enum metric_death kind = k->broke              ? METRIC_PROTOCOL
                             : k->death[0] != '\0' ? METRIC_SANDBOX
                             : x->out_of_memory    ? METRIC_OOM
                             : overdue             ? METRIC_TIMEOUT
                             : x->signo != 0       ? METRIC_SIGNAL
                                                   : METRIC_EXIT;

    metrics_count(METRIC_KERNEL_DEATHS, kind);
    kernel_audit(k, "kernel_died", "reason", names[kind]);
    k->broke = 0;
    if (k->death[0] != '\0') {
        snprintf(out, n, "%s", k->death);
        k->death[0] = '\0';
        return RUN_KILLED;
    }
    if (x->out_of_memory) {
        kernel_runs_short_of(k, SHORT_MEMORY);
        snprintf(out, n, "out of memory: limit %llu, peak %llu",
                 (unsigned long long)x->memory_limit_bytes,
                 (unsigned long long)x->memory_peak_bytes);
        return RUN_KILLED;
    }
    if (x->signo != 0) {
        const char *name = sigabbrev_np(x->signo);
        snprintf(out, n, "killed by signal %d (SIG%s)%s", x->signo, name != NULL ? name : "?",
                 kernel_tasks_text(k, tasks));
        return RUN_KILLED;
    }
    tail_lines(k->tail, 3, lines, sizeof lines);
    /* The last words are of use when it never came up; later they are old news. */
    if (x->exit_code != 0 && !k->was_ready && lines[0] != '\0')
        snprintf(out, n, "exited with code %d: %s", x->exit_code, lines);
    else
        snprintf(out, n, "exited with code %d%s", x->exit_code, kernel_tasks_text(k, tasks));
    return RUN_KERNEL_DIED;
}

static const char *human_reason(const struct kernel *k, char *out, size_t n)
{
    const struct launch_kernel_exited *x = &k->exit;

    if (x->out_of_memory)
        snprintf(out, n, "the kernel was killed: out of memory (limit %llu MiB, peak %llu MiB)",
                 (unsigned long long)(x->memory_limit_bytes >> 20),
                 (unsigned long long)(x->memory_peak_bytes >> 20));
    else
        snprintf(out, n, "the kernel died: %s", k->reason);
    return out;
}

/* Where no run is there to be told by, the reason belongs to none. */
static void tell_why(struct kernel *k, const char *text)
{
    char line[400];

    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (q->is_run && !run_ended(&q->run) && !q->replied)
            return;
    }
    snprintf(line, sizeof line, "\n[holdcell] %s\n", text);
    kernel_tell_stream(k, VIEW_STR("{}"), line);
}

/* Its clients know already. */
static void give_up(struct kernel *k, const char *why)
{
    struct err e = { 0 };

    log_error("kernel_dead", "kernel=%s principal=%s reason=\"%s\"", k->id, kernel_owner(k), why);
    if (why != k->reason)
        snprintf(k->reason, sizeof k->reason, "%s", why);
    k->goal = KERNEL_DELETE;
    k->client_end = CLIENT_DEAD;
    k->listed = 0;
    err_set(&e, EIO, "%s", why);
    waiters_call(&k->started, NULL, &e);
    waiters_call(&k->restarted, NULL, &e);
    kernel_leave(k);
}

void kernel_give_up(struct kernel *k, const char *why)
{
    tell_why(k, why);
    kernel_end_runs(k, RUN_KERNEL_DIED, "KernelDied", why, "dead");
    give_up(k, why);
}

/* Who asked for a new kernel hears of it when nothing of it is left; who connected to it before that,
 * at once. */
static void leave_unborn(struct kernel *k, const char *why)
{
    tell_why(k, why);
    kernel_tell_status(k, "dead");
    k->client_end = CLIENT_DEAD;
    k->goal = KERNEL_DELETE;
    k->listed = 0;
}

void kernel_stillborn(struct kernel *k)
{
    if (k->born) {
        kernel_give_up(k, k->reason);
        return;
    }
    leave_unborn(k, k->reason);
    kernel_leave(k);
}

/* 1: a client asked for this end. */
static int was_asked(struct kernel *k)
{
    int asked = k->said_shutdown != 0 && now_of(k) - k->said_shutdown_ms <= SHUTDOWN_SAID_MS
                    ? k->said_shutdown
                    : 0;

    k->said_shutdown = 0;
    return asked;
}

/* What it died of goes into k->reason. *ret_overdue: the interrupt at a deadline ended it. */
static enum run_state tell_reason(struct kernel *k, int asked, int *ret_overdue)
{
    struct query *interrupted = asked == 0 ? ended_by_interrupt(k) : NULL;

    *ret_overdue = interrupted != NULL && interrupted->run.overdue;
    enum run_state how = describe_death(k, *ret_overdue, k->reason, sizeof k->reason);
    if (interrupted != NULL)
        blame_interrupt(k, interrupted);
    return how;
}

static void on_death(struct kernel *k)
{
    char text[300];
    int asked = was_asked(k), overdue;

    if (k->overdue) { /* its clients were told when it was given up */
        k->overdue = 0;
        k->death[0] = '\0';
        k->pause_ms = 0;
        kernel_clear_leaf(k);
        return;
    }

    k->pause_ms = 0;
    enum run_state how = tell_reason(k, asked, &overdue);

    kernel_seed_died(k);
    log_warn("kernel_died", "kernel=%s generation=%u principal=%s reason=\"%s\"", k->id,
             k->generation, kernel_owner(k), k->reason);
    if (!k->born) {
        kernel_stillborn(k);
        return;
    }
    int again = asked == 2 ||
                (asked == 0 && (overdue || restarts_died(&k->restarts, now_of(k), &k->pause_ms)));
    human_reason(k, text, sizeof text);
    if (asked == 0)
        tell_why(k, text);
    kernel_end_runs(k, how, "KernelDied", text, asked == 1 ? NULL : again ? "restarting" : "dead");
    if (asked == 1) { /* T42: the exit that a client asked for is final */
        k->goal = KERNEL_DELETE;
        k->reason[0] = '\0';
        kernel_leave(k);
        return;
    }
    if (!again) {
        give_up(k, k->reason);
        return;
    }
    metrics_count(METRIC_KERNEL_RESTARTS, asked == 2 ? METRIC_REQUESTED : METRIC_AUTOMATIC);
    kernel_clear_leaf(k);
}

/* Everything that the process said has been read. */
static void drained(struct kernel *k)
{
    switch (k->goal) {
    case KERNEL_RUN:
        on_death(k);
        return;
    case KERNEL_RESTART:
        k->pause_ms = 0;
        kernel_end_runs(k, RUN_KILLED, "KernelRestarted", "the kernel was restarted", NULL);
        kernel_clear_leaf(k);
        return;
    case KERNEL_DELETE:
        kernel_end_runs(k, RUN_KILLED, "KernelDeleted", kernel_farewell(k), NULL);
        kernel_leave(k);
        return;
    }
}

/* Why it ended is what is told of the sandbox, which comes after. */
static int waits_for_sandbox(const struct kernel *k)
{
    return k->exit.sandbox_ends && k->death[0] == '\0' && now_of(k) - k->drain_ms < SANDBOX_END_MS;
}

static void drain(void *arg)
{
    struct kernel *k = arg;
    uint64_t seen = eventlog_end(k->log).seq;
    int more = k->link != NULL && link_drain(k->link);

    /* The I/O thread may be behind: quiet means quiet for a while. Replies come in
     * by the loop itself meanwhile. */
    k->quiet =
        more || eventlog_end(k->log).seq != k->drain_seq || seen != k->drain_seq ? 0 : k->quiet + 1;
    k->drain_seq = eventlog_end(k->log).seq;
    if (!waits_for_sandbox(k) &&
        (k->link == NULL || k->quiet >= DRAIN_QUIET || now_of(k) - k->drain_ms >= DRAIN_MAX_MS))
        drained(k);
    else
        kernel_timer(k, more ? 0 : DRAIN_LOOK_MS, drain);
}

/* Only its process ends here, by a signal that it cannot refuse; what is told of it and whether it
 * starts again goes the way of every death. */
void kernel_on_broke(void *arg, const char *why)
{
    struct kernel *k = arg;

    if (k->broke || !k->process || k->goal != KERNEL_RUN ||
        (k->phase != KERNEL_ALIVE && k->phase != KERNEL_OPENING))
        return;
    k->broke = 1;
    snprintf(k->death, sizeof k->death, "it broke the message protocol: %s", why);
    log_warn("kernel_broke_protocol", "kernel=%s generation=%u principal=%s why=\"%s\"", k->id,
             k->generation, kernel_owner(k), why);
    kernel_signal(k, SIGKILL);
}

void kernel_exited(struct kernel *k)
{
    kernel_create_ends(k);
    k->process = 0;
    k->was_ready = k->ready;
    k->ready = 0;
    k->adopted = 0;
    if (k->link != NULL)
        link_peer_ended(k->link);
    if (k->phase == KERNEL_STOPPING || k->phase == KERNEL_CLEARING || k->phase == KERNEL_DRAINING)
        return;
    kernel_phase(k, KERNEL_DRAINING);
    k->heartbeat = heartbeat_stop(k->heartbeat);
    k->quiet = 0;
    k->drain_ms = now_of(k);
    k->drain_seq = eventlog_end(k->log).seq;
    drain(k);
}

/* ---- failures ---- */

static void on_refused(void *arg)
{
    struct kernel *k = arg;

    kernel_give_up(k, k->reason);
}

/* The process runs but cannot be talked to: no restart would help. Giving up
 * closes the link, so it waits until the link's callback has returned. */
void kernel_refuse(struct kernel *k, const char *why)
{
    if (k->goal == KERNEL_DELETE) {
        if (k->phase == KERNEL_STARTING || k->phase == KERNEL_OPENING)
            kernel_begin_end(k);
        return;
    }
    snprintf(k->reason, sizeof k->reason, "%s", why);
    kernel_timer(k, 0, on_refused);
}

void kernel_start_failed(struct kernel *k, const struct err *e)
{
    kernel_start_ended(k, e->msg);
    kernel_disconnect(k);
    if (k->goal == KERNEL_DELETE) {
        kernel_leave(k);
        return;
    }
    if (!k->born) { /* it never was: nothing stays listed */
        leave_unborn(k, e->msg);
        waiters_call(&k->started, NULL, e);
        waiters_call(&k->restarted, NULL, e);
        kernel_leave(k);
        return;
    }
    snprintf(k->reason, sizeof k->reason, "start failed: %.200s", e->msg);
    if (e->code == HC_EFULL) { /* no fault of the kernel's: it waits until there is room */
        waiters_call(&k->started, NULL, e); /* those that came while it started again */
        waiters_call(&k->restarted, NULL, e);
        k->goal = KERNEL_RUN;
        k->pause_ms = ROOM_AGAIN_MS;
        kernel_pause(k);
        return;
    }
    if (k->restarted != NULL || !restarts_died(&k->restarts, now_of(k), &k->pause_ms)) {
        kernel_give_up(k, k->reason);
        return;
    }
    k->goal = KERNEL_RUN;
    kernel_pause(k);
}

void kernel_sandbox_gone(struct kernel *k, const char *why)
{
    if (k->phase == KERNEL_STOPPING) {
        kernel_session_left(k);
        return;
    }
    if (strcmp(why, "deadline") == 0 && k->goal != KERNEL_DELETE) {
        kernel_give_up(k, "the session's deadline has passed");
        return;
    }
    if (k->process || k->phase == KERNEL_DRAINING) /* of no process that is still to come */
        snprintf(k->death, sizeof k->death, "the sandbox ended (%.80s), its files are gone", why);
    if (k->process) {
        k->exit = (struct launch_kernel_exited){ .exit_code = -1, .signo = SIGKILL };
        kernel_exited(k);
    }
}
