#include "launcher.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "clock.h"
#include "ending.h"
#include "err.h"
#include "gatewaywatch.h"
#include "kernelproc.h"
#include "kernelstart.h"
#include "launchlink.h"
#include "log.h"
#include "sandbox.h"

enum { FIXED_POLLS = 3 + KEEPER_POLLS }; /* signals, link, gateway's pidfd, keeper's */

/* A session: its memory events, its refused tasks, its init, its kernels. */
static size_t room_for(unsigned sessions_max)
{
    return FIXED_POLLS + (size_t)sessions_max * (3 + LAUNCH_KERNELS_MAX);
}

void launcher_init(struct launcher *l, struct launcher_config *config, struct sandbox_host *host)
{
    *l = (struct launcher){
        .config = config,
        .host = host,
        .state = LAUNCHER_SERVING,
        .signal_fd = -1,
        .audit_lock = -1,
        .expected_ms = UINT64_MAX,
    };
    sessions_init(&l->sessions, config->sessions_max);
    gatewayproc_init(&l->gateway);
    if (config->gateway_pause_max_ms != 0)
        l->gateway.pause_max_ms = config->gateway_pause_max_ms;
    keeper_init(&l->keeper, &config->keeper);
    l->polled_room = room_for(config->sessions_max);
    l->polled = xcalloc(l->polled_room, sizeof *l->polled);
}

void launcher_grow(struct launcher *l, unsigned sessions_max)
{
    sessions_grow(&l->sessions, sessions_max);
    if (room_for(l->sessions.max) <= l->polled_room)
        return;
    free(l->polled);
    l->polled_room = room_for(l->sessions.max);
    l->polled = xcalloc(l->polled_room, sizeof *l->polled);
}

void launcher_free(struct launcher *l)
{
    free(l->profiles);
    l->profiles = NULL;
    gatewayproc_kill(&l->gateway);
    closep(&l->gateway.pidfd);
    closep(&l->signal_fd);
    closep(&l->audit_lock);
    keeper_free(l);
    free(l->polled);
    sessions_free(&l->sessions);
}

int launcher_open(struct launcher *l, struct err *e)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return err_sys(e, errno, "block signals");
    l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->signal_fd < 0)
        return err_sys(e, errno, "signalfd");
    return 0;
}

/* ---- messages ---- */

void launcher_event(struct launcher *l, unsigned verb, const void *body)
{
    if (l->gateway.link != NULL)
        link_post(l->gateway.link, launch_event_spec(verb), 0, 0, body, NULL, 0);
}

void launcher_answer(struct launcher *l, unsigned verb, uint64_t request, const void *body,
                     const int *fds, unsigned fd_count)
{
    if (l->gateway.link != NULL)
        link_post(l->gateway.link, launch_answer_spec(verb), request, 0, body, fds, fd_count);
}

void launcher_answer_error(struct launcher *l, unsigned verb, uint64_t request, int code,
                           const char *text)
{
    struct launch_error body = { .verb = verb, .text = view_cstr(text != NULL ? text : "") };

    if (l->gateway.link != NULL)
        link_post(l->gateway.link, launch_answer_spec(LAUNCH_ERROR), request, code, &body, NULL, 0);
}

void launcher_answer_stops(struct launcher *l, struct stops *stops, uint64_t sandbox, int code,
                           const char *text)
{
    struct launch_done done = { .sandbox = sandbox };

    for (unsigned i = 0; i < stops->count; i++) {
        if (code == 0)
            launcher_answer(l, LAUNCH_STOP, stops->request[i], &done, NULL, 0);
        else
            launcher_answer_error(l, LAUNCH_STOP, stops->request[i], code, text);
    }
    stops->count = 0;
}

/* ---- children ---- */

