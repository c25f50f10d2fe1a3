/*
 * activity - execution_state and last_activity of a kernel as Jupyter defines
 * them (jupyter-wire.md 2.11), from what the kernel publishes. Pure.
 */
#ifndef HC_ACTIVITY_H
#define HC_ACTIVITY_H

#include <stdint.h>

enum activity_state { ACTIVITY_STARTING, ACTIVITY_IDLE, ACTIVITY_BUSY };

struct activity {
    enum activity_state state;
    uint64_t last_us; /* CLOCK_REALTIME */
};

void activity_start(struct activity *a, uint64_t now_us); /* also at each restart */

/* One iopub message: its type, the parent's ("" without a parent) and, of a
 * status, its execution_state ("" of the others). */
void activity_message(struct activity *a, const char *type, const char *parent_type,
                      const char *execution_state, uint64_t now_us);

const char *activity_name(enum activity_state s);

#endif
