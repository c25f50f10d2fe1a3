/* spawn - starts one of our own programs with an exact set of descriptors. */
#ifndef HC_SPAWN_H
#define HC_SPAWN_H

#include "cleanup.h"

struct err;

/* Forks and execs argv[0]: leader of a new session, killed when this process
 * dies, fds[i] as descriptor 3 + i and nothing else above 2, standard input at
 * end of file, standard output on standard error, a short environment of its
 * own. Returns the pid once exec succeeded. */
int spawn_program(char *const *argv, const int *fds, unsigned count, struct err *e) MUST_CHECK;

/* Waits for the child, kills it after timeout_ms; returns its exit status, or -1
 * when a signal ended it. */
int spawn_wait(int pid, int timeout_ms);

#endif
