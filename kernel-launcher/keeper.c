#include "keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

#include "clock.h"
#include "err.h"
#include "gatewaywatch.h"
#include "keeperdoor.h"
#include "keepermsg.h"
#include "launcher.h"
#include "launcher_setup.h"
#include "launchlink.h"
#include "log.h"
#include "policy.h"

enum { PATIENCE_MS = 8000 /* with the gateway; the supervisor loses its own at 10 s */ };

void keeper_init(struct keeper *k, struct keeper_config *c)
{
    *k = (struct keeper){ .listen_fd = -1 };
    if (c->control_fd >= 0)
        k->supervisor = link_new(take_fd(&c->control_fd));
}

void keeper_free(struct launcher *l)
{
    struct keeper_config *c = &l->config->keeper;

    keeperdoor_close(l);
    l->keeper.supervisor = link_free(l->keeper.supervisor);
    closep(&c->state_dir_fd);
    closep(&c->slot_fd);
    closep(&c->state_fd);
    free(l->keeper.argv);
    free(l->keeper.text);
    l->keeper = (struct keeper){ .listen_fd = -1 };
}

static void tell(struct launcher *l, unsigned verb, unsigned failed)
{
    const struct keeper_count body = { .sessions = l->sessions.count, .failed = failed };

    if (l->keeper.supervisor != NULL)
        link_post(l->keeper.supervisor, keeper_answer_spec(verb), 0, 0, &body, NULL, 0);
}

void keeper_ended(struct launcher *l)
{
    tell(l, KEEPER_ENDED, l->failed != 0);
}

int keeper_begin(struct launcher *l, uint64_t now_ms, struct err *e)
{
    if (l->state == LAUNCHER_KEEPING) { /* asked again: what it had to say is in its notes */
        gatewayproc_kill(&l->gateway);
        return 0;
    }
    if (l->state != LAUNCHER_SERVING)
        return err_set(e, HC_ESTATE, "the launcher ends already");
    int rc = keeperdoor_open(l, e); /* first: a launcher that nobody finds again is of no use */
    if (rc < 0)
        return rc;
    prctl(PR_SET_PDEATHSIG, 0); /* from here on a supervisor that dies changes nothing */
    l->state = LAUNCHER_KEEPING;
    l->stop_by_ms = now_ms + PATIENCE_MS;
    log_info("keeping", "sessions=%u", l->sessions.count);
    if (l->gateway.pid > 0)
        gatewayproc_signal(&l->gateway, SIGTERM);
    else
        keeper_kept(l, now_ms);
    return 0;
}

void keeper_share_again(struct launcher *l, const struct sandbox_share *share)
{
    struct sandbox_share in_force;
    struct err e = { 0 };

    if (sandbox_host_share(l->host, share, &in_force, &e) < 0)
        log_warn("limit_of_all_sessions", "text=%s", LOG_QUOTED(e.msg));
    l->config->share = *share;
}

static void nothing_left(struct launcher *l, uint64_t now_ms)
{
    keeperdoor_close(l);
    l->state = LAUNCHER_CLEARING;
    l->stop_by_ms = now_ms;
}

void keeper_kept(struct launcher *l, uint64_t now_ms)
{
    /* The port is free, and the settings with their token forgotten, before the supervisor
     * goes: the next one may be of another kind. */
    launcher_setup_close(l->config);
    closep(&l->audit_lock); /* likewise its audit file, which nobody writes now */
    if (l->sessions.count == 0) {
        nothing_left(l, now_ms);
        return;
    }
    if (l->gateway.inherited && !l->gateway.spoke) /* it was a try */
        keeper_share_again(l, &l->keeper.share_before);
    l->state = LAUNCHER_KEPT;
    keeperdoor_name_us(l);
    log_info("kept", "sessions=%u", l->sessions.count);
    tell(l, KEEPER_KEPT, !l->gateway.spoke);
}

/* ---- the supervisor ---- */

static void lost_supervisor(struct launcher *l, uint64_t now_ms)
{
    l->keeper.supervisor = link_free(l->keeper.supervisor);
    if (l->state != LAUNCHER_SERVING)
        return;
    log_error("supervisor_gone", "sessions=%u", l->sessions.count);
    /* Not even its gateway had come so far as to ask: it was a try. */
    if (l->gateway.inherited && !l->gateway.spoke && keeper_begin(l, now_ms, NULL) == 0)
        return;
    launcher_stop(l);
}

