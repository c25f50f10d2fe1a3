#include "kernel.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "err.h"
#include "kernel_own.h"
#include "kernelenv.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "seat.h"
#include "seat_park.h"
#include "tail.h"

static void on_reap(void *arg)
{
    kernel_free(arg);
}

struct kernel *kernel_new(struct session *s, const char *id)
{
    static uint64_t numbers; /* of this process: names in questions to the launcher */
    struct kernel *k = xcalloc(1, sizeof *k);

    k->all = s->all;
    k->session = s;
    k->number = ++numbers;
    memcpy(k->id, id, sizeof k->id);
    k->origin = origin_hold(origin_now());
    k->run_dir_fd = k->recipe_fd = -1;
    k->endpoints = (struct endpoints)ENDPOINTS_NONE;
    k->log = eventlog_new(sessions_policy(s->all)->private_dir_fd, session_quota(s), NULL);
    const struct eventlog_readers readers = seats_readers(k);
    eventlog_set_readers(k->log, &readers);
    k->queries = queries_new();
    k->client_end = CLIENT_DELETED;
    k->reap = (struct deferred_node){ .fn = on_reap, .arg = k };
    k->sweep = (struct deferred_node){ .fn = seats_sweep_now, .arg = k };
    recipe_init(&k->recipe);
    activity_start(&k->activity, kernel_now(k));
    session_add_kernel(s, k);
    return k;
}

struct activity_now kernel_now(const struct kernel *k)
{
    return (struct activity_now){ .us = clock_realtime_us(),
                                  .ms = loop_now_ms(sessions_loop(k->all)) };
}

void kernel_asked_by(struct kernel *k, struct origin *o)
{
    origin_drop(k->origin);
    k->origin = origin_hold(o);
}

const char *kernel_owner(const struct kernel *k)
{
    return k->session->principal.name;
}

static void free_waiters(struct waiter **list)
{
    while (*list != NULL) {
        struct waiter *w = *list;
        *list = w->next;
        free(w);
    }
}

void kernel_free(struct kernel *k)
{
    deferred_remove(sessions_deferred(k->all), DEFERRED_WORK, &k->reap);
    k->timer = loop_timer_close(k->timer);
    k->run_timer = loop_timer_close(k->run_timer);
    k->await_timer = loop_timer_close(k->await_timer);
    kernel_end_clients(k, CLIENT_SHUTDOWN, 1);
    kernel_disconnect(k);
    seats_end_all(k);
    /* Clients that left asked for it. */
    deferred_remove(sessions_deferred(k->all), DEFERRED_WORK, &k->sweep);
    k->note_timer = loop_timer_close(k->note_timer); /* ends of seats are news for it */
    closep(&k->recipe_fd);
    free_waiters(&k->started);
    free_waiters(&k->restarted);
    free_waiters(&k->deleted);
    free_waiters(&k->awaiting);
    k->tail = tail_free(k->tail);
    k->log = eventlog_free(k->log);
    k->graves = graves_free(k->graves);
    k->queries = queries_free(k->queries);
    recipe_free(&k->recipe);
    kernel_asked_by(k, NULL);
    session_remove_kernel(k->session, k);
    free(k);
}

void kernel_client_left(struct kernel *k)
{
    if (k->phase == KERNEL_GONE && k->connections == 0)
        deferred_add(sessions_deferred(k->all), DEFERRED_WORK, &k->reap);
}

const char *kernel_phase_name(enum kernel_phase p)
{
    static const char *const names[] = {
        [KERNEL_CREATING] = "creating", [KERNEL_STARTING] = "starting",
        [KERNEL_OPENING] = "opening",   [KERNEL_ALIVE] = "alive",
        [KERNEL_ENDING] = "ending",     [KERNEL_DRAINING] = "draining",
        [KERNEL_CLEARING] = "clearing", [KERNEL_PAUSED] = "paused",
        [KERNEL_STOPPING] = "stopping", [KERNEL_GONE] = "gone",
    };

    return names[p];
}

void kernel_phase(struct kernel *k, enum kernel_phase phase)
{
    k->timer = loop_timer_close(k->timer);
    k->phase = phase;
}

void kernel_timer(struct kernel *k, uint64_t ms, loop_fn *fn)
{
    k->timer = loop_timer_close(k->timer);
    k->timer = loop_timer_start(sessions_loop(k->all), ms, 0, fn, k);
}

void waiter_add(struct waiter **list, kernel_done_fn *done, void *arg, uint64_t token)
{
    struct waiter *w = xcalloc(1, sizeof *w);

    *w = (struct waiter){ .done = done, .arg = arg, .token = token };
    while (*list != NULL)
        list = &(*list)->next;
    *list = w;
}

