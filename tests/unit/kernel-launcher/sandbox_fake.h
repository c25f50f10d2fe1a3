/*
 * sandbox_fake - stands in for sandbox/ under the launcher: processes are real
 * children of the test, walls and cgroups are counters that the test sets.
 */
#ifndef HC_SANDBOX_FAKE_H
#define HC_SANDBOX_FAKE_H

#include <stdint.h>

#include "sandbox.h"

enum { SANDBOX_FAKE_HELD = 16 };

struct sandbox_fake {
    struct sandbox_room *room;  /* what the host has left; NULL: no end of all */
    struct sandbox_share share; /* of all sessions, that was asked for last */
    uint64_t memory;            /* that each session uses */
    int disk_error;             /* errno value of sandbox_host_disk(); 0: works */
    char workspace[64];         /* of the last sandbox, likewise: */
    struct sandbox_files files; /* of the last sandbox */
    int create_error, start_error,
        end_error;       /* errno values; 0: works. end: of sandbox_start_end() */
    int no_loop_devices; /* homes on disk are -ENODEV */
    int create_ms;       /* that it takes to build one */
    int create_s;        /* likewise, by the clock alone: nobody waits for them */
    int ahead_s;         /* that the clock is ahead by now */
    int hold_starts;     /* kernels stay on their way until fake_let_go() */
    int kill_has_no_effect;
    int held[SANDBOX_FAKE_HELD];
    unsigned held_count;
    unsigned busy; /* so many answers "not yet" of free, empty and remove */
    int never_empty;
    pid_t reaped;                                     /* last of sandbox_host_reaped() */
    int killed;                                       /* calls of sandbox_kill */
    int alive;                                        /* sandboxes that are not freed */
    int sealed;                                       /* calls of sandbox_seal */
    uint64_t kills;                                   /* oom counter of every session */
    uint64_t tasks_refused;                           /* likewise */
    int init_is_dying;                                /* of all of them */
    unsigned indexes;                                 /* bit per index in use, of the first 32 */
    char spec_name[64], cwd[64], argv0[64], env0[64]; /* of the last start */
};

extern struct sandbox_fake fake;

void fake_let_go(void);
void fake_forget_held(void); /* those that were held stay so */

/* As if the memory limit had killed something; wakes those who poll. */
void fake_oom(void);

/* As if a fork had been refused. */
void fake_refuse_task(void);

/* argv[0] says what a kernel does: "wait" until it is killed, "exit7", "segv",
 * "suicide" (SIGKILL by its own hand). */

#endif
