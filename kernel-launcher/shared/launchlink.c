#include "launchlink.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "clock.h"
#include "err.h"

struct waiting {
    struct waiting *next; /* owned */
    uint8_t *bytes;       /* owned */
    size_t n;
    int fds[MSG_FDS_MAX]; /* owned */
    unsigned fd_count;
    uint64_t since_ms;
};

struct link {
    int fd;
    struct waiting *first, **end;
    size_t packets, bytes, fds;
    uint64_t unread_ms; /* since when the socket may hold unread packets; 0: it held none */
    struct buf out;     /* one packet, encoded */
    uint8_t *in;        /* one packet, received */
    struct err broken;  /* code != 0: of no use any more */
    int deaf;           /* the other end is gone; what it sent before is still read */
    int closed;
};

/* Room for the descriptors of one packet, and for more than are allowed: then the
 * kernel does not cut them off silently, and too many are seen as too many. */
union control {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof(int) * (MSG_FDS_MAX + 1))];
};

struct link *link_new(int fd)
{
    struct link *l = xcalloc(1, sizeof *l);

    l->fd = fd;
    l->end = &l->first;
    buf_init(&l->out, MSG_MAX);
    l->in = xcalloc(1, MSG_MAX);
    return l;
}

static struct waiting *waiting_free(struct waiting *w)
{
    for (unsigned i = 0; i < w->fd_count; i++)
        close(w->fds[i]);
    free(w->bytes);
    free(w);
    return NULL;
}

static void drop_waiting(struct link *l)
{
    while (l->first != NULL) {
        struct waiting *w = l->first;
        l->first = w->next;
        waiting_free(w);
    }
    l->end = &l->first;
    l->packets = l->bytes = l->fds = 0;
}

struct link *link_free(struct link *l)
{
    if (l == NULL)
        return NULL;
    drop_waiting(l);
    close(l->fd);
    buf_free(&l->out);
    free(l->in);
    free(l);
    return NULL;
}

int link_fd(const struct link *l)
{
    return l->fd;
}

short link_events(const struct link *l)
{
    return l->first != NULL ? POLLIN | POLLOUT : POLLIN;
}

const char *link_broken(const struct link *l)
{
    return l->broken.code != 0 ? l->broken.msg : NULL;
}

int link_closed(const struct link *l)
{
    return l->closed;
}

void link_break(struct link *l, const char *fmt, ...)
{
    va_list ap;

    if (l->broken.code != 0)
        return; /* the first reason is the true one */
    l->broken.code = HC_EGONE;
    va_start(ap, fmt);
    vsnprintf(l->broken.msg, sizeof l->broken.msg, fmt, ap);
    va_end(ap);
}

