#include "startfds.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "err.h"
#include "launchmsg.h"

static int check_connection(int fd, struct err *e)
{
    const int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    /* Sealed: what the launcher reads is what the kernel reads. */
    if (seals < 0 || (seals & needed) != needed || fstat(fd, &st) < 0 || st.st_size <= 0 ||
        st.st_size > START_CONNECTION_MAX)
        return err_set(e, HC_EPARSE, "the connection data is no sealed memfd of 1 to %d bytes",
                       START_CONNECTION_MAX);
    return 0;
}

static int is_stream(const struct stat *st)
{
    return S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode) ||
           (S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3)); /* the null device */
}

static int check_log(int fd, struct err *e)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);

    if (fstat(fd, &st) < 0 || !is_stream(&st) || flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return err_set(e, HC_EPARSE, "the log descriptor is no pipe or socket to write to");
    return 0;
}

static int socket_option(int fd, int option)
{
    int value = -1;
    socklen_t n = sizeof value;

    return getsockopt(fd, SOL_SOCKET, option, &value, &n) == 0 ? value : -1;
}

static int check_socket(int fd, unsigned i, struct err *e)
{
    if (socket_option(fd, SO_DOMAIN) != AF_UNIX || socket_option(fd, SO_TYPE) != SOCK_STREAM ||
        socket_option(fd, SO_ACCEPTCONN) != 1)
        return err_set(e, HC_EPARSE, "socket %u is no listening unix stream socket", i);
    return 0;
}

int startfds_check(const int *fds, unsigned count, uint32_t flags, struct err *e)
{
    unsigned wanted = flags & LAUNCH_SOCKETS_FD ? START_FDS : START_SOCKETS;

    if (count != wanted)
        return err_set(e, HC_EPARSE, "%u descriptors, not %u", count, wanted);
    int rc = check_connection(fds[START_CONNECTION], e);
    if (rc == 0)
        rc = check_log(fds[START_LOG], e);
    for (unsigned i = START_SOCKETS; i < count && rc == 0; i++)
        rc = check_socket(fds[i], i - START_SOCKETS, e);
    return rc;
}
