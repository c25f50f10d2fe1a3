/*
 * runclock - the deadlines of one run: how long its code may run, and how long input() may
 * wait for an answer. Times in, the next rung of the ladder out; each rung comes at its time,
 * whatever became of the one before. Pure.
 */
#ifndef HC_RUNCLOCK_H
#define HC_RUNCLOCK_H

#include <stdint.h>

#include "buf.h"
#include "timelimits.h"

enum runclock_rung {
    RUNCLOCK_WAIT,
    RUNCLOCK_INTERRUPT, /* the deadline has passed */
    RUNCLOCK_INTERRUPT_AGAIN,
    RUNCLOCK_END, /* the kernel is ended: SIGTERM, then all that is left of it is killed */
};

enum {
    RUNCLOCK_AGAIN_MS = 2000, /* from the deadline */
    RUNCLOCK_END_MS = 5000,   /* likewise */
    RUNCLOCK_KILL_MS = 2000,  /* from SIGTERM */
    /* A run that another gateway left may be over: so long it is given to show it. */
    RUNCLOCK_ADOPTED_MS = 1500,
    RUNCLOCK_BYTES = 4 * 8, /* in a note */
};

enum runclock_why { RUNCLOCK_CELL, RUNCLOCK_STDIN };

/* All zero: a run that has not begun. Times are CLOCK_MONOTONIC, 0: not so. */
struct runclock {
    uint64_t ran_ms;    /* of its code, without what runs since since_ms */
    uint64_t since_ms;  /* its code runs since then */
    uint64_t waited_ms; /* for answers that came */
    uint64_t asked_ms;  /* a question waits since then */
    uint64_t due_ms;    /* a deadline passed then */
    uint64_t hold_ms;   /* no rung before that */
    enum runclock_rung rung;
    enum runclock_why why; /* once due */
};

void runclock_run(struct runclock *c, uint64_t now_ms); /* its code runs, from now on */
void runclock_withdraw(struct runclock *c);             /* it was another one that ran */
void runclock_ask(struct runclock *c, uint64_t now_ms); /* it waits for an answer */
void runclock_answer(struct runclock *c, uint64_t now_ms);
/* For so long nobody could look, since all of us were stopped: it does not count. */
void runclock_shift(struct runclock *c, uint64_t ms);

static inline int runclock_is_due(const struct runclock *c)
{
    return c->rung != RUNCLOCK_WAIT;
}

/*
 * The rung that is to be taken now; each comes once. Waiting counts for the cell's time
 * only beyond stdin_ms in all: a run cannot last longer than both limits together, whatever
 * it asks for, and without a limit for questions they are no way out of the other one.
 */
enum runclock_rung runclock_check(struct runclock *c, const struct time_limits *limits,
                                  uint64_t now_ms);

/* For the next gateway. */
void runclock_pack(const struct runclock *c, uint8_t out[RUNCLOCK_BYTES]);
/* The times go on. A ladder begins anew: its first rungs may have had no effect yet. */
void runclock_adopt(struct runclock *c, const uint8_t in[RUNCLOCK_BYTES], uint64_t now_ms);

#endif
