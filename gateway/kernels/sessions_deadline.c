/* Who ends a session when no gateway comes back: the launcher, at a deadline that a
 * living gateway moves on all the time. */
#include <errno.h>
#include <inttypes.h>

#include "err.h"
#include "log.h"
#include "session.h"
#include "sessions_own.h"

enum {
    RENEWALS = 3,             /* within the time that is given */
    LIFE_GRACE_MS = 20000,    /* of the launcher, when no gateway ends a session in time */
    AHEAD_MAX_MS = 604800000, /* the launcher takes no deadline that is far off */
};

static void on_renewed(void *arg, uint64_t number, struct launch_answer *a)
{
    static struct log_limit limit;

    (void)arg;
    if (a->error != 0 && a->error != ENOENT && log_allowed(&limit, 5))
        log_warn("deadline", "session=%" PRIu64 " error=\"%s\"", number, a->text);
}

static uint64_t deadline_of(const struct sessions *s, const struct session *n)
{
    uint64_t now = loop_now_ms(s->loop), life = session_life_end(n);
    uint64_t orphan = s->policy.orphan_ms > 0 ? now + s->policy.orphan_ms : 0;

    if (life == 0 || (life > now && life - now > AHEAD_MAX_MS))
        return orphan;
    life += LIFE_GRACE_MS;
    return orphan != 0 && orphan < life ? orphan : life;
}

void sessions_renew_deadline(struct sessions *s, struct session *n)
{
    struct launch_deadline body = { .sandbox = n->sandbox };
    struct err e = { 0 };

    if (n->sandbox == 0)
        return;
    /* 0 takes away what a gateway with other settings asked for. */
    body.monotonic_ms = deadline_of(s, n);
    if (launchclient_ask(s->launcher, LAUNCH_DEADLINE, &body, NULL, 0, on_renewed, s, n->number,
                         &e) < 0)
        log_warn("deadline", "session=%s error=\"%s\"", n->id, e.msg);
}

static void on_time(void *arg)
{
    struct sessions *s = arg;

    for (struct session *n = s->first; n != NULL; n = n->next)
        sessions_renew_deadline(s, n);
}

void sessions_watch_deadlines(struct sessions *s)
{
    uint64_t every = s->policy.orphan_ms / RENEWALS;

    if (every > 0)
        s->deadline_timer = loop_timer_start(s->loop, every, every, on_time, s);
}
