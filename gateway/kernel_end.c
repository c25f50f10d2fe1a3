/* How a process ends: the ladder when it is asked to, what is made of a death, and
 * the way to the next start or to the end of the session. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "ownmsg.h"
#include "seat.h"
#include "tail.h"

enum {
    KERNEL_NUMBER = 1,
    DRAIN_LOOK_MS = 15, /* between looks at what a dead kernel still said */
    DRAIN_QUIET = 3,    /* looks without news that end it */
    DRAIN_MAX_MS = 1000,
    SHUTDOWN_SAID_MS = 10000, /* a client's shutdown_request explains an exit within this time */
    CLIENTS_MAX_MS = 3000,    /* for clients of a kernel that is gone to read to the end */
};

static uint64_t now_of(const struct kernel *k)
{
    return loop_now_ms(sessions_loop(k->all));
}

/* ---- the session's end ---- */

static void on_clients_late(void *arg)
{
    struct kernel *k = arg;

    kernel_end_clients(k, k->client_end, 1);
}

/* REST knows the kernel no more, clients read to the end. */
void kernel_session_left(struct kernel *k)
{
    struct err e = { 0 };

    log_info("kernel_gone", "kernel=%s", k->id);
    kernel_end_runs(k, RUN_KILLED, "KernelDeleted", "the kernel was deleted", NULL);
    kernel_disconnect(k);
    k->run_timer = loop_timer_close(k->run_timer);
    kernel_phase(k, KERNEL_GONE);
    k->listed = 0;
    err_set(&e, HC_EGONE, "the kernel was deleted");
    waiters_call(&k->started, NULL, &e);
    waiters_call(&k->restarted, NULL, &e);
    k->await_timer = loop_timer_close(k->await_timer);
    waiters_call(&k->awaiting, NULL, &e);
    struct waiter *deleted = k->deleted;
    k->deleted = NULL;
    kernel_end_clients(k, k->client_end, 0);
    kernel_timer(k, CLIENTS_MAX_MS, on_clients_late);
    kernel_client_left(k); /* when there is none */
    waiters_call(&deleted, NULL, NULL);
}

void kernel_leave(struct kernel *k)
{
    kernel_phase(k, KERNEL_STOPPING);
    session_leave(k->session, k);
}

static void on_leaf_stopped(void *arg, uint64_t number, struct launch_answer *a)
{
    struct kernel *k = sessions_by_number(arg, number);

    if (k == NULL || k->phase != KERNEL_STOPPING)
        return;
    if (a->error != 0)
        log_info("kernel_stop", "kernel=%s error=\"%s\"", k->id, a->text);
    kernel_session_left(k);
}

void kernel_stop_leaf(struct kernel *k)
{
    struct launch_stop body = { k->session->sandbox, KERNEL_NUMBER, k->generation };
    struct err e = { 0 };

    if (k->session->sandbox == 0 ||
        launchclient_ask(sessions_launcher(k->all), LAUNCH_STOP, &body, NULL, 0, on_leaf_stopped,
                         k->all, k->number, &e) < 0)
        kernel_session_left(k);
}

/* ---- what comes after a process ---- */

static void start_again(void *arg)
{
    kernel_start(arg);
}

static void after_clearing(struct kernel *k)
{
    if (k->goal == KERNEL_DELETE) {
        kernel_leave(k);
        return;
    }
    if (k->pause_ms == 0 || k->restarted != NULL) {
        kernel_start(k);
        return;
    }
    kernel_phase(k, KERNEL_PAUSED);
    kernel_timer(k, k->pause_ms, start_again);
}

static void on_cleared(void *arg, uint64_t number, struct launch_answer *a)
{
    struct kernel *k = sessions_by_number(arg, number);

    if (k == NULL || k->phase != KERNEL_CLEARING)
        return;
    if (a->error != 0)
        log_info("kernel_stop", "kernel=%s error=\"%s\"", k->id, a->text);
    after_clearing(k);
}

/* The leaf of the old process may hold children of it: they end before the next starts. */
static void clear_leaf(struct kernel *k)
{
    struct launch_stop body = { k->session->sandbox, KERNEL_NUMBER, k->generation };
    struct err e = { 0 };

    kernel_disconnect(k);
    kernel_phase(k, KERNEL_CLEARING);
    if (k->session->sandbox == 0 ||
        launchclient_ask(sessions_launcher(k->all), LAUNCH_STOP, &body, NULL, 0, on_cleared, k->all,
                         k->number, &e) < 0)
        after_clearing(k);
}

/* ---- a death ---- */

static enum run_state describe_death(struct kernel *k, char *out, size_t n)
{
    const struct launch_kernel_exited *x = &k->exit;
    char lines[160];

