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
    uint64_t
        last_us; /* CLOCK_REALTIME: what clients are told; whatever the kernel publishes counts */
    uint64_t
        last_ms; /* CLOCK_MONOTONIC: what idleness is measured by; what a kernel says of itself does not count */
};

struct activity_now { /* one moment on both clocks */
    uint64_t us, ms;
};

void activity_start(struct activity *a, struct activity_now now); /* also at each restart */
void activity_touch(struct activity *a, struct activity_now now); /* something was done */

/* The kernel did something for a request of this type that it owes an answer to. */
void activity_answer(struct activity *a, const char *request_type, struct activity_now now);

/* One iopub message: its type, the parent's ("" without a parent) and, of a
 * status, its execution_state ("" of the others). */
void activity_message(struct activity *a, const char *type, const char *parent_type,
                      const char *execution_state, struct activity_now now);

const char *activity_name(enum activity_state s);

#endif
