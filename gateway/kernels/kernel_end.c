/* How a kernel ends: the ladder when it is asked to, the way to the next process or to
 * the end of the session. */
#include <errno.h>
#include <signal.h>

#include "err.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "ownmsg.h"
#include "seat.h"

enum {
    KERNEL_NUMBER = 1,
    CLIENTS_MAX_MS = 3000, /* for clients of a kernel that is gone to read to the end */
};

/* ---- the session's end ---- */

static void on_clients_late(void *arg)
{
    struct kernel *k = arg;

    kernel_end_clients(k, k->client_end, 1);
}

const char *kernel_farewell(const struct kernel *k)
{
    return k->farewell[0] != '\0' ? k->farewell : "the kernel was deleted";
}

void kernel_gone_why(const struct kernel *k, struct err *e)
{
    if (k->client_end == CLIENT_SHUTDOWN)
        err_set(e, ECANCELED, "the server is stopping");
    else
        err_set(e, HC_EGONE, "%s", kernel_farewell(k));
}

/* REST knows the kernel no more, clients read to the end. */
void kernel_session_left(struct kernel *k)
{
    struct err e = { 0 };

    kernel_audit(k, "kernel_delete_end", NULL, NULL);
    log_info("kernel_gone", "kernel=%s principal=%s", k->id, kernel_owner(k));
    kernel_end_runs(k, RUN_KILLED, "KernelDeleted", kernel_farewell(k), NULL);
    kernel_disconnect(k);
    k->run_timer = loop_timer_close(k->run_timer);
    kernel_phase(k, KERNEL_GONE);
    k->listed = 0;
    if (!k->born && k->reason[0] != '\0')
        err_set(&e, EIO, "%s", k->reason);
    else
        kernel_gone_why(k, &e);
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
    k->listed = 0;
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

void kernel_pause(struct kernel *k)
{
    kernel_phase(k, KERNEL_PAUSED);
    kernel_timer(k, k->pause_ms, start_again);
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
    kernel_pause(k);
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
void kernel_clear_leaf(struct kernel *k)
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

void kernel_kill_leaf(struct kernel *k)
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
        kernel_kill_leaf(k);
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
    kernel_create_ends(k);
    kernel_phase(k, KERNEL_ENDING);
    k->heartbeat = heartbeat_stop(k->heartbeat);
    k->ladder = 0;
    /* Nothing that was meant for this process goes to the next one. */
    if (k->goal == KERNEL_DELETE)
        seats_refuse_held(k, "KernelDeleted", kernel_farewell(k));
    else
        seats_refuse_held(k, "KernelRestarted", "the kernel was restarted");
    if (!k->process) {
        kernel_exited(k);
        return;
    }
    /* Frees a busy kernel, so that it can take the request and end in order. */
    kernel_send_interrupt(k);
    k->seeding = kernel_seed_end(k);
    if (ask_shutdown(k))
        kernel_timer(k, sessions_policy(k->all)->shutdown_wait_ms / 2, next_rung);
    else
        next_rung(k);
}
