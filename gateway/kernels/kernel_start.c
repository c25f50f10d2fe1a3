/* From an order to a connected kernel: sandbox, sockets, process, note, link. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "kernel_own.h"
#include "kernelenv.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "msgcodec.h"
#include "recipe.h"
#include "seat.h"
#include "tail.h"

enum {
    KERNEL_NUMBER = 1, /* of the session's only kernel */
    LOOK_MS = 10,      /* for the sockets of a foreign kernel; then slower */
    LOOK_MAX_MS = 100,
    SHELL_FREE_MS = 1000, /* an adopted kernel that answers later was at work */
};

/* The launcher's ENOENT or EINVAL is about a program, not about what the request
 * asked for: fronts tell those two differently. Its answer to the limits of a request is HC_ELIMIT. */
void kernel_launch_failed(struct kernel *k, int code, const char *text)
{
    struct err e = { 0 };
    char lines[120];

    if (code == HC_ELIMIT && k->phase == KERNEL_CREATING)
        code = EINVAL;
    else if (code != HC_ELIMIT && code != HC_EFULL)
        code = EIO;
    tail_lines(k->tail, 3, lines, sizeof lines);
    err_set(&e, code, "%s%s%s", text, lines[0] != '\0' ? ": " : "", lines);
    kernel_start_failed(k, &e);
}

/* ---- the link ---- */

static void on_proven(void *arg)
{
    struct kernel *k = arg;

    kernel_probe_subshells(k);
    if (k->seeding != NULL)
        kernel_seed_begin(k);
    else
        seats_release(k);
}

static void on_answered(void *arg, const char *subshell)
{
    kernel_shell_answered(arg, subshell);
    if (*subshell == '\0')
        kernel_silence_answered(arg);
}

static void on_ready(void *arg)
{
    struct kernel *k = arg;

    kernel_create_ends(k);
    /* Its shell is free: whatever ran under the gateway before is over, perhaps only now. */
    if (k->adopted) {
        struct activity_now now = kernel_now(k);

        k->activity.state = ACTIVITY_IDLE;
        if (k->adopted_busy || now.ms - k->adopted_ms > SHELL_FREE_MS)
            activity_touch(&k->activity, now);
    }
    k->adopted = 0;
    if (k->seeding != NULL) {
        kernel_seed_begin(k);
        return;
    }
    kernel_is_ready_now(k);
    if (link_never_joins(k->link))
        seats_release(k);
}

static void on_control(void *arg)
{
    struct kernel *k = arg;

    heartbeat_answer(k->heartbeat);
}

static void on_unsupported(void *arg, const char *version)
{
    struct kernel *k = arg;
    char why[128];

    snprintf(why, sizeof why, "the kernel speaks version %s of the messaging protocol, not 5",
             version);
    kernel_refuse(k, why);
}

void kernel_connect(struct kernel *k)
{
    static const struct link_ops ops = {
        .iopub = kernel_on_iopub,
        .unwanted = kernel_is_unwanted,
        .oversized = kernel_on_oversized,
        .lost = kernel_on_lost,
        .proven = on_proven,
        .ready = on_ready,
        .answered = on_answered,
        .control = on_control,
        .reply = kernel_on_own_reply,
        .unsupported = on_unsupported,
        .broke = kernel_on_broke,
    };
    const struct link_config c = {
        .loop = sessions_loop(k->all),
        .zsockets = sessions_zsockets(k->all),
        .key = k->key,
        .session = sessions_own_sid(k->all),
        .give_up_ms = KERNEL_GIVE_UP_MS,
    };
    struct err e = { 0 };

    if (!k->adopted)
        k->sid[0] = '\0';
    k->ready = 0;
    if (k->broke) { /* who restarted it came before its death was told */
        k->broke = 0;
        k->death[0] = '\0';
    }
    k->late_output = (struct output_use){ 0 };
    if (link_open(&c, &k->endpoints, &ops, k, &k->link, &e) < 0) {
        err_wrap(&e, "connect to the kernel");
        kernel_refuse(k, e.msg);
        return;
    }
    kernel_phase(k, KERNEL_ALIVE);
    if (k->adopted) /* it has started long ago */
        kernel_watch_heart(k);
    seats_open(k);
    seats_open_heirs(k);
}

