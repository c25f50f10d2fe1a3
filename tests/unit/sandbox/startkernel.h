/*
 * startkernel - both steps of a kernel's start and the wait between them, for tests
 * that have nothing else to do meanwhile.
 */
#ifndef HC_TEST_STARTKERNEL_H
#define HC_TEST_STARTKERNEL_H

#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "sandbox.h"

enum { STARTKERNEL_TIMEOUT_MS = 60000 };

static inline int startkernel(struct sandbox *s, const struct sandbox_start *start,
                              struct sandbox_kernel *ret, struct err *e)
{
    struct sandbox_kernel k;
    int r = sandbox_start_begin(s, start, &k, e);

    if (r < 0)
        return r;
    do {
        struct pollfd p = { .fd = k.status_fd >= 0 ? k.status_fd : k.pidfd, .events = POLLIN };

        if (poll(&p, 1, STARTKERNEL_TIMEOUT_MS) == 0) /* its end closes the pipe */
            (void)kill(k.pid, SIGKILL);
        r = sandbox_start_end(s, start->kernel, start->generation, &k, e);
    } while (r == -EAGAIN);
    if (r == 0)
        *ret = k;
    return r;
}

#endif
