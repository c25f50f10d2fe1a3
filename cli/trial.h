/*
 * trial - the settings, read once by a child without power, as the gateway will read
 * them: what is wrong in a file is told before it takes effect, and the supervisor
 * parses nothing.
 */
#ifndef HC_TRIAL_H
#define HC_TRIAL_H

#include <sys/types.h>

#include "buf.h"

struct err;

struct trial {
    pid_t pid;     /* 0: none runs */
    int result_fd; /* owned; -1 */
    int starting;  /* 1: of a server's start (front.h) */
};
#define TRIAL_NONE ((struct trial){ .result_fd = -1 })

/* uid: whose power the child has. It ends by itself after some seconds in any case. */
int trial_start(struct trial *t, struct view blob, uid_t uid, struct err *e) MUST_CHECK;
/* The child was reaped with this status. 0: the settings are right; the table of profiles (sessionprofile.h) that
 * they hold was added to table, an empty buf with room for PROFILES_TEXT and 4096 bytes more. */
int trial_end(struct trial *t, int status, struct buf *table, struct err *e) MUST_CHECK;
/* Both, waiting in between. */
int trial_run(struct view blob, uid_t uid, struct buf *table, struct err *e) MUST_CHECK;

#endif
