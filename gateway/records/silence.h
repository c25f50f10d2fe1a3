/*
 * silence - runs that a kernel threw away without a word: it reads a request, cannot make sense of it
 * and goes on. Pure: which runs may be such ones, how many questions tell, and when it is told.
 *
 * A kernel takes what was sent to its shell in order, from its connections in turns. So once it has
 * answered more questions, each sent after the one before was answered, than there are requests that
 * may stand before a run on the run's own connection, it has read the run too. Who is slow, stopped or
 * at work answers nothing.
 */
#ifndef HC_SILENCE_H
#define HC_SILENCE_H

#include <stdint.h>

#include "query.h"

enum {
    SILENCE_ASK_MS = 3000,   /* a kernel that is free says busy within milliseconds, */
    SILENCE_BYTES_MS = 4096, /* and reads as many bytes of a large request in one at the least */
    SILENCE_GRACE_MS = 1000, /* an answer may overtake busy and reply: they come by other sockets */
};

struct silence {        /* of a kernel; all 0: no round of questions was ever begun */
    uint64_t upto;      /* number of the newest run that the round is about; 0: none is under way */
    uint64_t left;      /* answers that are still to come */
    uint64_t proven_ms; /* when the last of them came; 0: not yet */
    uint64_t forgotten; /* queries_forgotten() when it began, */
    uint64_t passed;    /* and when the last one began that was answered to the end */
};

/* An open run of the main shell that is past what is ours and of which nothing was heard. */
int silence_concerns(const struct query *r);
/* Likewise, for so long that the kernel is to be asked. Also of those that are not known to be
 * reached. */
int silence_is_due(const struct query *r, uint64_t now_ms);

/* From time to time. 1: a question is to be sent, unless one is open. */
int silence_look(struct silence *s, const struct queries *q, uint64_t now_ms);
/* The main shell answered one. 1: the next is to be sent. */
int silence_answered(struct silence *s, const struct queries *q, uint64_t now_ms);
/* The kernel has read the request and ignored it. */
int silence_is_ignored(const struct silence *s, const struct query *r, uint64_t now_ms);

#endif
