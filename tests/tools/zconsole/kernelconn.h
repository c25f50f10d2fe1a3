/*
 * kernelconn - the five channels to one kernel through czmq: what a gateway
 * does, without a gateway. For tests and for a look at foreign kernels.
 */
#ifndef HC_KERNELCONN_H
#define HC_KERNELCONN_H

#include "cleanup.h"

struct err;
struct kernelconn;

struct kernelconn_ends { /* ZMQ endpoints, e.g. "ipc:///run/x/shell" */
    const char *shell, *control, *stdin_, *iopub;
    const char *key;
};

struct kernelconn *kernelconn_new(const struct kernelconn_ends *ends, struct err *e) MUST_CHECK;
struct kernelconn *kernelconn_free(struct kernelconn *k);

/* Asks kernel_info until the kernel answers and its iopub was heard once. */
int kernelconn_wait_ready(struct kernelconn *k, int timeout_ms, struct err *e) MUST_CHECK;

/* Runs code; prints `stdout: ...`, `result: ...`, `display: mime`, `error: name`,
 * then `reply: status`. input() is answered with answer (NULL: no stdin).
 * Returns 0 when reply and idle came, -ETIMEDOUT otherwise. */
int kernelconn_run(struct kernelconn *k, const char *code, const char *answer, int timeout_ms,
                   struct err *e) MUST_CHECK;

/* Sends an execute_request and returns at once; kernelconn_finish() waits for its end. */
int kernelconn_start(struct kernelconn *k, const char *code, struct err *e) MUST_CHECK;
int kernelconn_finish(struct kernelconn *k, const char *answer, int timeout_ms,
                      struct err *e) MUST_CHECK;

#endif
