#include "interrupt.h"

#include <stdio.h>
#include <string.h>

#include "query.h"

static void enter(struct interrupt *i, enum interrupt_stage stage, uint64_t now_ms)
{
    i->stage = stage;
    i->since_ms = now_ms;
}

static enum interrupt_act send_now(struct interrupt *i, uint64_t now_ms)
{
    enter(i, STAGE_SENT, now_ms);
    return INTERRUPT_SEND;
}

static enum interrupt_act hold(struct interrupt *i, uint64_t now_ms)
{
    enter(i, STAGE_HELD, now_ms);
    return INTERRUPT_WAIT;
}

/* What the gateway before this one sent began long ago, whether or not it was heard of. */
static int has_begun(const struct query *q)
{
    return q->busy || q->inherited;
}

static enum interrupt_act ask_of_no_run(const struct interrupt_moment *m)
{
    if (!m->can_take || (m->sent_by_client && m->way != INTERRUPT_BY_NAME))
        return INTERRUPT_NOTHING;
    /* A message does no harm, and the kernel may know more than we do. A signal ends some that
     * do nothing. */
    return m->works || m->way == INTERRUPT_BY_MESSAGE ? INTERRUPT_SEND : INTERRUPT_NOTHING;
}

enum interrupt_act interrupt_ask(struct interrupt *i, const struct interrupt_moment *m)
{
    if (m->target == NULL)
        return ask_of_no_run(m);
    /* Two that are on their way would be one too many: the second might hit the next run. By name
     * it cannot, and the run may have caught the first, whose answer comes behind what it printed. */
    if (interrupt_waits(i))
        return i->stage == STAGE_NAMED && m->can_take ? INTERRUPT_NAME : INTERRUPT_NOTHING;
    if (!m->can_take)
        return hold(i, m->now_ms);
    if (m->way == INTERRUPT_BY_NAME && m->target->id[0] != '\0') {
        enter(i, STAGE_NAMED, m->now_ms);
        i->message_id[0] = '\0';
        return INTERRUPT_NAME;
    }
    if (!has_begun(m->target))
        return hold(i, m->now_ms);
    send_now(i, m->now_ms);
    return m->sent_by_client && m->way != INTERRUPT_BY_NAME ? INTERRUPT_NOTHING : INTERRUPT_SEND;
}

void interrupt_named(struct interrupt *i, const char *message_id)
{
    snprintf(i->message_id, sizeof i->message_id, "%s", message_id);
}

void interrupt_answered(struct interrupt *i, const char *message_id, int taken)
{
    if (i->stage != STAGE_NAMED || strcmp(i->message_id, message_id) != 0)
        return;
    if (taken)
        i->stage = STAGE_SENT;
    else
        i->since_ms = 0; /* interrupt_check() need not wait any more */
}

enum interrupt_act interrupt_busy(struct interrupt *i, const struct interrupt_moment *m)
{
    if (i->stage == STAGE_HELD && m->can_take)
        return send_now(i, m->now_ms);
    if (i->stage == STAGE_BLIND)
        enter(i, STAGE_DOUBT, m->now_ms);
    return INTERRUPT_NOTHING;
}

/* The control channel answers behind what the kernel prints. */
static int answer_is_late(const struct interrupt *i, const struct interrupt_moment *m)
{
    uint64_t from = m->output_ms > i->since_ms ? m->output_ms : i->since_ms;

    return i->since_ms == 0 || m->now_ms >= i->since_ms + INTERRUPT_FLOW_MS ||
           m->now_ms >= from + INTERRUPT_ANSWER_MS;
}

static enum interrupt_act check_held(struct interrupt *i, const struct interrupt_moment *m)
{
    uint64_t wait = m->way == INTERRUPT_BY_NAME ? INTERRUPT_BUSY_MS : INTERRUPT_BUSY_FOREIGN_MS;

    if (!m->can_take || !m->may_run) {
        i->since_ms = m->now_ms;
        return INTERRUPT_WAIT;
    }
    if (has_begun(m->target))
        return send_now(i, m->now_ms);
    if (m->now_ms < i->since_ms + wait)
        return INTERRUPT_WAIT;
    enter(i, STAGE_BLIND, m->now_ms);
    return INTERRUPT_SEND;
}

enum interrupt_act interrupt_check(struct interrupt *i, const struct interrupt_moment *m)
{
    if (m->target == NULL) {
        *i = (struct interrupt){ 0 };
        return INTERRUPT_NOTHING;
    }
    switch (i->stage) {
    case STAGE_NAMED:
        if (!answer_is_late(i, m))
            return INTERRUPT_WAIT;
        return has_begun(m->target) ? send_now(i, m->now_ms) : hold(i, m->now_ms);
    case STAGE_HELD:
        return check_held(i, m);
    case STAGE_DOUBT:
        return m->now_ms < i->since_ms + INTERRUPT_BUSY_MS ? INTERRUPT_WAIT
                                                           : send_now(i, m->now_ms);
    case STAGE_NONE:
    case STAGE_BLIND:
    case STAGE_SENT:
        break;
    }
    return INTERRUPT_NOTHING;
}

int interrupt_is_pending(const struct interrupt *i)
{
    return interrupt_waits(i) || i->stage == STAGE_DOUBT;
}

int interrupt_awaits_busy(const struct interrupt *i)
{
    return i->stage == STAGE_HELD || i->stage == STAGE_BLIND;
}

int interrupt_waits(const struct interrupt *i)
{
    return i->stage == STAGE_HELD || i->stage == STAGE_NAMED;
}
