#include "packet.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "err.h"

/* Room for the most descriptors that a message may have. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * MSG_FDS_MAX)];
};

static void take_descriptors(struct msghdr *m, struct packet *ret)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        size_t n;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        check(ret->fd_count + n <= MSG_FDS_MAX); /* the control buffer holds no more */
        memcpy(ret->fds + ret->fd_count, CMSG_DATA(c), n * sizeof(int));
        ret->fd_count += (unsigned)n;
    }
}

/* recvmsg says 0 both at the end and for an empty packet. */
static int at_end(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLRDHUP };

    return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLRDHUP)) != 0;
}

int packet_receive(int fd, struct packet *ret, struct err *e)
{
    union control control;
    struct iovec io = { ret->bytes, sizeof ret->bytes };
    struct msghdr m = { .msg_iov = &io,
                        .msg_iovlen = 1,
                        .msg_control = control.bytes,
                        .msg_controllen = sizeof control.bytes };
    ssize_t n;

    ret->n = 0;
    ret->fd_count = 0;
    do
        n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys(e, errno, "receive");
    take_descriptors(&m, ret);
    if (n == 0 && ret->fd_count == 0 && at_end(fd))
        return 0;
    if (n == 0 || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        packet_close_fds(ret);
        return err_set(e, HC_EPARSE, n == 0 ? "empty packet" : "packet does not fit");
    }
    ret->n = (size_t)n;
    return 1;
}

void packet_close_fds(struct packet *p)
{
    for (unsigned i = 0; i < p->fd_count; i++) {
        if (p->fds[i] >= 0)
            close(p->fds[i]);
    }
    p->fd_count = 0;
}

int packet_send(int fd, struct view bytes, int passed_fd)
{
    union control control = { 0 };
    struct iovec io = { (void *)(uintptr_t)bytes.p, bytes.n };
    struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
    ssize_t n;

    if (passed_fd >= 0) {
        struct cmsghdr *c;

        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(sizeof passed_fd);
        c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof passed_fd);
        memcpy(CMSG_DATA(c), &passed_fd, sizeof passed_fd);
    }
    do
        n = sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}
