/* kernelproc - signals to kernels, and how each one ended. */
#ifndef HC_KERNELPROC_H
#define HC_KERNELPROC_H

#include <stdint.h>

#include "cleanup.h"

struct err;
struct kernelproc;
struct launch_signal;
struct launcher;
struct session;

/* One of the permitted signals to the process or its group. -HC_EGONE when it
 * has just ended. */
int kernelproc_signal(struct kernelproc *k, const struct launch_signal *m,
                      struct err *e) MUST_CHECK;
int kernelproc_signal_permitted(uint32_t signo);

/* The kernel was reaped with this wait status: sends OUT_OF_MEMORY when that is
 * news, then KERNEL_EXITED, and begins to clear the leaf. */
void kernelproc_exited(struct launcher *l, struct session *s, struct kernelproc *k, int status,
                       uint64_t now_ms);

/* The sandbox's memory descriptor polled: memory ran out, perhaps the limit kills. */
void kernelproc_memory_event(struct launcher *l, struct session *s, uint64_t now_ms);
/* Asks the counters; sends OUT_OF_MEMORY when the limit killed since the last time. */
void kernelproc_check_memory(struct launcher *l, struct session *s, uint64_t now_ms);

/* Forks or new threads were refused: sends TASKS_REFUSED, once a second at most. */
void kernelproc_tasks_event(struct launcher *l, struct session *s, uint64_t now_ms);

#endif
