#include "ending.h"

#include <errno.h>
#include <inttypes.h>

#include "err.h"
#include "kernelproc.h"
#include "kernelstart.h"
#include "launcher.h"
#include "log.h"
#include "sandbox.h"

enum {
    STEP_MS = 5, /* a killed session is empty within milliseconds */
    PATIENCE_MS = 5000,
    STUCK_MS = 1000, /* pause between tries on what is not gone in time */
};

static void kill_all(struct session *s)
{
    struct err e = { 0 };

    if (sandbox_kill(s->sandbox, &e) < 0)
        log_warn("kill_failed", "sandbox=%016" PRIx64 " text=%s", s->id, LOG_QUOTED(e.msg));
}

void ending_begin(struct launcher *l, struct session *s, const char *reason, uint64_t now_ms)
{
    if (s->state != SESSION_ALIVE)
        return;
    /* A limit that killed just now is told before the counters are gone. */
    kernelproc_check_memory(l, s, now_ms);
    s->state = SESSION_ENDING;
    s->reason = reason;
    s->ending_ms = now_ms;
    for (unsigned i = 0; i < LAUNCH_KERNELS_MAX; i++) {
        if (s->kernels[i].state == KERNEL_RUNNING)
            s->kernels[i].requested = 1;
        kernelstart_give_up(&s->kernels[i], HC_EGONE, "the session ends");
    }
    log_info("session_ends", "sandbox=%016" PRIx64 " reason=%s", s->id, LOG_QUOTED(reason));
    kill_all(s);
}

int ending_begin_kernel(struct session *s, uint32_t kernel, uint32_t generation, uint64_t request,
                        uint64_t now_ms, struct err *e)
{
    struct leaf *leaf = session_leaf_add(s, kernel, generation, now_ms);
    struct kernelproc *k = session_kernel(s, kernel, generation);

    if (leaf == NULL)
        return err_set(e, HC_ELIMIT, "%d kernels of the session end already", SESSION_LEAVES_MAX);
    if (request != 0 && stops_add(&leaf->stops, request) < 0)
        return err_set(e, HC_ELIMIT, "%d requests wait for the end of this kernel",
                       SESSION_STOPS_MAX);
    if (k != NULL && k->state == KERNEL_RUNNING)
        k->requested = 1;
    if (k != NULL)
        kernelstart_give_up(k, ECANCELED, "the kernel was stopped on its way");
    struct err why = { 0 };
    if (sandbox_kill_kernel(s->sandbox, kernel, generation, &why) <
        0) /* ending_step() tries again */
        log_warn("kill_failed", "sandbox=%016" PRIx64 " kernel=%u text=%s", s->id, kernel,
                 LOG_QUOTED(why.msg));
    return 0;
}

static int kernels_reaped(const struct session *s)
{
    for (unsigned i = 0; i < LAUNCH_KERNELS_MAX; i++) {
        if (kernel_has_process(&s->kernels[i]))
            return 0;
    }
    return 1;
}

static void finish_session(struct launcher *l, struct session *s)
{
    struct launch_sandbox_gone event = { .sandbox = s->id, .reason = view_cstr(s->reason) };

    log_info("session_gone", "sandbox=%016" PRIx64 " reason=%s", s->id, LOG_QUOTED(s->reason));
    for (unsigned i = 0; i < s->leaf_count; i++)
        launcher_answer_stops(l, &s->leaves[i].stops, s->id, 0, NULL);
    /* Of a stuck one who asked for its end has heard that it was not gone. */
    if (s->state == SESSION_STUCK || s->stops.count == 0)
        launcher_event(l, LAUNCH_SANDBOX_GONE, &event);
    launcher_answer_stops(l, &s->stops, s->id, 0, NULL);
    s->sandbox = NULL;
    sessions_remove(&l->sessions, s);
}

/* Not gone in time: whoever waits is told the truth, the index (its host ids and
 * cgroup) is used for nobody else, and the tries go on. */
