/*
 * In the place of the C library's, for libzmq: it has no hook between a connection and what it
 * keeps of it. Descriptors that are no connection to a kernel go straight on to the system.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "zguard_own.h"

const int zguard_calls_here = 1;

#define OURS __attribute__((visibility("default")))

/* Of an endpoint of zguard_open() it is the guard's path that is connected to. */
OURS int connect(int fd, const struct sockaddr *a, socklen_t n)
{
    struct sockaddr_un sun = { .sun_family = AF_UNIX };

    if (a == NULL || n <= offsetof(struct sockaddr_un, sun_path) || n > sizeof sun ||
        a->sa_family != AF_UNIX)
        return (int)syscall(SYS_connect, fd, a, n);
    memcpy(sun.sun_path, ((const struct sockaddr_un *)a)->sun_path,
           n - offsetof(struct sockaddr_un, sun_path));
    sun.sun_path[sizeof sun.sun_path - 1] = '\0';
    struct zguard *g = zguard_connecting(sun.sun_path);
    if (g == NULL)
        return (int)syscall(SYS_connect, fd, a, n);
    memcpy(sun.sun_path, g->path, sizeof sun.sun_path);
    int rc = (int)syscall(SYS_connect, fd, &sun,
                          offsetof(struct sockaddr_un, sun_path) + strlen(sun.sun_path) + 1);
    int code = errno;
    if (rc == 0)
        zguard_connected(g, fd);
    zguard_drop(g);
    errno = code;
    return rc;
}

OURS ssize_t recv(int fd, void *p, size_t n, int flags)
{
    struct zguard *g = zguard_find(fd);

    if (g != NULL)
        return zguard_receive(g, fd, p, n, flags);
    return syscall(SYS_recvfrom, fd, p, n, flags, NULL, NULL);
}

OURS int epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *e)
{
    struct zguard *g = zguard_find(fd);

    if (g != NULL)
        return zguard_polled(g, epoll_fd, op, e);
    return (int)syscall(SYS_epoll_ctl, epoll_fd, op, fd, e);
}

OURS int close(int fd)
{
    struct zguard *g = zguard_find(fd);

    if (g != NULL)
        zguard_disconnected(g, fd);
    return (int)syscall(SYS_close, fd);
}