void waiters_call(struct waiter **list, struct kernel *k, const struct err *e)
{
    struct waiter *all = *list;

    *list = NULL; /* one that asks again waits for the next end */
    while (all != NULL) {
        struct waiter *w = all;
        all = w->next;
        w->done(w->arg, w->token, k, e);
        free(w);
    }
}

/* ---- what REST tells ---- */

int kernel_works(const struct kernel *k)
{
    return k->adopted || queries_runs(k->queries) > 0 || k->activity.state == ACTIVITY_BUSY;
}

static const char *state_of(const struct kernel *k)
{
    switch (k->phase) {
    case KERNEL_CREATING:
    case KERNEL_STARTING:
    case KERNEL_OPENING:
        return "starting";
    case KERNEL_DRAINING:
    case KERNEL_CLEARING:
    case KERNEL_PAUSED:
        return "restarting";
    case KERNEL_GONE:
        return "dead";
    case KERNEL_STOPPING:
    case KERNEL_ENDING:
    case KERNEL_ALIVE:
        break;
    }
    if (k->overdue)
        return "restarting";
    if (k->seeding != NULL)
        return "starting";
    if (kernel_works(k))
        return "busy";
    return heartbeat_loss(k->heartbeat) == LIVENESS_WELL ? activity_name(k->activity.state)
                                                         : "unresponsive";
}

static const char *reason_of(const struct kernel *k)
{
    enum liveness_loss loss = heartbeat_loss(k->heartbeat);

    return loss == LIVENESS_WELL ? k->reason : liveness_text(loss);
}

static const char *profile_of(const struct kernel *k)
{
    const char *name = k->session->profile;

    return sessions_has_profiles(k->all) || strcmp(name, PROFILE_DEFAULT) != 0 ? name : NULL;
}

void kernel_model(const struct kernel *k, struct kernel_model *ret)
{
    *ret = (struct kernel_model){
        .name = k->recipe.spec_name,
        .profile = profile_of(k),
        .execution_state = state_of(k),
        .last_activity_us = k->activity.last_us,
        .connections = k->connections,
        .reason = reason_of(k),
    };
    memcpy(ret->id, k->id, sizeof ret->id);
}

const struct launch_limits *kernel_limits(const struct kernel *k)
{
    return k->session->phase == SESSION_OPEN ? &k->session->limits : &k->session->wanted;
}

const struct time_limits *kernel_times(const struct kernel *k)
{
    return &k->session->times;
}

/* ---- what fronts keep with it ---- */

void kernel_name_session(struct kernel *k, const char *name)
{
    struct err e = { 0 };

    if (kernelenv_set_session(&k->recipe.request_env, name, &e) < 0) {
        log_warn("session_name", "kernel=%s error=%s", k->id, LOG_QUOTED(e.msg));
        return;
    }
    if (k->session->sandbox != 0)
        (void)kernel_note_now(k);
}

int kernel_keep(struct kernel *k, struct view json, struct err *e)
{
    if (json.n > NOTE_KEPT_MAX)
        return err_set(e, EMSGSIZE, "%zu bytes to keep, the limit is %d", json.n, NOTE_KEPT_MAX);
    memcpy(k->kept, json.p, json.n);
    k->kept[json.n] = '\0';
    if (k->session->sandbox != 0) /* else it is noted at the start */
        (void)kernel_note_now(k);
    return 0;
}

struct view kernel_kept(const struct kernel *k)
{
    return view_cstr(k->kept);
}

/* ---- the first answer ---- */

int kernel_is_starting(const struct kernel *k)
{
    return k->phase < KERNEL_GONE && !k->ready && !k->adopted && k->goal != KERNEL_DELETE;
}

static void end_await(struct kernel *k)
{
    k->await_timer = loop_timer_close(k->await_timer);
    waiters_call(&k->awaiting, k, NULL);
}

static void on_await_late(void *arg)
{
    end_await(arg);
}

void kernel_await_ready(struct kernel *k, kernel_done_fn *done, void *arg, uint64_t token)
{
    if (!kernel_is_starting(k)) {
        done(arg, token, k, NULL);
        return;
    }
    waiter_add(&k->awaiting, done, arg, token);
    if (k->await_timer == NULL)
        k->await_timer = loop_timer_start(
            sessions_loop(k->all), sessions_policy(k->all)->handshake_ms, 0, on_await_late, k);
}

