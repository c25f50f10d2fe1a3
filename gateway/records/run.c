#include "run.h"

#include <string.h>

enum {
    AGAIN_QUEUED_MAX = 3,  /* the interrupt came before the kernel took the request */
    AGAIN_RUNNING_MAX = 1, /* code that catches it may be cleaning up: asked once more, no more */
};

const char *run_state_name(enum run_state s)
{
    static const char *const names[] = {
        [RUN_QUEUED] = "queued",
        [RUN_RUNNING] = "running",
        [RUN_OK] = "ok",
        [RUN_ERROR] = "error",
        [RUN_TIMED_OUT] = "timed_out",
        [RUN_INTERRUPTED] = "interrupted",
        [RUN_KILLED] = "killed",
        [RUN_KERNEL_DIED] = "kernel_died",
        [RUN_ABORTED] = "aborted",
        [RUN_LOST] = "lost",
    };

    return names[s];
}

static void settle(struct run *r)
{
    if (!run_ended(r) && r->replied && r->idle)
        r->state = r->verdict;
}

void run_busy(struct run *r)
{
    if (r->state == RUN_QUEUED)
        r->state = RUN_RUNNING;
}

/* What its end is when an interrupt brought it. */
static enum run_state stopped(const struct run *r)
{
    return r->overdue ? RUN_TIMED_OUT : RUN_INTERRUPTED;
}

static enum run_state judge(const struct run *r, const char *status, const char *ename)
{
    if (strcmp(status, "ok") == 0)
        return RUN_OK;
    /* Some kernels, as that of bash, say so of a cell that was interrupted. */
    if (strcmp(status, "aborted") == 0 || strcmp(status, "abort") == 0)
        return r->overdue ? RUN_TIMED_OUT : RUN_ABORTED;
    if (r->interrupts > 0 && strcmp(ename, "KeyboardInterrupt") == 0)
        return stopped(r);
    return RUN_ERROR; /* also a reply without a status: it is not "ok" */
}

void run_reply(struct run *r, const char *status, const char *ename, uint64_t now_ms)
{
    if (run_ended(r) || r->replied)
        return;
    r->replied = 1;
    r->verdict = judge(r, status, ename);
    if (!r->idle)
        r->first_end_ms = now_ms;
    settle(r);
}

void run_idle(struct run *r, uint64_t now_ms)
{
    if (run_ended(r) || r->idle)
        return;
    r->idle = 1;
    if (!r->replied)
        r->first_end_ms = now_ms;
    settle(r);
}

void run_interrupt(struct run *r, uint64_t now_ms)
{
    if (run_ended(r))
        return;
    if (r->interrupts == 0)
        r->held_queued = r->state == RUN_QUEUED;
    r->interrupts++;
    r->interrupt_ms = now_ms;
}

void run_interrupt_sent(struct run *r, uint64_t now_ms)
{
    r->interrupt_ms = now_ms;
}

void run_overdue(struct run *r, uint64_t now_ms)
{
    run_interrupt(r, now_ms);
    r->overdue = 1;
}

void run_end(struct run *r, enum run_state how)
{
    if (!run_ended(r))
        r->state = how;
}

enum run_due run_check(struct run *r, uint64_t now_ms)
{
    if (run_ended(r))
        return RUN_WAIT;
    if (r->idle && now_ms >= r->first_end_ms + RUN_IDLE_GRACE_MS) {
        r->state = r->interrupts > 0 ? stopped(r) : RUN_LOST;
        return RUN_ENDED;
    }
    if (r->replied && now_ms >= r->first_end_ms + RUN_REPLY_GRACE_MS) {
        r->state = r->verdict;
        return RUN_ENDED;
    }
    unsigned max = 1 + (r->held_queued ? AGAIN_QUEUED_MAX : AGAIN_RUNNING_MAX);
    /* The ladder of a deadline sends its own. */
    if (r->interrupts > 0 && !r->overdue && r->interrupts < max && !r->replied && !r->idle &&
        now_ms >= r->interrupt_ms + RUN_AGAIN_MS)
        return RUN_INTERRUPT_AGAIN;
    return RUN_WAIT;
}
