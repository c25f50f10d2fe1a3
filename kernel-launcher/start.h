/* start - turns a START_KERNEL message into a start of the sandbox. */
#ifndef HC_START_H
#define HC_START_H

#include "launchmsg.h"

struct err;
struct session;

/* fds: those of the message (borrowed). On success the kernel runs and
 * *ret_run_fd is owned by the caller (-1 when there is none). -HC_EPARSE and
 * -HC_ESTATE are faults of the asker. */
int start_from_message(const char *kernel_path, struct session *s, const struct launch_start *m,
                       const int *fds, unsigned fd_count, int *ret_run_fd,
                       struct err *e) MUST_CHECK;

#endif