static int is_at_work(void *arg)
{
    return kernel_works(arg);
}

void kernel_watch_heart(struct kernel *k)
{
    const struct heartbeat_config c = {
        .loop = sessions_loop(k->all),
        .link = k->link,
        .kernel = k->id,
        .owes_heartbeat = k->recipe.sockets_fd, /* it is of our runtime */
        .busy = is_at_work,
        .arg = k,
    };

    if (k->heartbeat == NULL && k->phase == KERNEL_ALIVE && k->link != NULL)
        k->heartbeat = heartbeat_start(&c);
}

void kernel_is_ready_now(struct kernel *k)
{
    if (!k->ready)
        kernel_watch_heart(k);
    kernel_create_ends(k);
    k->ready = 1;
    if (k->awaiting != NULL)
        end_await(k);
}

/* ---- signals ---- */

static void on_signalled(void *arg, uint64_t number, struct launch_answer *a)
{
    struct kernel *k = sessions_by_number(arg, number);

    if (k == NULL)
        return;
    /* The process may just have gone: its exit tells. */
    if (a->error != 0)
        log_info("signal_failed", "kernel=%s error=\"%s\"", k->id, a->text);
    if (k->signals > 0 && --k->signals == 0)
        seats_release(k);
}

static void send_signal(struct kernel *k, int signo, int group)
{
    struct launch_signal body = { .sandbox = k->session->sandbox,
                                  .kernel = 1,
                                  .generation = k->generation,
                                  .signo = (uint32_t)signo,
                                  .group = group };
    struct err e = { 0 };

    if (!k->process)
        return;
    if (launchclient_ask(sessions_launcher(k->all), LAUNCH_SIGNAL, &body, NULL, 0, on_signalled,
                         k->all, k->number, &e) < 0)
        log_warn("signal_failed", "kernel=%s error=\"%s\"", k->id, e.msg);
    else
        k->signals++;
}

void kernel_signal(struct kernel *k, int signo)
{
    send_signal(k, signo, 1);
}

void kernel_ask_where(struct kernel *k)
{
    if (k->recipe.sockets_fd) /* it would end others */
        send_signal(k, SIGUSR2, 0);
}

/* ---- restart and delete ---- */

void kernel_restart(struct kernel *k, kernel_done_fn *done, void *arg, uint64_t token)
{
    struct err e = { 0 };

    if (k->goal == KERNEL_DELETE) {
        err_set(&e, HC_EGONE, "the kernel is being deleted");
        done(arg, token, NULL, &e);
        return;
    }
    if (kernel_audit_intent(k, "kernel_restart", &e) < 0) {
        done(arg, token, NULL, &e);
        return;
    }
    metrics_count(METRIC_KERNEL_RESTARTS, METRIC_REQUESTED);
    kernel_asked_by(k, origin_now());
    waiter_add(&k->restarted, done, arg, token);
    k->reason[0] = '\0';
    k->restarts.deaths = 0;
    switch (k->phase) {
    case KERNEL_ALIVE:
    case KERNEL_OPENING:
        k->goal = KERNEL_RESTART;
        kernel_begin_end(k);
        return;
    case KERNEL_PAUSED:
        kernel_start(k);
        return;
    case KERNEL_DRAINING: /* it died by itself: its clients are told so, then it starts at once */
    case KERNEL_CREATING:
    case KERNEL_STARTING:
    case KERNEL_ENDING:
    case KERNEL_CLEARING:
        return; /* a fresh process is under way: it serves this request too */
    case KERNEL_STOPPING:
    case KERNEL_GONE:
        break;
    }
    check(0); /* the goal is DELETE then */
}

void kernel_delete(struct kernel *k, kernel_done_fn *done, void *arg, uint64_t token)
{
    struct err e = { 0 };

    check(k->phase != KERNEL_GONE);
    waiter_add(&k->deleted, done, arg, token);
    if (k->goal == KERNEL_DELETE)
        return;
    kernel_audit(k, "kernel_delete", NULL, NULL);
    k->goal = KERNEL_DELETE;
    k->listed = 0;
    if (k->session->sandbox != 0)
        kernel_note(k); /* a gateway that dies now leaves one that ends it */
    kernel_gone_why(k, &e);
    waiters_call(&k->restarted, NULL, &e);
    switch (k->phase) {
    case KERNEL_ALIVE:
    case KERNEL_OPENING:
        kernel_begin_end(k);
        return;
    case KERNEL_PAUSED:
        kernel_leave(k);
        return;
    default:
        return; /* whatever answer comes next finds the goal changed */
    }
}