static void quarantine(struct launcher *l, struct session *s, const char *why, uint64_t now_ms)
{
    struct launch_sandbox_gone event = {
        .sandbox = s->id,
        .reason = VIEW_STR("killed, but some of its processes are not gone yet"),
    };

    log_error("session_stuck", "sandbox=%016" PRIx64 " index=%u text=%s", s->id, s->index,
              LOG_QUOTED(why));
    s->state = SESSION_STUCK;
    s->next_try_ms = now_ms + STUCK_MS;
    if (s->stops.count == 0)
        launcher_event(l, LAUNCH_SANDBOX_GONE, &event);
    launcher_answer_stops(l, &s->stops, s->id, ETIMEDOUT, "killed, but not gone in time");
    for (unsigned i = 0; i < s->leaf_count; i++)
        launcher_answer_stops(l, &s->leaves[i].stops, s->id, ETIMEDOUT,
                              "killed, but not gone in time");
}

/* Returns 1 when the session is gone (and freed). */
static int step_session(struct launcher *l, struct session *s, uint64_t now_ms)
{
    struct err e = { .msg = "processes are left in its cgroups" };
    int rc = -EBUSY;

    if (s->state == SESSION_STUCK && now_ms < s->next_try_ms)
        return 0;
    if (!kernels_reaped(s) || s->init_alive || !sandbox_empty(s->sandbox))
        kill_all(
            s); /* again: cheap, and a fork may have slipped through where no cgroup.kill exists */
    else
        rc = sandbox_free(s->sandbox, &e);
    if (rc == 0) {
        finish_session(l, s);
        return 1;
    }
    if (s->state == SESSION_STUCK)
        s->next_try_ms = now_ms + STUCK_MS;
    else if (now_ms - s->ending_ms >= PATIENCE_MS)
        quarantine(l, s, e.msg, now_ms);
    return 0;
}

static int leaf_gone(struct session *s, const struct leaf *leaf, struct err *e)
{
    const struct kernelproc *k = session_kernel(s, leaf->kernel, leaf->generation);
    int reaped = k == NULL || !kernel_has_process(k);

    if (!reaped || !sandbox_kernel_empty(s->sandbox, leaf->kernel, leaf->generation)) {
        int rc = sandbox_kill_kernel(s->sandbox, leaf->kernel, leaf->generation, e);
        return rc < 0 ? rc : err_set(e, EBUSY, "processes are left in its cgroup");
    }
    int rc = sandbox_remove_kernel(s->sandbox, leaf->kernel, leaf->generation, e);
    return rc == -ENOENT ? 0 : rc; /* a start that failed has removed it */
}

/* Returns 1 when the leaf is gone (and removed from the list). */
static int step_leaf(struct launcher *l, struct session *s, struct leaf *leaf, uint64_t now_ms)
{
    struct err e = { 0 };

    if (leaf_gone(s, leaf, &e) == 0) {
        struct kernelproc *k = session_kernel(s, leaf->kernel, leaf->generation);

        if (k != NULL && leaf->stops.count > 0)
            k->state = KERNEL_NONE; /* who stopped it needs no record of its end */
        launcher_answer_stops(l, &leaf->stops, s->id, 0, NULL);
        session_leaf_remove(s, leaf);
        return 1;
    }
    if (!leaf->alarmed && now_ms - leaf->since_ms >= PATIENCE_MS) {
        leaf->alarmed = 1;
        log_error("kernel_stuck", "sandbox=%016" PRIx64 " kernel=%u generation=%u text=%s", s->id,
                  leaf->kernel, leaf->generation, LOG_QUOTED(e.msg));
        launcher_answer_stops(l, &leaf->stops, s->id, ETIMEDOUT, "killed, but not gone in time");
    }
    return 0;
}

static int sooner(int a, int b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int step_leaves(struct launcher *l, struct session *s, uint64_t now_ms)
{
    int next = -1;

    for (unsigned i = 0; i < s->leaf_count;) {
        int alarmed = s->leaves[i].alarmed;

        if (step_leaf(l, s, &s->leaves[i], now_ms))
            continue; /* another one took its place */
        next = sooner(next, alarmed ? STUCK_MS : STEP_MS);
        i++;
    }
    return next;
}

int ending_step(struct launcher *l, uint64_t now_ms)
{
    int next = -1;

    for (unsigned i = 0; i < l->sessions.max; i++) {
        struct session *s = l->sessions.slot[i];

        if (s == NULL)
            continue;
        if (s->state == SESSION_ALIVE)
            next = sooner(next, step_leaves(l, s, now_ms));
        else if (!step_session(l, s, now_ms))
            next = sooner(next, s->state == SESSION_STUCK ? STUCK_MS : STEP_MS);
    }
    return next;
}
