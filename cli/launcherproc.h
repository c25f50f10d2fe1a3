/*
 * launcherproc - the launcher that runs below the supervisor: a child of it, or the keeper
 * of an earlier server's kernels, which is no child and is known by a pidfd.
 */
#ifndef HC_LAUNCHERPROC_H
#define HC_LAUNCHERPROC_H

#include <sys/types.h>

#include "cleanup.h"

struct link;
struct supervise_plan;

struct launcherproc {
    pid_t pid;            /* 0 while none runs */
    int pidfd;            /* owned; of one that is no child of ours (a keeper), else -1 */
    struct link *control; /* owned: to the launcher; NULL while none runs */
    int ended_well;       /* it said so */
};

#define LAUNCHERPROC_NONE ((struct launcherproc){ .pidfd = -1 })

/* Both log what goes wrong, and return a negative number then. */
int launcherproc_start(struct launcherproc *p, const struct supervise_plan *plan) MUST_CHECK;
/* The keeper of the plan's instance is the launcher from now on. */
int launcherproc_adopt(struct launcherproc *p, const struct supervise_plan *plan) MUST_CHECK;

void launcherproc_signal(const struct launcherproc *p, int signo);
void launcherproc_ended(struct launcherproc *p); /* forgets it */
void launcherproc_close(struct launcherproc *p); /* lets go of it; it may live on */

#endif