void kernel_disconnect(struct kernel *k)
{
    kernel_create_ends(k);
    k->seeding = kernel_seed_end(k);
    seats_close(k);
    k->heartbeat = heartbeat_stop(k->heartbeat);
    k->link = link_close(k->link);
    k->silence = (struct silence){ 0 };
    endpoints_drop(&k->endpoints);
    closep(&k->run_dir_fd);
    k->run_dir_fd = -1;
    k->ready = 0;
}

/* ---- the sockets of a foreign kernel ---- */

static void on_sealed(void *arg, uint64_t number, struct launch_answer *a)
{
    struct kernel *k = sessions_by_number(arg, number);

    if (k == NULL || k->phase != KERNEL_OPENING)
        return;
    /* The sockets are held by descriptor, nothing in the folder moves us any more. */
    if (a->error != 0)
        log_warn("seal_failed", "kernel=%s error=\"%s\"", k->id, a->text);
    kernel_connect(k);
    kernel_note(k);
}

static void look(void *arg)
{
    struct kernel *k = arg;
    struct err e = { 0 };
    int rc = endpoints_resolve(&k->endpoints, k->run_dir_fd, &e);

    if (rc < 0) {
        kernel_refuse(k, e.msg);
        return;
    }
    if (rc == 0) {
        k->look_ms = k->look_ms < LOOK_MAX_MS ? k->look_ms + LOOK_MS : LOOK_MAX_MS;
        kernel_timer(k, k->look_ms, look);
        return;
    }
    struct launch_kernel_ref body = { k->session->sandbox, KERNEL_NUMBER, k->generation };
    if (launchclient_ask(sessions_launcher(k->all), LAUNCH_SEAL, &body, NULL, 0, on_sealed, k->all,
                         k->number, &e) < 0)
        kernel_refuse(k, e.msg);
}

void kernel_await_sockets(struct kernel *k)
{
    kernel_phase(k, KERNEL_OPENING);
    k->look_ms = LOOK_MS;
    if (k->create_timer == NULL) /* taken over: its time begins anew */
        kernel_create_begins(k);
    kernel_timer(k, k->look_ms, look);
}

/* ---- the process ---- */

void kernel_start_ended(struct kernel *k, const char *error)
{
    struct origin *before = origin_enter(k->origin);
    uint64_t took_us = clock_monotonic_us() - k->start_us;

    kernel_audit_start(k, error == NULL, took_us);
    metrics_count(METRIC_KERNEL_STARTS, error == NULL ? METRIC_OK : METRIC_FAILED);
    if (error == NULL)
        metrics_observe(METRIC_KERNEL_START_TIME, 0, took_us);
    if (error == NULL)
        log_info("kernel_started", "kernel=%s generation=%u principal=%s duration_us=%llu", k->id,
                 k->generation, kernel_owner(k), (unsigned long long)took_us);
    else
        log_warn("kernel_start", "kernel=%s principal=%s error=\"%s\"", k->id, kernel_owner(k),
                 error);
    origin_enter(before);
    kernel_asked_by(k, NULL);
}

void kernel_started(struct kernel *k)
{
    k->born = 1;
    waiters_call(&k->started, k, NULL);
    waiters_call(&k->restarted, k, NULL);
}

static void on_started(void *arg, uint64_t number, struct launch_answer *a)
{
    struct kernel *k = sessions_by_number(arg, number);

    if (k == NULL || k->phase != KERNEL_STARTING)
        return;
    if (a->error != 0) {
        kernel_launch_failed(k, a->error, a->text);
        return;
    }
    k->process = 1;
    restarts_started(&k->restarts, loop_now_ms(sessions_loop(k->all)));
    if (a->fd_count == 1)
        k->run_dir_fd = take_fd(&a->fds[0]);
    kernel_start_ended(k, NULL);
    if (k->goal == KERNEL_RESTART)
        k->goal = KERNEL_RUN;
    if (k->recipe.sockets_fd) {
        kernel_connect(k);
    } else if (k->run_dir_fd >= 0) {
        kernel_await_sockets(k);
        kernel_note(k);
    } else {
        kernel_refuse(k, "the launcher gave no run folder");
        return;
    }
    if (k->goal == KERNEL_DELETE) {
        if (k->phase != KERNEL_ENDING)
            kernel_begin_end(k);
        return;
    }
    if (k->seeding != NULL)
        kernel_seed_watch(k);
    else
        kernel_started(k);
}

struct start_fds {
    int list[7]; /* owned: memfd, write end, listening sockets */
    unsigned count;
};