static void child_exited(struct launcher *l, pid_t pid, int status, uint64_t now)
{
    if (pid == l->gateway.pid) {
        gatewaywatch_exited(l, status, now);
        return;
    }
    for (unsigned i = 0; i < l->sessions.max; i++) {
        struct session *s = l->sessions.slot[i];

        if (s == NULL)
            continue;
        for (unsigned k = 0; k < LAUNCH_KERNELS_MAX; k++) {
            if (s->kernels[k].state == KERNEL_RUNNING && s->kernels[k].pid == pid) {
                kernelproc_exited(l, s, &s->kernels[k], status, now);
                return;
            }
        }
        if (s->init_alive && sandbox_init_pid(s->sandbox) == pid) {
            s->init_alive = 0;
            ending_begin(l, s, "init ended", now);
            return;
        }
    }
    sandbox_host_reaped(l->host, pid);
    log_info("child_reaped", "pid=%d status=%d", (int)pid, status);
}

static struct kernelproc *find_starting(struct launcher *l, pid_t pid, struct session **ret)
{
    for (unsigned i = 0; i < l->sessions.max; i++) {
        *ret = l->sessions.slot[i];
        for (unsigned k = 0; *ret != NULL && k < LAUNCH_KERNELS_MAX; k++) {
            if ((*ret)->kernels[k].state == KERNEL_STARTING && (*ret)->kernels[k].pid == pid)
                return &(*ret)->kernels[k];
        }
    }
    return NULL;
}

/* Looks before it reaps: a child that died on its way to exec belongs to its start
 * until that is finished. __WALL: init was cloned with the exit signal of its
 * builder, which may be none. */
static void reap(struct launcher *l, uint64_t now)
{
    for (;;) {
        siginfo_t info = { 0 };
        struct session *s;
        int status;

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 || info.si_pid == 0)
            return;
        struct kernelproc *k = find_starting(l, info.si_pid, &s);
        if (k != NULL) {
            kernelstart_step(l, s, k, now);
            if (k->state == KERNEL_STARTING)
                return; /* its pipe is open though it is dead: tried again in the next turn */
        } else if (waitpid(info.si_pid, &status, WNOHANG | __WALL) == info.si_pid) {
            child_exited(l, info.si_pid, status, now);
        }
    }
}

