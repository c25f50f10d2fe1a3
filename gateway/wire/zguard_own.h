/* zguard_own - what the files of zguard share; nobody else includes it. */
#ifndef HC_ZGUARD_OWN_H
#define HC_ZGUARD_OWN_H

#include <sys/epoll.h>

#include "zguard.h"
#include "zmtpcount.h"
#include "zroom.h"

struct zguard_kernel {
    unsigned refs;
    struct zroom pool;
};

struct zguard {
    struct zguard *prev, *next; /* all */
    struct zguard_kernel *kernel;
    unsigned refs; /* the socket, and the table while it is connected */
    unsigned long long id;
    char path[108];
    /* ---- of the I/O thread alone ---- */
    struct zmtpcount count;
    /* ---- under the lock ---- */
    int epoll_fd, fd;
    struct epoll_event event; /* what libzmq asked for */
    int waits, closed, told;
    const char *fault;
    size_t in_kernel, in_all;         /* of its pools' held: what the loop did not read yet */
    size_t partial;                   /* of the message under way, counted there */
    uint64_t partial_since_ms;        /* not while it waits */
    uint64_t numbers_in, numbers_out; /* messages that are whole, that the loop read */
};

/* ---- zguard.c; all but zguard_find() take the lock ---- */
struct zguard *zguard_connecting(const char *path); /* by the endpoint's path; with a reference */
void zguard_connected(struct zguard *g, int fd);
void zguard_drop(struct zguard *g);
struct zguard *zguard_find(int fd); /* the connection that has the descriptor, or NULL */
void zguard_disconnected(struct zguard *g, int fd);
int zguard_polled(struct zguard *g, int epoll_fd, int op, struct epoll_event *e);
/* What libzmq gets of what has arrived: as recv(2). */
long zguard_receive(struct zguard *g, int fd, void *p, size_t n, int flags);

extern const int zguard_calls_here; /* zguard_calls.c: whoever has the guard links it, too */

#endif
