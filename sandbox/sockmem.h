/*
 * sockmem - what one TCP connection of a session may keep in its buffers: settings of the session's own
 * network namespace, below those of the host, whose memory for TCP (net.ipv4.tcp_mem) all sessions share.
 */
#ifndef HC_SOCKMEM_H
#define HC_SOCKMEM_H

#include <stddef.h>

#include "cleanup.h"

struct err;

/* Of each direction; loopback is as fast as with the 4 to 6 MB of the kernel, and slower with half of it. */
enum { SOCKMEM_BUFFER = 512 * 1024 };

/* Init's birth, as root of the new user and network namespace, cwd the new root with its proc, whose settings
 * are still writable. A setting that the host has lower stays. */
int sockmem_bound(struct err *e) MUST_CHECK;

/* "least start most" of tcp_rmem and tcp_wmem with no number above `most`. Returns 1 and the new text, 0 when
 * nothing is above, -EINVAL for what is no such text. */
int sockmem_lower(const char *text, unsigned long most, char *ret, size_t size) MUST_CHECK;

#endif
