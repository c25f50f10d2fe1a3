/* peer - who is at the other end of a connection, as text for logs. */
#ifndef HC_PEER_H
#define HC_PEER_H

#include <stddef.h>

/* "192.0.2.1:4711", "[2001:db8::1]:4711", "unix", or "" when the socket does not tell.
 * Returns out. */
const char *peer_text(int fd, char *out, size_t n);

#endif
