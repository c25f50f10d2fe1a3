/*
 * drop - the one-way door: what every process of a session's user passes before
 * its first untrusted instruction (sandbox.md §3, steps 9 and 11 to 14), as one
 * visible, ordered list of steps.
 *
 * Runs in a freshly cloned child that already joined the session's namespaces
 * and holds CAP_SETUID, CAP_SETGID, CAP_SETPCAP there. No allocation, no log:
 * the warm template will call it between fork and interpreter.
 */
#ifndef HC_DROP_H
#define HC_DROP_H

#include <stdint.h>
#include <sys/types.h>

#include "cleanup.h"

struct err;
struct landlock_rule;

enum drop_filter {
    DROP_FILTER_SESSION, /* kernels, commands, file requests: the allow-list */
    DROP_FILTER_INIT,    /* pid 1: own list (needs clone, setuid family, inotify) */
    DROP_FILTER_NONE,    /* a host without seccomp, which its operator accepted by name */
};

enum drop_landlock {
    DROP_LANDLOCK_DEMANDED,  /* the session's rules; fails where the kernel has no Landlock */
    DROP_LANDLOCK_NONE,      /* a host without it, which its operator accepted by name */
    DROP_LANDLOCK_INHERITED, /* the parent (init) is in the layer already, and its children share it:
                              * processes in sibling layers cannot see each other in /proc */
};

enum { DROP_FDS_MAX = 32 };

struct drop_plan {
    uid_t uid, gid; /* inside the session's user namespace: 1000 for its user */
    mode_t umask;   /* 022; 007 for foreign kernels, which bind their own sockets */
    enum drop_filter filter;
    int keep_capabilities; /* 1 only for init: caps_of_init() stay */
    int new_session;       /* setsid() */
    /* Descriptors to keep: plan->fds[i] becomes number i (0, 1, 2, 3 ...); every other one is closed,
     * but for exec_status_fd, which is close-on-exec and moved behind them. */
    const int *fds;
    unsigned fd_count;
    int exec_status_fd;                  /* -1 for none; after the drop its number is fd_count */
    uint64_t nofile, nproc, fsize_bytes; /* hard limits; 0 keeps the inherited one */
    enum drop_landlock landlock;
    const struct landlock_rule *landlock_rules; /* NULL: landlock_session_rules(0) */
};

/* Returns 0, or the negative errno with the step's name in e. After a failure
 * the caller must _exit. Afterwards: every signal at its default and unblocked;
 * PDEATHSIG KILL; not dumpable (an exec makes it so again; a warm child, which
 * never execs, sets PR_SET_DUMPABLE 1 itself; nobody may set it before an exec,
 * for until then the memory is the launcher's). */
int drop_run(const struct drop_plan *plan, struct err *e) MUST_CHECK;

/* The names of the steps in their order, NULL-terminated; for doctor and tests. */
const char *const *drop_step_names(void);

#endif
