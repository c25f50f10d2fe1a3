/*
 * cull - when a kernel that nobody uses is ended (jupyter-wire.md 1.9). Pure:
 * culling.h walks over the kernels.
 */
#ifndef HC_CULL_H
#define HC_CULL_H

#include <stdint.h>

/* Of a kernelspec: metadata.cull_idle_timeout is not given. */
#define CULL_UNSET UINT64_MAX

enum {
    CULL_INTERVAL_MS = 300000, /* without --cull-interval */
};

struct cull_policy {
    uint64_t idle_ms;     /* 0: only kernels whose kernelspec says so */
    uint64_t interval_ms; /* 0: CULL_INTERVAL_MS */
    int connected, busy;  /* cull those too */
};

struct cull_case {
    uint64_t idle_ms; /* since its last activity */
    uint64_t spec_ms; /* the kernelspec's own time; 0: never; CULL_UNSET: the policy's */
    int busy;
    unsigned connections;
};

/* 1: its time is over; *ret_limit_ms is the time that was in force. */
int cull_is_due(const struct cull_policy *p, const struct cull_case *c, uint64_t *ret_limit_ms);

#endif