static void read_signals(struct launcher *l)
{
    struct signalfd_siginfo info;

    while (read(l->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        const int end = info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;

        if (end && l->state == LAUNCHER_KEPT)
            log_info("keeper_told_to_end", "signo=%u by=%u", info.ssi_signo, info.ssi_pid);
        if (end)
            launcher_stop(l);
        else if (info.ssi_signo == SIGHUP) /* the settings have changed, which only it reads */
            gatewayproc_signal(&l->gateway, SIGHUP);
    }
}

/* ---- the loop ---- */

static struct pollfd *add_poll(struct launcher *l, size_t *n, int fd, short events)
{
    struct pollfd *p = &l->polled[*n];

    check(*n < l->polled_room);
    *p = (struct pollfd){ .fd = fd, .events = events };
    (*n)++;
    return p;
}

/* The events of limits, two for each session, come right behind the fixed ones, in the order of the table. */
static size_t fill_polls(struct launcher *l)
{
    const struct link *link = l->gateway.link;
    size_t n = 0;

    add_poll(l, &n, l->signal_fd, POLLIN);
    add_poll(l, &n, link != NULL ? link_fd(link) : -1, link != NULL ? link_events(link) : 0);
    add_poll(l, &n, l->gateway.pidfd, POLLIN);
    keeper_fill_polls(l, &l->polled[n]);
    n += KEEPER_POLLS;
    for (unsigned i = 0; i < l->sessions.max; i++) {
        struct session *s = l->sessions.slot[i];

        if (s == NULL || s->state != SESSION_ALIVE)
            continue;
        add_poll(l, &n, sandbox_oom_fd(s->sandbox), sandbox_oom_events(s->sandbox));
        /* Left out during the pause, for POLLERR comes unasked. */
        add_poll(l, &n, s->tasks_again_ms == 0 ? sandbox_tasks_fd(s->sandbox) : -1,
                 sandbox_tasks_events(s->sandbox));
    }
    for (unsigned i = 0; i < l->sessions.max; i++) {
        struct session *s = l->sessions.slot[i];

        if (s == NULL)
            continue;
        if (s->init_alive)
            add_poll(l, &n, sandbox_init_pidfd(s->sandbox), POLLIN);
        for (unsigned k = 0; k < LAUNCH_KERNELS_MAX; k++) {
            if (s->kernels[k].state == KERNEL_RUNNING)
                add_poll(l, &n, s->kernels[k].pidfd, POLLIN);
            else if (s->kernels[k].state == KERNEL_STARTING)
                add_poll(l, &n,
                         s->kernels[k].status_fd >= 0 ? s->kernels[k].status_fd
                                                      : s->kernels[k].pidfd,
                         POLLIN);
        }
    }
    return n;
}

static int has_event(const struct pollfd *p)
{
    return p->fd >= 0 && (p->revents & (p->events | POLLERR)) != 0;
}

/* Before anything is reaped, so that the reason is told before the exit. */
static void serve_limit_events(struct launcher *l, uint64_t now)
{
    size_t n = FIXED_POLLS;

    for (unsigned i = 0; i < l->sessions.max; i++) {
        struct session *s = l->sessions.slot[i];

        if (s == NULL || s->state != SESSION_ALIVE)
            continue;
        if (has_event(&l->polled[n++]))
            kernelproc_memory_event(l, s, now);
        if (has_event(&l->polled[n++]))
            kernelproc_tasks_event(l, s, now);
    }
}

static int sooner(int timeout, uint64_t at, uint64_t now)
{
    int left = at > now ? (at - now < INT32_MAX ? (int)(at - now) : INT32_MAX) : 0;

    return timeout < 0 || left < timeout ? left : timeout;
}

enum {
    STOPPED_MS = 2000, /* later than planned by this: we were stopped, frozen or held up */
    AFTER_STOP_MS = 10000,
};

static void put_off(uint64_t *at_ms, uint64_t lost, uint64_t now)
{
    if (*at_ms == 0) /* never */
        return;
    *at_ms += lost;
    if (*at_ms < now + AFTER_STOP_MS)
        *at_ms = now + AFTER_STOP_MS;
}

/* Who was stopped with its gateway (a paused container), or was held up, finds deadlines passed that the
 * gateway had no chance to move on, or whose new time lies in the socket unread. So lost time does not
 * count, neither for the gateway nor for kernels that start, and the gateway has some seconds to speak.
 * Asked whenever a stretch of the turn has ended, and before any deadline is looked at. */
static void forgive(struct launcher *l, uint64_t now)
{
    uint64_t lost = now > l->expected_ms ? now - l->expected_ms : 0;

    l->expected_ms = now;
    if (lost < STOPPED_MS)
        return;
    if (l->gateway.link != NULL)
        link_give_time(l->gateway.link, lost);
    for (unsigned i = 0; i < l->sessions.max; i++) {
        struct session *s = l->sessions.slot[i];

        for (unsigned k = 0; s != NULL && k < LAUNCH_KERNELS_MAX; k++)
            s->kernels[k].start_by_ms += lost; /* of those on their way */
        if (s == NULL)
            continue;
        put_off(&s->deadline_ms, lost, now);
        put_off(&s->life_end_ms, lost, now); /* else the next deadline were before the moved one */
    }
}

/* Deadlines, and memory counters that have to be asked again. */
static int serve_sessions(struct launcher *l, int timeout, uint64_t now)
{
    for (unsigned i = 0; i < l->sessions.max; i++) {
        struct session *s = l->sessions.slot[i];

        if (s == NULL || s->state != SESSION_ALIVE)
            continue;
        if (s->memory_again_ms != 0 && now >= s->memory_again_ms)
            kernelproc_check_memory(l, s, now);
        if (s->memory_again_ms != 0)
            timeout = sooner(timeout, s->memory_again_ms, now);
        if (s->tasks_again_ms != 0 && now >= s->tasks_again_ms) {
            s->tasks_again_ms = 0; /* the next poll looks */
            if (sandbox_tasks_events(s->sandbox) == 0)
                kernelproc_tasks_event(l, s, now);
        }
        if (s->tasks_again_ms != 0)
            timeout = sooner(timeout, s->tasks_again_ms, now);
        if (s->deadline_ms == 0)
            continue;
        if (now >= s->deadline_ms) {
            ending_begin(l, s, "deadline", now);
            timeout = 0;
        } else {
            timeout = sooner(timeout, s->deadline_ms, now);
        }
    }
    return timeout;
}

/* What the clock brings; returns how long the loop may sleep. */
static int serve_clock(struct launcher *l, int timeout, uint64_t now)
{
    struct gatewayproc *g = &l->gateway;

    timeout = serve_sessions(l, timeout, now);
    uint64_t starting = kernelstart_step_all(l, now);
    if (starting != 0)
        timeout = sooner(timeout, starting, now);
    int ending = ending_step(l, now);
    if (ending >= 0)
        timeout = sooner(timeout, now + (uint64_t)ending, now);
    gatewaywatch_check(l, now);
    if (g->kill_ms != 0)
        timeout = sooner(timeout, g->kill_ms, now);
    if (g->link != NULL && link_patience_ends(g->link) != 0)
        timeout = sooner(timeout, link_patience_ends(g->link), now);
    if (l->state == LAUNCHER_SERVING && g->pid == 0) {
        if (now >= g->due_ms)
            gatewaywatch_start(l, now);
        timeout = sooner(timeout, g->pid == 0 ? g->due_ms : now, now);
    }
    uint64_t keeper = keeper_check(l, now);
    if (keeper != 0)
        timeout = sooner(timeout, keeper, now);
    if (l->state == LAUNCHER_STOPPING || l->state == LAUNCHER_KEEPING)
        timeout = sooner(timeout, gatewaywatch_hurry(l, now), now);
    return l->state == LAUNCHER_CLEARING ? sooner(timeout, l->stop_by_ms, now) : timeout;
}

static int finished(struct launcher *l, uint64_t now)
{
    if (l->state != LAUNCHER_CLEARING)
        return 0;
    if (l->sessions.count == 0)
        return 1;
    if (now < l->stop_by_ms)
        return 0;
    log_error("sessions_left", "count=%u", l->sessions.count);
    l->failed = 1;
    return 1;
}

int launcher_turn(struct launcher *l, int timeout_ms)
{
    uint64_t now = clock_ms();

    forgive(l, now); /* what the end of the last turn took */
    int timeout = serve_clock(l, timeout_ms, now);
    if (finished(l, now))
        return 0;
    size_t n = fill_polls(l);
    l->expected_ms = timeout < 0 ? UINT64_MAX : now + (uint64_t)timeout;
    int polled = poll(l->polled, n, timeout);
    int error = errno;
    now = clock_ms();
    forgive(l, now);
    if (polled < 0) {
        if (error == EINTR || error == EAGAIN || error == ENOMEM)
            return 1;
        log_error("poll", "errno=%d", error);
        l->failed = 1;
        return 0;
    }
    short gateway_events = l->polled[1].revents;
    short keeper_events[KEEPER_POLLS];
    for (unsigned i = 0; i < KEEPER_POLLS; i++)
        keeper_events[i] = l->polled[FIXED_POLLS - KEEPER_POLLS + i].revents;
    serve_limit_events(l, now);
    if (l->polled[0].revents & POLLIN)
        read_signals(l);
    reap(l, now);
    if (l->gateway.link != NULL && gateway_events != 0)
        gatewaywatch_serve(l, gateway_events);
    keeper_serve(l, keeper_events, now);
    return 1;
}
