/*
 * liveness - whether a kernel that lives still answers: beats that it sends back
 * on its heartbeat channel, and questions on its control channel. Pure: it counts
 * ticks, not time, so that a gateway which itself stood still blames nobody.
 *
 * It only ever describes (docs/STATES.md, "unresponsive"); nothing is restarted,
 * interrupted or dropped for it.
 */
#ifndef HC_LIVENESS_H
#define HC_LIVENESS_H

#include <stdint.h>

enum {
    LIVENESS_TICK_MS = 5000,
    LIVENESS_LOST_TICKS = 2,  /* whole ticks without the answer */
    LIVENESS_ASK_TICKS = 3,   /* between questions on control: they cost the kernel some Python */
    LIVENESS_AGAIN_TICKS = 6, /* between repetitions to a silent kernel */
    LIVENESS_UNANSWERED_MAX = 4, /* then nothing more is sent: a silent peer is not filled up */
};

enum liveness_due { LIVENESS_BEAT = 1, LIVENESS_ASK = 2 };
enum liveness_loss { LIVENESS_WELL, LIVENESS_NO_HEARTBEAT, LIVENESS_NO_CONTROL };

struct liveness_probe {
    uint64_t sent, answered; /* numbers of the newest; 0: none */
    unsigned silent;         /* ticks since an unanswered one was sent or another answered */
    unsigned silent_idle;    /* likewise, since the kernel was last seen at work */
};

struct liveness {
    int owes_heartbeat; /* 1: beats from the start; else silence counts after a first beat */
    unsigned until_ask; /* ticks */
    struct liveness_probe heart, control;
};

void liveness_start(struct liveness *l, int owes_heartbeat);
/* Every LIVENESS_TICK_MS. What is to be sent now (LIVENESS_BEAT, LIVENESS_ASK); it
 * counts as sent. busy: the kernel works on something it was asked. */
unsigned liveness_tick(struct liveness *l, int busy);
/* The kernel returned beat `number`; one that was not sent, or is old, is ignored. */
void liveness_beat(struct liveness *l, uint64_t number);
void liveness_answer(struct liveness *l); /* on the control channel */

/* What an idle kernel is told about; a busy one has a loss only of its heartbeat. */
enum liveness_loss liveness_loss(const struct liveness *l, int busy);
const char *liveness_text(enum liveness_loss loss); /* "" when all is well */

#endif