    if (k->death[0] != '\0') {
        snprintf(out, n, "%s", k->death);
        k->death[0] = '\0';
        return RUN_KILLED;
    }
    if (x->out_of_memory) {
        snprintf(out, n, "out of memory: limit %llu, peak %llu",
                 (unsigned long long)x->memory_limit_bytes,
                 (unsigned long long)x->memory_peak_bytes);
        return RUN_KILLED;
    }
    if (x->signo != 0) {
        const char *name = sigabbrev_np(x->signo);
        snprintf(out, n, "killed by signal %d (SIG%s)", x->signo, name != NULL ? name : "?");
        return RUN_KILLED;
    }
    tail_lines(k->tail, 3, lines, sizeof lines);
    /* The last words are of use when it never came up; later they are old news. */
    if (x->exit_code != 0 && !k->was_ready && lines[0] != '\0')
        snprintf(out, n, "exited with code %d: %s", x->exit_code, lines);
    else
        snprintf(out, n, "exited with code %d", x->exit_code);
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

/* Its clients know already. */
static void give_up(struct kernel *k, const char *why)
{
    struct err e = { 0 };

    log_error("kernel_dead", "kernel=%s reason=\"%s\"", k->id, why);
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
    kernel_end_runs(k, RUN_KERNEL_DIED, "KernelDied", why, "dead");
    give_up(k, why);
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

static void on_death(struct kernel *k)
{
    char text[300];
    int asked = was_asked(k);

    k->pause_ms = 0;
    enum run_state how = describe_death(k, k->reason, sizeof k->reason);

    log_warn("kernel_died", "kernel=%s generation=%u reason=\"%s\"", k->id, k->generation,
             k->reason);
    int again = asked == 2 || (asked == 0 && restarts_died(&k->restarts, now_of(k), &k->pause_ms));
    kernel_end_runs(k, how, "KernelDied", human_reason(k, text, sizeof text),
                    asked == 1 ? NULL
                    : again    ? "restarting"
                               : "dead");
    if (asked == 1) { /* T42: the exit that a client asked for is final */
        k->goal = KERNEL_DELETE;
        k->reason[0] = '\0';
        kernel_leave(k);
        return;
    }
    if (again)
        clear_leaf(k);
    else
        give_up(k, k->reason);
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
        clear_leaf(k);
        return;
    case KERNEL_DELETE:
        kernel_end_runs(k, RUN_KILLED, "KernelDeleted", "the kernel was deleted", NULL);
        kernel_leave(k);
        return;
    }
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
    if (k->link == NULL || k->quiet >= DRAIN_QUIET || now_of(k) - k->drain_ms >= DRAIN_MAX_MS)
        drained(k);
    else
        kernel_timer(k, more ? 0 : DRAIN_LOOK_MS, drain);
}

void kernel_exited(struct kernel *k)
{
    k->process = 0;
    k->was_ready = k->ready;
    k->ready = 0;
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

/* ---- the ladder ---- */

static void on_killed(void *arg, uint64_t number, struct launch_answer *a)
{
    struct kernel *k = sessions_by_number(arg, number);

    if (k == NULL || k->phase != KERNEL_ENDING)
        return;
    if (a->error != 0)
        log_warn("kernel_stop", "kernel=%s error=\"%s\"", k->id, a->text);
    kernel_exited(k); /* its event came before, or the launcher knows no such process */
}

static void kill_leaf(struct kernel *k)
{
    struct launch_stop body = { k->session->sandbox, KERNEL_NUMBER, k->generation };
    struct err e = { 0 };

    if (launchclient_ask(sessions_launcher(k->all), LAUNCH_STOP, &body, NULL, 0, on_killed, k->all,
                         k->number, &e) < 0) {
        log_error("kernel_stop", "kernel=%s error=\"%s\"", k->id, e.msg);
        kernel_exited(k);
    }
}

static void next_rung(void *arg)
{
    struct kernel *k = arg;
    uint64_t half = sessions_policy(k->all)->shutdown_wait_ms / 2;

    switch (++k->ladder) {
    case 1:
        kernel_signal(k, SIGTERM);
        kernel_timer(k, half, next_rung);
        return;
    default:
        k->timer = loop_timer_close(k->timer);
        kill_leaf(k);
        return;
    }
}

static int ask_shutdown(struct kernel *k)
{
    autobuf struct buf content = { 0 };
    struct err e = { 0 };

    if (k->link == NULL)
        return 0;
    buf_init(&content, OWNMSG_MAX);
    ownmsg_shutdown(&content, k->goal == KERNEL_RESTART);
    return link_ask(k->link, LINK_CONTROL, "shutdown_request", buf_view(&content), &e) == 0;
}

void kernel_begin_end(struct kernel *k)
{
    kernel_phase(k, KERNEL_ENDING);
    k->heartbeat = heartbeat_stop(k->heartbeat);
    k->ladder = 0;
    /* Nothing that was meant for this process goes to the next one. */
    seats_forget_held(k);
    if (!k->process) {
        kernel_exited(k);
        return;
    }
    /* Frees a busy kernel, so that it can take the request and end in order. */
    kernel_send_interrupt(k);
    if (ask_shutdown(k))
        kernel_timer(k, sessions_policy(k->all)->shutdown_wait_ms / 2, next_rung);
    else
        next_rung(k);
}

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

/* ---- failures of the launcher ---- */

void kernel_start_failed(struct kernel *k, const struct err *e)
{
    log_warn("kernel_start", "kernel=%s error=\"%s\"", k->id, e->msg);
    kernel_disconnect(k);
    if (k->goal == KERNEL_DELETE) {
        kernel_leave(k);
        return;
    }
    if (k->started != NULL) { /* it never was: nothing stays listed */
        k->goal = KERNEL_DELETE;
        k->listed = 0;
        waiters_call(&k->started, NULL, e);
        waiters_call(&k->restarted, NULL, e);
        kernel_leave(k);
        return;
    }
    snprintf(k->reason, sizeof k->reason, "start failed: %.200s", e->msg);
    if (k->restarted != NULL || !restarts_died(&k->restarts, now_of(k), &k->pause_ms)) {
        kernel_give_up(k, k->reason);
        return;
    }
    k->goal = KERNEL_RUN;
    kernel_phase(k, KERNEL_PAUSED);
    kernel_timer(k, k->pause_ms, start_again);
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
    snprintf(k->death, sizeof k->death, "the sandbox ended (%.80s), its files are gone", why);
    if (k->process) {
        k->exit = (struct launch_kernel_exited){ .exit_code = -1, .signo = SIGKILL };
        kernel_exited(k);
    }
}