/* 1 when the gateway has not read all that was sent. */
static int has_unread(const struct link *l)
{
    int bytes = 0;

    return ioctl(l->fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

/* A gateway that was killed may have left requests in the socket, its last note
 * among them: they are read before the link is given up. */
static int go_deaf(struct link *l)
{
    l->deaf = 1;
    drop_waiting(l);
    return -1;
}

/* 1: sent; 0: the socket is full; negative: nothing more is sent. */
static int send_packet(struct link *l, const uint8_t *bytes, size_t n, const int *fds,
                       unsigned fd_count)
{
    union control control = { 0 };
    struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = n };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (fd_count > 0) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
    }
    for (;;) {
        if (sendmsg(l->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            return 1;
        if (errno == EINTR)
            continue;
        /* ETOOMANYREFS: too many descriptors are in flight, a matter of the reader too. */
        if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS)
            return 0;
        if (errno == EPIPE || errno == ECONNRESET)
            return go_deaf(l);
        link_break(l, "send: %s", strerror(errno));
        return -1;
    }
}

static void enqueue(struct link *l, struct view v, const int *fds, unsigned fd_count)
{
    if (l->packets + 1 > LINK_QUEUE_PACKETS || l->bytes + v.n > LINK_QUEUE_BYTES ||
        l->fds + fd_count > LINK_QUEUE_FDS) {
        link_break(l, "does not read: %zu packets wait", l->packets);
        return;
    }
    struct waiting *w = xcalloc(1, sizeof *w);
    w->bytes = xcalloc(1, v.n);
    memcpy(w->bytes, v.p, v.n);
    w->n = v.n;
    w->since_ms = clock_ms();
    for (; w->fd_count < fd_count; w->fd_count++) {
        w->fds[w->fd_count] = fcntl(fds[w->fd_count], F_DUPFD_CLOEXEC, 3);
        if (w->fds[w->fd_count] < 0) {
            link_break(l, "duplicate a descriptor: %s", strerror(errno));
            waiting_free(w);
            return;
        }
    }
    *l->end = w;
    l->end = &w->next;
    l->packets++;
    l->bytes += w->n;
    l->fds += w->fd_count;
}

void link_post(struct link *l, const struct msg_spec *spec, uint64_t request, int error,
               const void *body, const int *fds, unsigned fd_count)
{
    struct err e = { 0 };

    if (l->broken.code != 0 || l->deaf)
        return;
    buf_clear(&l->out);
    if (msg_encode(spec, request, error, body, fd_count, &l->out, &e) < 0) {
        link_break(l, "encode %s: %s", spec->name, e.msg);
        return;
    }
    struct view v = buf_view(&l->out);
    if (l->unread_ms == 0 || !has_unread(l))
        l->unread_ms = clock_ms();
    if (l->first == NULL && send_packet(l, v.p, v.n, fds, fd_count) != 0)
        return;
    enqueue(l, v, fds, fd_count);
}

void link_flush(struct link *l)
{
    while (l->first != NULL && l->broken.code == 0) {
        struct waiting *w = l->first;

        if (send_packet(l, w->bytes, w->n, w->fds, w->fd_count) <= 0)
            return;
        l->first = w->next;
        if (l->first == NULL)
            l->end = &l->first;
        l->packets--;
        l->bytes -= w->n;
        l->fds -= w->fd_count;
        waiting_free(w);
    }
}

uint64_t link_patience_ends(const struct link *l)
{
    if (l->first != NULL)
        return l->first->since_ms + LINK_PATIENCE_MS;
    return l->unread_ms != 0 ? l->unread_ms + LINK_SILENCE_MS : 0;
}

void link_give_time(struct link *l, uint64_t ms)
{
    if (l->unread_ms != 0)
        l->unread_ms += ms;
    for (struct waiting *w = l->first; w != NULL; w = w->next)
        w->since_ms += ms;
}

void link_check_patience(struct link *l, uint64_t now_ms)
{
    if (l->unread_ms != 0 && now_ms >= l->unread_ms + LINK_SILENCE_MS) {
        if (has_unread(l))
            link_break(l, "does not read: a message lies unread since %d s",
                       LINK_SILENCE_MS / 1000);
        l->unread_ms = 0;
    }
    if (l->first != NULL && now_ms >= l->first->since_ms + LINK_PATIENCE_MS)
        link_break(l, "does not read: a packet waits since %d s", LINK_PATIENCE_MS / 1000);
}

void link_packet_close(struct link_packet *p)
{
    for (unsigned i = 0; i < MSG_FDS_MAX; i++) {
        closep(&p->fds[i]);
        p->fds[i] = -1;
    }
}

/* Moves the received descriptors into p; those above the maximum are closed.
 * Returns how many came. */
static unsigned take_descriptors(struct msghdr *m, struct link_packet *p)
{
    unsigned count = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (count < MSG_FDS_MAX)
                p->fds[count] = fd;
            else
                close(fd);
            count++;
        }
    }
    return count;
}

int link_receive(struct link *l, struct link_packet *ret)
{
    union control control;
    struct iovec iov = { .iov_base = l->in, .iov_len = MSG_MAX };
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    struct link_packet p = { 0 };
    struct err e = { 0 };
    ssize_t n;

    if (l->broken.code != 0)
        return 0;
    memset(p.fds, 0xff, sizeof p.fds); /* -1 each */
    /* ECONNRESET: it died with answers unread. It is told once, before what it sent. */
    do
        n = recvmsg(l->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0) {
        if (errno != EAGAIN)
            link_break(l, "receive: %s", strerror(errno));
        return 0;
    }
    l->unread_ms = l->unread_ms != 0 ? clock_ms() : 0; /* who asks is alive */
    unsigned fd_count = take_descriptors(&m, &p);
    p.bytes = (struct view){ l->in, (size_t)n };
    if (n == 0) {
        l->closed = 1;
        link_break(l, "closed its end");
    }
    if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        link_break(l, "packet or its descriptors are too large");
    else if (msg_head_decode(p.bytes, fd_count, &p.head, &e) < 0)
        link_break(l, "%s", e.msg);
    if (l->broken.code != 0) {
        link_packet_close(&p);
        return 0;
    }
    *ret = p;
    return 1;
}
