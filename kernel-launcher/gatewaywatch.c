#include "gatewaywatch.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "clock.h"
#include "ending.h"
#include "err.h"
#include "launcher.h"
#include "launchlink.h"
#include "log.h"
#include "request.h"

enum {
    REQUESTS_PER_TURN = 32,   /* exits and deadlines come in between */
    TURN_MS = 50,             /* likewise, where each takes long: a sandbox is built */
    LAST_REQUESTS_MAX = 4096, /* of a gateway that is gone: what one socket buffer can hold */
    STOP_GATEWAY_MS = 8000,   /* it shuts its kernels down politely */
    STOP_SESSIONS_MS = 1500,  /* the rest until the supervisor loses patience at 10 s */
    STOP_KEPT_MS = 25000,     /* without a supervisor; `holdcell stop` waits for 30 s */
    SILENT_DEATHS_MAX = 3,    /* gateways that ended before any one asked anything */
};

/* Nobody waits for these answers any more. */
static void forget_stops(struct launcher *l)
{
    for (unsigned i = 0; i < l->sessions.max; i++) {
        struct session *s = l->sessions.slot[i];

        for (unsigned j = 0; s != NULL && j < s->leaf_count; j++)
            s->leaves[j].stops.count = 0;
        for (unsigned j = 0; s != NULL && j < LAUNCH_KERNELS_MAX; j++)
            s->kernels[j].start_request = 0;
        if (s != NULL)
            s->stops.count = 0;
    }
}

/* One that never gets as far as asking will not do so the next time either. Sandboxes of an
 * earlier server wait for a better one. */
static void give_up(struct launcher *l, uint64_t now)
{
    log_error("gateway_does_not_start", "tries=%u", l->gateway.deaths);
    if (l->gateway.inherited && keeper_begin(l, now, NULL) == 0)
        return;
    l->failed = 1;
    launcher_stop(l);
}

static void end_sessions(struct launcher *l, uint64_t now, uint64_t patience_ms)
{
    l->state = LAUNCHER_CLEARING;
    l->stop_by_ms = now + patience_ms;
    for (unsigned i = 0; i < l->sessions.max; i++) {
        if (l->sessions.slot[i] != NULL)
            ending_begin(l, l->sessions.slot[i], "server stops", now);
    }
}

static void gone(struct launcher *l, uint64_t now)
{
    forget_stops(l);
    if (!l->gateway.spoke && l->gateway.deaths >= SILENT_DEATHS_MAX && l->state == LAUNCHER_SERVING)
        give_up(l, now);
    if (l->state == LAUNCHER_KEEPING)
        keeper_kept(l, now);
    if (l->state == LAUNCHER_STOPPING)
        end_sessions(l, now, STOP_SESSIONS_MS);
}

void gatewaywatch_start(struct launcher *l, uint64_t now)
{
    struct err e = { 0 };

    if (gatewayproc_start(&l->gateway, &l->config->gateway, &e) < 0) {
        gatewayproc_failed(&l->gateway, now);
        log_error("gateway_not_started", "deaths=%u text=%s", l->gateway.deaths, LOG_QUOTED(e.msg));
        gone(l, now);
        return;
    }
    log_info("gateway_started", "pid=%d deaths=%u", (int)l->gateway.pid, l->gateway.deaths);
}

/* Its last note may still lie in the socket: the next gateway asks for it. A sandbox that nobody is
 * told of is not built. */
static void take_the_last(struct launcher *l)
{
    struct link_packet p;

    for (int i = 0;
         i < LAST_REQUESTS_MAX && l->gateway.link != NULL && link_receive(l->gateway.link, &p) > 0;
         i++) {
        if (p.head.verb != LAUNCH_CREATE)
            request_serve(l, &p);
        link_packet_close(&p);
    }
}

void gatewaywatch_exited(struct launcher *l, int status, uint64_t now)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    int signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    take_the_last(l);
    gatewayproc_ended(&l->gateway, now);
    if ((l->state == LAUNCHER_STOPPING || l->state == LAUNCHER_KEEPING) && code == 0)
        log_info("gateway_exited", "exit=0");
    else
        log_error("gateway_exited", "exit=%d signal=%d", code, signo);
    gone(l, now);
}

void gatewaywatch_serve(struct launcher *l, short events)
{
    struct link_packet p;
    uint64_t until = clock_ms() + TURN_MS;

    if (events & POLLOUT)
        link_flush(l->gateway.link);
    for (int i = 0; i < REQUESTS_PER_TURN && clock_ms() < until; i++) {
        if (link_receive(l->gateway.link, &p) <= 0)
            return;
        request_serve(l, &p);
        link_packet_close(&p);
    }
}

void gatewaywatch_check(struct launcher *l, uint64_t now)
{
    if (l->gateway.kill_ms != 0 && now >= l->gateway.kill_ms)
        gatewayproc_kill(&l->gateway);
    if (l->gateway.link == NULL)
        return;
    link_check_patience(l->gateway.link, now);
    const char *why = link_broken(l->gateway.link);
    if (why == NULL)
        return;
    if (link_closed(l->gateway.link)) {
        gatewayproc_closed(&l->gateway, now);
        return;
    }
    log_error("gateway_ended", "pid=%d text=%s", (int)l->gateway.pid, LOG_QUOTED(why));
    gatewayproc_kill(&l->gateway);
}

void launcher_stop(struct launcher *l)
{
    if (l->state == LAUNCHER_STOPPING || l->state == LAUNCHER_CLEARING)
        return;
    const int kept = l->state == LAUNCHER_KEPT;
    l->state = LAUNCHER_STOPPING;
    l->stop_by_ms = clock_ms() + STOP_GATEWAY_MS;
    log_info("stopping", "sessions=%u", l->sessions.count);
    if (kept)
        end_sessions(l, clock_ms(), STOP_KEPT_MS);
    else if (l->gateway.pid > 0)
        gatewayproc_signal(&l->gateway, SIGTERM);
    else
        gone(l, clock_ms());
}

uint64_t gatewaywatch_hurry(struct launcher *l, uint64_t now)
{
    if (now >= l->stop_by_ms) {
        log_warn("gateway_killed", "pid=%d reason=\"did not end in time\"", (int)l->gateway.pid);
        gatewayproc_kill(&l->gateway);
        l->stop_by_ms = now + STOP_GATEWAY_MS;
    }
    return l->stop_by_ms;
}
