#include "liveness.h"

void liveness_start(struct liveness *l, int owes_heartbeat)
{
    *l = (struct liveness){ .owes_heartbeat = owes_heartbeat, .until_ask = LIVENESS_ASK_TICKS };
}

static int is_silent(const struct liveness_probe *p)
{
    return p->sent != p->answered;
}

/* Kernels that serve everything on one thread answer neither channel while a cell
 * runs, and their answers arrive just after its end: silence counts anew from there. */
static void count(struct liveness_probe *p, int busy)
{
    if (!is_silent(p))
        return;
    p->silent++;
    p->silent_idle = busy ? 0 : p->silent_idle + 1;
}

static int is_due(const struct liveness_probe *p)
{
    if (!is_silent(p))
        return 1;
    return p->sent - p->answered < LIVENESS_UNANSWERED_MAX && p->silent % LIVENESS_AGAIN_TICKS == 0;
}

static void answered(struct liveness_probe *p, uint64_t number)
{
    p->answered = number;
    p->silent = p->silent_idle = 0;
}

unsigned liveness_tick(struct liveness *l, int busy)
{
    unsigned due = 0;

    count(&l->heart, busy);
    count(&l->control, busy);
    if (is_due(&l->heart)) {
        l->heart.sent++;
        due |= LIVENESS_BEAT;
    }
    if (l->until_ask > 0)
        l->until_ask--;
    /* A cell in native code may hold the interpreter lock for hours: nothing is
     * asked that could only be answered after it. */
    if (!busy && l->until_ask == 0 && is_due(&l->control)) {
        l->control.sent++;
        l->until_ask = LIVENESS_ASK_TICKS;
        due |= LIVENESS_ASK;
    }
    return due;
}

void liveness_beat(struct liveness *l, uint64_t number)
{
    if (number > l->heart.answered && number <= l->heart.sent)
        answered(&l->heart, number);
}

void liveness_answer(struct liveness *l)
{
    answered(&l->control, l->control.sent);
}

enum liveness_loss liveness_loss(const struct liveness *l, int busy)
{
    const struct liveness_probe *h = &l->heart, *c = &l->control;
    unsigned silent = busy ? h->silent : h->silent_idle;

    if (silent >= LIVENESS_LOST_TICKS && (h->answered > 0 || l->owes_heartbeat))
        return LIVENESS_NO_HEARTBEAT;
    /* Some kernels never answer questions there. */
    if (!busy && c->answered > 0 && c->silent_idle >= LIVENESS_LOST_TICKS)
        return LIVENESS_NO_CONTROL;
    return LIVENESS_WELL;
}

const char *liveness_text(enum liveness_loss loss)
{
    static const char *const texts[] = {
        [LIVENESS_WELL] = "",
        [LIVENESS_NO_HEARTBEAT] = "unresponsive: the kernel does not return heartbeats",
        [LIVENESS_NO_CONTROL] = "unresponsive: the kernel does not answer on its control channel",
    };

    return texts[loss];
}
