/*
 * kernel - one interpreter in a sandbox, its Jupyter channels, its event log and
 * its outstanding runs. Life and death come from the launcher alone.
 */
#ifndef HC_KERNEL_H
#define HC_KERNEL_H

#include <stdint.h>

#include "buf.h"
#include "hex.h"
#include "note.h"
#include "sessions.h"

struct err;
struct kernel;
struct kernelspec;

/* What REST tells; states: starting, idle, busy, unresponsive, restarting, dead (docs/STATES.md). */
struct kernel_model {
    char id[UUID_TEXT];
    const char *name;    /* borrowed */
    const char *profile; /* borrowed; NULL: the server has only one */
    const char *execution_state;
    uint64_t last_activity_us; /* CLOCK_REALTIME */
    unsigned connections;
    const char *
        reason; /* why it died or is restarting, e.g. "out of memory: limit 2147483648, peak ..."; "" when nothing happened */
};
void kernel_model(const struct kernel *k, struct kernel_model *ret);

/* Those of its session, in force or to be. Borrowed. */
const struct launch_limits *kernel_limits(const struct kernel *k);
const struct time_limits *kernel_times(const struct kernel *k);

/* Keeps a JSON array with the kernel, also for the next gateway: what a front has to
 * know of it again. -EMSGSIZE above NOTE_KEPT_MAX bytes. */
int kernel_keep(struct kernel *k, struct view json, struct err *e) MUST_CHECK;
struct view kernel_kept(const struct kernel *k); /* empty when there is nothing */

/* Its notebook session has another name: the next start's JPY_SESSION_NAME. */
void kernel_name_session(struct kernel *k, const char *name);

/* 1 while its process (re)starts and has not answered anything yet. */
int kernel_is_starting(const struct kernel *k);
/* done when it has answered, at once when it is not starting, and after the
 * handshake time of the policy in any case (k is alive then); e when it is gone.
 * Some clients give up when a kernel does not answer within a second of the 101. */
void kernel_await_ready(struct kernel *k, kernel_done_fn *done, void *arg, uint64_t token);

/* What runs is interrupted; where nothing does, the first run that was accepted, also one that
 * waits for the kernel (docs/STATES.md). Does not wait for its end. */
int kernel_interrupt(struct kernel *k, struct err *e) MUST_CHECK;
/* Same id, new process and sandbox-side sockets; done when exec succeeded. */
void kernel_restart(struct kernel *k, kernel_done_fn *done, void *arg, uint64_t token);
/* Lookups find it no more. Graceful, then by force; done when process, sandbox and log are gone: k is NULL then. Open clients are told and closed. */
void kernel_delete(struct kernel *k, kernel_done_fn *done, void *arg, uint64_t token);

#endif