/* The second half of the trial of a reload: whether this host has what the profiles demand. */
static void serve_profiles(struct launcher *l, const struct link_packet *p)
{
    struct link *s = l->keeper.supervisor;
    const struct keeper_count done = { .sessions = l->sessions.count };
    struct keeper_profiles body;
    struct err e = { 0 };
    int rc = msg_decode(keeper_request_spec(KEEPER_PROFILES), &p->head, p->bytes, &body, &e);

    if (rc == 0)
        rc = policy_take(l, body.table, &e);
    const struct keeper_error error = { .text = view_cstr(e.msg) };
    if (rc == 0)
        link_post(s, keeper_answer_spec(KEEPER_PROFILES), p->head.request, 0, &done, NULL, 0);
    else
        link_post(s, keeper_answer_spec(KEEPER_ERROR), p->head.request, -rc, &error, NULL, 0);
}

static void serve_request(struct launcher *l, const struct link_packet *p, uint64_t now_ms)
{
    struct link *s = l->keeper.supervisor;
    struct keeper_count body;
    struct err e = { 0 };

    if (p->head.verb == KEEPER_PROFILES) {
        serve_profiles(l, p);
        return;
    }
    int rc = p->head.verb == KEEPER_KEEP
                 ? msg_decode(keeper_request_spec(KEEPER_KEEP), &p->head, p->bytes, &body, &e)
                 : err_set(&e, HC_EPARSE, "verb %u", p->head.verb);
    if (rc == 0)
        rc = keeper_begin(l, now_ms, &e);
    if (rc == 0)
        return;
    log_error("not_kept", "text=%s", LOG_QUOTED(e.msg));
    const struct keeper_error error = { .text = view_cstr(e.msg) };
    link_post(s, keeper_answer_spec(KEEPER_ERROR), p->head.request, -rc, &error, NULL, 0);
}

static void serve_supervisor(struct launcher *l, uint64_t now_ms)
{
    struct link_packet p;

    while (l->keeper.supervisor != NULL && link_receive(l->keeper.supervisor, &p) > 0) {
        serve_request(l, &p, now_ms);
        link_packet_close(&p);
    }
    if (l->keeper.supervisor != NULL && link_broken(l->keeper.supervisor) != NULL)
        lost_supervisor(l, now_ms);
}

/* ---- the loop ---- */

static struct pollfd poll_of(const struct link *link)
{
    return (struct pollfd){ .fd = link != NULL ? link_fd(link) : -1,
                            .events = link != NULL ? link_events(link) : 0 };
}

void keeper_fill_polls(const struct launcher *l, struct pollfd p[KEEPER_POLLS])
{
    p[0] = poll_of(l->keeper.supervisor);
    p[1] = poll_of(l->keeper.candidate);
    p[2] = (struct pollfd){ .fd = l->keeper.listen_fd,
                            .events = l->state == LAUNCHER_KEPT ? POLLIN : 0 };
}

void keeper_serve(struct launcher *l, const short events[KEEPER_POLLS], uint64_t now_ms)
{
    if (events[0] & POLLOUT && l->keeper.supervisor != NULL)
        link_flush(l->keeper.supervisor);
    if (events[0] & ~POLLOUT)
        serve_supervisor(l, now_ms);
    if (events[1] != 0)
        keeperdoor_serve(l, now_ms);
    if (events[2] != 0)
        keeperdoor_accept(l, now_ms);
}

uint64_t keeper_check(struct launcher *l, uint64_t now_ms)
{
    if (l->state == LAUNCHER_CLEARING || l->state == LAUNCHER_STOPPING)
        keeperdoor_close(l);
    if (l->keeper.candidate != NULL && now_ms >= l->keeper.candidate_by_ms)
        keeperdoor_drop(l, "it took too long");
    if (l->state == LAUNCHER_KEPT && l->sessions.count == 0 && l->keeper.candidate == NULL) {
        log_info("nothing_kept", "%s", "");
        nothing_left(l, now_ms);
    }
    return l->keeper.candidate != NULL ? l->keeper.candidate_by_ms : 0;
}
