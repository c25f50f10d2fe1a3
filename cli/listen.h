/* listen - the TCP socket that clients reach. Bound by the supervisor, so that
 * the port stays and connections wait in the backlog while a gateway is replaced. */
#ifndef HC_LISTEN_H
#define HC_LISTEN_H

#include "cleanup.h"

struct err;

enum { LISTEN_TEXT = 64 };

struct listen_socket {
    int fd;                    /* owned by the caller; close-on-exec, non-blocking */
    unsigned port;             /* as bound, never 0 */
    int loopback;              /* 1: 127.0.0.0/8 or ::1 */
    char address[LISTEN_TEXT]; /* "127.0.0.1:8888", "[::1]:8888" */
};

/* text: ADDRESS:PORT with a numeric address (IPv6 in brackets) or `localhost`;
 * port 0 lets the kernel choose. Errors name --listen. */
int listen_open(const char *text, struct listen_socket *ret, struct err *e) MUST_CHECK;

/* 1 when the text names a loopback address; -EINVAL when it is no address. */
int listen_is_loopback(const char *text, struct err *e) MUST_CHECK;

#endif
