#include "silence.h"

/* Those whose connection broke have a rule of their own. */
static int is_silent(const struct query *r)
{
    return r->is_run && r->subshell[0] == '\0' && !r->doubtful && !r->heard && !r->busy &&
           !r->replied && !r->idle && !run_ended(&r->run);
}

int silence_concerns(const struct query *r)
{
    return is_silent(r) && r->reached;
}

int silence_is_due(const struct query *r, uint64_t now_ms)
{
    return is_silent(r) &&
           now_ms >= r->sent_us / 1000 + SILENCE_ASK_MS + r->bytes / SILENCE_BYTES_MS;
}

/* Kernels that answer while a cell runs would make what waits behind it look ignored. What a run of
 * the gateway before does is asked by other questions (kernel_inherit.c). */
static int occupies(const struct query *r)
{
    return r->is_run && r->subshell[0] == '\0' && !run_ended(&r->run) &&
           (((r->busy || r->heard) && !r->idle) || r->inherited);
}

static int is_occupied(const struct queries *q)
{
    for (const struct query *r = queries_first(q); r != NULL; r = queries_next(q, r)) {
        if (occupies(r))
            return 1;
    }
    return 0;
}

static void end_round(struct silence *s)
{
    s->upto = s->left = s->proven_ms = 0;
}

int silence_look(struct silence *s, const struct queries *q, uint64_t now_ms)
{
    uint64_t before = 0, newest = 0;
    int occupied = 0, open = 0;

    for (const struct query *r = queries_first(q); r != NULL; r = queries_next(q, r)) {
        int concerns = silence_concerns(r);
        before += r->channel == JMSG_SHELL && !r->idle;
        occupied |= occupies(r);
        open |= concerns && r->number <= s->upto;
        if (concerns && silence_is_due(r, now_ms))
            newest = r->number;
    }
    if (!open)
        end_round(s);
    if (s->upto == 0 && newest != 0 && !occupied) {
        s->upto = newest;
        s->forgotten = queries_forgotten(q);
        /* One more for a question that was open before, one for a request that is being read. */
        s->left = before + (s->forgotten - s->passed) + 2;
    }
    return s->left > 0;
}

int silence_answered(struct silence *s, const struct queries *q, uint64_t now_ms)
{
    if (s->left == 0)
        return 0;
    if (is_occupied(q)) {
        end_round(s); /* it took one meanwhile: from the beginning, when that is over */
        return 0;
    }
    if (--s->left > 0)
        return 1;
    s->passed = s->forgotten;
    s->proven_ms = now_ms;
    return 0;
}

int silence_is_ignored(const struct silence *s, const struct query *r, uint64_t now_ms)
{
    return s->proven_ms != 0 && now_ms >= s->proven_ms + SILENCE_GRACE_MS && r->number <= s->upto &&
           silence_concerns(r);
}
