/*
 * joining - the child side of START_KERNEL: from its clone into the session's pid
 * namespace and cgroup to the exec of the kernel.
 */
#ifndef HC_JOINING_H
#define HC_JOINING_H

#include "sandbox_internal.h"

/* All borrowed from the launcher, whose memory the child still has. */
struct joining {
    const struct sandbox *sandbox;
    const struct sandbox_start *start;
    char *const *argv; /* filled in */
    int spec_fd;       /* a detached mount for /kernelspecs/<spec_index>, or -1: mounted already */
    unsigned spec_index;
    int connection_fd;  /* with LAUNCH_SOCKETS_FD */
    int status_fd;      /* write end: a report when something fails; the exec closes it */
    int status_read_fd; /* closed here */
    int go_fd, go_write_fd;
};

_Noreturn void joining_run(const struct joining *j);

#endif
