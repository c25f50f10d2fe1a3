/* startfds - checks the descriptors that come with START_KERNEL: a kernel gets
 * nothing but what the protocol names. */
#ifndef HC_STARTFDS_H
#define HC_STARTFDS_H

#include <stdint.h>

#include "cleanup.h"

struct err;

enum {
    START_CONNECTION, /* sealed memfd of at most 4 KiB */
    START_LOG,        /* pipe, socket or null device, open for writing */
    START_SOCKETS,    /* first of five listening unix stream sockets */
    START_FDS = START_SOCKETS + 5,
    START_CONNECTION_MAX = 4096,
};

/* count: how many came. -HC_EPARSE says which is wrong. */
int startfds_check(const int *fds, unsigned count, uint32_t flags, struct err *e) MUST_CHECK;

#endif
