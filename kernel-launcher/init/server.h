/*
 * server - what holdcell-init does all its life: reaps, takes requests, starts a
 * worker for each, hands its answer on, and tells the end of what was spawned.
 * One loop over poll(2); never blocks on its controller nor on anything of the
 * session, and touches no file.
 */
#ifndef HC_SERVER_H
#define HC_SERVER_H

#include "init_start.h"

struct err;

/* request_fd: SOCK_SEQPACKET, owned from here on. Returns 0 when the other side
 * is closed, which ends the sandbox; else a negative errno. A controller that
 * sends nonsense is cut off, and the loop goes on reaping. */
int server_run(int request_fd, const struct init_start *limits, struct err *e) MUST_CHECK;

#endif
