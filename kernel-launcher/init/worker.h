/*
 * worker - the short-lived child of init that carries out one request: it passes
 * the drop to the session's user, acts, and answers over a socketpair to init.
 */
#ifndef HC_WORKER_H
#define HC_WORKER_H

#include <sys/types.h>

#include "init_start.h"
#include "packet.h"
#include "request.h"

/* Forks, into the cgroup leaf_fd when that is not -1. The parent gets the child's pid and its end of the channel (owned):
 * one packet, the answer; end of file without a packet means that the child died,
 * or, for INIT_SPAWN, that the program was exec'ed. -errno when there is no child. */
int worker_start(const struct request *request, const struct packet *packet,
                 const struct init_start *limits, int leaf_fd, pid_t *ret_pid, int *ret_channel_fd,
                 struct err *e) MUST_CHECK;

#endif
