/*
 * pending - operations of kernels that a request waits for: one way to start them,
 * to find the request again, and to answer. The front ends after the last of them.
 */
#ifndef HC_PENDING_H
#define HC_PENDING_H

#include <stdint.h>

struct err;
struct jupyter;
struct kernel;
struct kernel_request;
struct request;

/* The outcome: k is NULL after a deletion and when e tells a failure. r is NULL when
 * the client has gone meanwhile, or nobody asked; then nothing is answered. */
typedef void pending_fn(struct jupyter *j, uint64_t token, struct request *r, struct kernel *k,
                        const struct err *e);

void pending_create(struct jupyter *j, const struct request *r, const struct kernel_request *q,
                    pending_fn *then);
void pending_restart(struct jupyter *j, struct kernel *k, uint64_t token, pending_fn *then);
void pending_ready(struct jupyter *j, struct kernel *k, uint64_t token, pending_fn *then);
/* then may be NULL. */
void pending_delete(struct jupyter *j, struct kernel *k, uint64_t token, pending_fn *then);

/* A pending_fn: 204, or the failure. */
void pending_answer_deleted(struct jupyter *j, uint64_t token, struct request *r, struct kernel *k,
                            const struct err *e);
/* Why no kernel was made, but for an unknown kernelspec (ENOENT): the kinds of
 * resources differ there. */
void pending_answer_not_made(struct request *r, const struct err *e);

#endif
