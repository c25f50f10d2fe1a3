/*
 * connfd - the connection data of a kernel: read from the gateway's memfd, handed
 * on in one of our own that only the kernel's user can read.
 */
#ifndef HC_CONNFD_H
#define HC_CONNFD_H

#include <stddef.h>
#include <sys/types.h>

#include "cleanup.h"

struct err;

enum { CONNFD_MAX = 4096 };

/* From the start, whatever the offset. -EMSGSIZE above CONNFD_MAX. */
int connfd_read(int fd, char ret[CONNFD_MAX], size_t *ret_size, struct err *e) MUST_CHECK;

/* A sealed memfd, mode 0400, owner uid: opening /proc/self/fd/N again works for that user alone, and
 * no file position or lock is shared with the gateway. */
int connfd_new(const char *bytes, size_t size, uid_t uid, int *ret_fd, struct err *e) MUST_CHECK;

#endif
