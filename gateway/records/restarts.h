/*
 * restarts - when a kernel that died is started again and when that is given up
 * (jupyter-wire.md 4.5). Pure.
 */
#ifndef HC_RESTARTS_H
#define HC_RESTARTS_H

#include <stdint.h>

struct restarts {
    unsigned deaths;     /* in a row, without a stable life between them */
    uint64_t started_ms; /* of the last start */
};

enum {
    RESTARTS_MAX = 5,
    RESTARTS_STABLE_MS = 10000, /* a kernel that lived so long begins a new row */
};

void restarts_started(struct restarts *r, uint64_t now_ms);
/* Counts a death. Returns 1 and the pause before the next start, 0: given up. */
int restarts_died(struct restarts *r, uint64_t now_ms, uint64_t *ret_delay_ms);

#endif
