#include "rights.h"

#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16; the C library may be older */
#endif

static atomic_int forbidden;

/*
 * In the place of the C library's, for libzmq: it has no hook between making a socket and
 * connecting it, and what its monitor tells of a connection comes when the peer may have sent
 * already. That a kernel does not know the option is no error of who makes a socket.
 */
__attribute__((visibility("default"))) int socket(int domain, int type, int protocol)
{
    int fd = (int)syscall(SYS_socket, domain, type, protocol);

    if (fd >= 0 && domain == AF_UNIX && atomic_load(&forbidden))
        (void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){ 0 }, sizeof(int));
    return fd;
}

void rights_forbid(void)
{
    atomic_store(&forbidden, 1);
}
