/*
 * run - one execution of code, from the request to its true end. Pure: events
 * and times in, states out. Ends only with the kernel's reply and its idle, or
 * by a rule that says why not (docs/STATES.md).
 */
#ifndef HC_RUN_H
#define HC_RUN_H

#include <stdint.h>

#include "buf.h"

enum run_state {
    RUN_QUEUED,  /* sent */
    RUN_RUNNING, /* the kernel said busy */
    RUN_OK,
    RUN_ERROR,       /* in the user's code */
    RUN_TIMED_OUT,   /* a deadline of ours ended it */
    RUN_INTERRUPTED, /* ended by an interrupt, with a reply or with idle alone */
    RUN_KILLED,      /* the process was killed: memory limit, signal, restart, delete */
    RUN_KERNEL_DIED, /* the process ended by itself */
    RUN_ABORTED,     /* an earlier cell failed */
    RUN_LOST,        /* it could not be watched to its end */
};
const char *run_state_name(enum run_state s);

struct run {
    enum run_state state;
    enum run_state verdict; /* of the reply, once replied */
    int replied, idle;
    int held_queued;       /* it was still queued when the interrupt was sent */
    int overdue;           /* a deadline of ours has passed: that is what it is interrupted for */
    unsigned interrupts;   /* sent for this run */
    uint64_t interrupt_ms; /* when the last one was sent */
    uint64_t first_end_ms; /* when the first of reply and idle came */
};

enum {
    RUN_IDLE_GRACE_MS =
        1000, /* idle without a reply: it will not come (ipykernel sends the reply first) */
    RUN_REPLY_GRACE_MS = 5000, /* reply without an idle: iopub may be far behind */
    RUN_AGAIN_MS = 2000,       /* an interrupt that missed is sent again */
};

static inline int run_ended(const struct run *r)
{
    return r->state > RUN_RUNNING;
}

void run_busy(struct run *r);
/* status and ename of an execute_reply's content, decoded, "" when absent. */
void run_reply(struct run *r, const char *status, const char *ename, uint64_t now_ms);
void run_idle(struct run *r, uint64_t now_ms);
/* It is to be interrupted: sent at once, or it waits for its moment. */
void run_interrupt(struct run *r, uint64_t now_ms);
/* What had waited was sent: whether it missed is looked at from now on. */
void run_interrupt_sent(struct run *r, uint64_t now_ms);
/* A deadline has passed, and an interrupt was sent for it. */
void run_overdue(struct run *r, uint64_t now_ms);
/* The process is gone, or the channel: how is one of the end states. */
void run_end(struct run *r, enum run_state how);

enum run_due { RUN_WAIT, RUN_INTERRUPT_AGAIN, RUN_ENDED };
/* What time has brought: RUN_ENDED when a grace time is over (the state is set). */
enum run_due run_check(struct run *r, uint64_t now_ms);

/* The kernel ended the run without answering: the asker gets an answer made by the
 * gateway, or it would wait for ever. */
static inline int run_wants_reply(const struct run *r)
{
    return (r->state == RUN_INTERRUPTED || r->state == RUN_TIMED_OUT || r->state == RUN_LOST) &&
           !r->replied;
}

#endif