static void close_fds(struct start_fds *f)
{
    for (unsigned i = 0; i < f->count; i++)
        closep(&f->list[i]);
}
#define autofds __attribute__((cleanup(close_fds)))

static int make_pipe(struct kernel *k, int *ret_write, struct err *e)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, errno, "make the kernel's output pipe");
    k->tail = tail_free(k->tail);
    k->tail = tail_new(sessions_loop(k->all), ends[0]);
    *ret_write = ends[1];
    return 0;
}

static int make_fds(struct kernel *k, struct start_fds *f, struct err *e)
{
    char ip[64];

    /* A kernel with listening sockets never uses the path; both read alike. */
    snprintf(ip, sizeof ip, "/run/kernel/%d-%u/s", KERNEL_NUMBER, k->generation);
    endpoints_key(k->key);
    int rc = endpoints_connection(ip, k->key, k->recipe.spec_name, &f->list[0], e);
    if (rc < 0)
        return rc;
    f->count = 1;
    rc = make_pipe(k, &f->list[1], e);
    if (rc < 0)
        return rc;
    f->count = 2;
    if (!k->recipe.sockets_fd)
        return 0;
    rc = endpoints_listen(&k->endpoints, sessions_policy(k->all)->private_dir_fd, &f->list[2], e);
    if (rc == 0)
        f->count = 2 + ENDPOINT_COUNT;
    return rc;
}

static int build_env(const struct kernel *k, struct buf *out, struct err *e)
{
    const struct sessions_policy *policy = sessions_policy(k->all);
    autofree char **request = recipe_strings(&k->recipe.request_env);
    autofree char **spec = recipe_strings(&k->recipe.spec_env);
    const struct kernelenv env = {
        .runtime = policy->runtime,
        .cores = (k->session->limits.cpu_millis + 999) / 1000,
        .server = policy->env_server,
        .request = request,
        .allow = policy->env_allow,
        .spec = spec,
    };

    return kernelenv_build(&env, out, e);
}

static int ask_start(struct kernel *k, struct err *e)
{
    autofds struct start_fds f = { 0 };
    autobuf struct buf env = { 0 };

    buf_init(&env, LAUNCH_ENV_MAX);
    k->generation++;
    int rc = make_fds(k, &f, e);
    if (rc == 0)
        rc = build_env(k, &env, e);
    if (rc < 0)
        return rc;
    /* Before the start: a gateway that dies now leaves a successor that knows the key. */
    kernel_note(k);
    const struct launch_start body = {
        .sandbox = k->session->sandbox,
        .kernel = KERNEL_NUMBER,
        .generation = k->generation,
        .flags = k->recipe.sockets_fd ? LAUNCH_SOCKETS_FD : 0,
        .spec_dir = k->recipe.spec_dir,
        .spec_name = view_cstr(k->recipe.spec_name),
        .cwd = view_cstr(k->recipe.cwd),
        .argv = buf_view(&k->recipe.argv),
        .env = buf_view(&env),
    };
    return launchclient_ask(sessions_launcher(k->all), LAUNCH_START_KERNEL, &body, f.list, f.count,
                            on_started, k->all, k->number, e);
}

/* A disk without files left, say, is no fault of the kernel's: it is told as what the launcher lacks. */
static void failed_here(struct kernel *k, struct err *e)
{
    if (err_is_shortage(e->code)) {
        err_wrap(e, "the host has no room for another kernel");
        e->code = HC_EFULL;
    }
    kernel_start_failed(k, e);
}

static void start_process(struct kernel *k)
{
    struct err e = { 0 };

    kernel_phase(k, KERNEL_STARTING);
    activity_start(&k->activity, kernel_now(k));
    kernel_seed_plan(k);
    if (ask_start(k, &e) < 0)
        failed_here(k, &e);
}

void kernel_session_opened(struct kernel *k)
{
    if (k->goal == KERNEL_DELETE)
        kernel_leave(k);
    else
        start_process(k);
}

void kernel_start(struct kernel *k)
{
    struct err e = { 0 };

    k->start_us = clock_monotonic_us();
    kernel_create_begins(k);
    kernel_phase(k, KERNEL_CREATING);
    int rc = session_open(k->session, &e);
    if (rc < 0)
        failed_here(k, &e);
    else if (rc == 1)
        kernel_session_opened(k);
}
