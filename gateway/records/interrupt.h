/*
 * interrupt - what becomes of an interrupt that somebody asked for: what the kernel is sent for
 * it, now, or when the run that it is for has come so far. Decides only, its caller sends.
 *
 * A signal says not which run it is for, and most kernels drop one that comes before they took
 * the request. So it waits for their `busy`. Kernels of our runtime are told the run's name.
 */
#ifndef HC_INTERRUPT_H
#define HC_INTERRUPT_H

#include <stdint.h>

#include "ownmsg.h"

struct query;

enum interrupt_stage {
    STAGE_NONE,
    STAGE_HELD,  /* until its run is busy */
    STAGE_NAMED, /* until the kernel answers */
    STAGE_BLIND, /* sent without its busy: when that comes it may have come too early */
    STAGE_DOUBT, /* that busy came: sent again unless the run ends soon */
    STAGE_SENT,
};

/* Of one run, and gone with it: zeroed at first, then private. */
struct interrupt {
    enum interrupt_stage stage;
    uint64_t since_ms;
    char message_id[OWNMSG_ID];
};

enum interrupt_way {
    INTERRUPT_BY_SIGNAL,
    INTERRUPT_BY_MESSAGE, /* its kernelspec says so; no signal is ever sent */
    INTERRUPT_BY_NAME,    /* of our runtime: a message with the run's msg_id, else the signal */
};

enum interrupt_act {
    INTERRUPT_NOTHING, /* there is nothing to interrupt, or it is on its way */
    INTERRUPT_WAIT,    /* kept for the run: interrupt_busy() or interrupt_check() brings it */
    INTERRUPT_NAME,    /* send the message with the run's name, then interrupt_named() */
    INTERRUPT_SEND,    /* send the signal, or the message that names nothing */
};

enum {
    INTERRUPT_TAKE_MS = 300,   /* so long the kernel may take a named one */
    INTERRUPT_ANSWER_MS = 450, /* so long its answer is waited for; then the signal is sent */
    INTERRUPT_FLOW_MS = 3000,  /* at most, while output keeps the answer */
    /* A run that says no busy may run all the same: it holds the interpreter lock. A foreign
     * kernel gets more time, since a signal may end one that did not take the run yet. */
    INTERRUPT_BUSY_MS = 500,
    INTERRUPT_BUSY_FOREIGN_MS = 2000,
};

struct interrupt_moment {
    enum interrupt_way way;
    int can_take;               /* the process has answered: a signal would end one that starts */
    const struct query *target; /* the run that is meant, open and without a reply; or NULL */
    int may_run;                /* nothing else is known to run where the target would */
    int works;                  /* something that is no run is at work, or may be */
    int sent_by_client;         /* its message is on the way to the kernel, and names nothing */
    uint64_t output_ms;         /* when the kernel published last */
    uint64_t now_ms;
};

/* In all of these i is that of m->target; NULL where there is none. */
enum interrupt_act interrupt_ask(struct interrupt *i, const struct interrupt_moment *m);
/* The target is told of by name, in a message of this id. */
void interrupt_named(struct interrupt *i, const char *message_id);
/* The kernel answered that message, which may have been another's; taken: it holds for the run. */
void interrupt_answered(struct interrupt *i, const char *message_id, int taken);
/* The kernel said busy for m->target. */
enum interrupt_act interrupt_busy(struct interrupt *i, const struct interrupt_moment *m);
/* From time to time, while interrupt_is_pending(); m->target NULL: its run is over. */
enum interrupt_act interrupt_check(struct interrupt *i, const struct interrupt_moment *m);
int interrupt_is_pending(const struct interrupt *i);
int interrupt_awaits_busy(const struct interrupt *i); /* interrupt_busy() is to be called */
/* What was asked for was not sent so far. */
int interrupt_waits(const struct interrupt *i);

#endif
