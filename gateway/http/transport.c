/* transport - see transport.h: recv(2) and sendmsg(2), with or without tls.h between. */
#include "transport.h"

#include <errno.h>
#include <sys/socket.h>

#include "err.h"
#include "tls.h"

enum {
    /* Ciphertext made at a time: more only once the socket has taken this. What lies in
     * the connection's queue stays countable there. */
    WIRE_AHEAD = 64 * 1024,
};

int transport_init(struct transport *t, int fd, const struct tlscontext *context)
{
    *t = (struct transport){ .fd = fd };
    if (context == NULL)
        return 0;
    t->tls = tls_new(context);
    return t->tls != NULL ? 0 : -ENOMEM;
}

void transport_free(struct transport *t)
{
    t->tls = tls_free(t->tls);
}

static int would_block(int code)
{
    return code == EAGAIN || code == EWOULDBLOCK;
}

/* ---- in ------------------------------------------------------------------- */

static ssize_t receive(int fd, uint8_t *out, size_t max)
{
    ssize_t n = recv(fd, out, max, MSG_DONTWAIT);

    if (n >= 0)
        return n;
    return would_block(errno) || errno == EINTR ? -EAGAIN : -errno;
}

ssize_t transport_read(struct transport *t, uint8_t *scratch, uint8_t *cipher, size_t max,
                       struct err *e)
{
    size_t plain = 0;
    ssize_t n = receive(t->fd, t->tls != NULL ? cipher : scratch, max);

    if (t->tls == NULL || n <= 0)
        return n;
    int rc = tls_feed(t->tls, (struct view){ cipher, (size_t)n }, scratch, &plain, e);
    if (rc < 0) {
        t->broken = 1;
        return rc;
    }
    return plain > 0 ? (ssize_t)plain : tls_ended(t->tls) ? 0 : -EAGAIN;
}

/* ---- out ------------------------------------------------------------------ */

/* Returns the bytes that the socket took, 0 when it is full, negative when broken. */
static ssize_t send_iov(struct transport *t, const struct iovec *iov, size_t count)
{
    struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = count };
    ssize_t n;

    do {
        n = sendmsg(t->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return would_block(errno) || errno == ENOBUFS ? 0 : -errno;
    t->sent += (size_t)n;
    return n;
}

/* Returns 1 when nothing waits any more, 0 when the socket is full. */
static int send_wire(struct transport *t)
{
    struct buf *wire = tls_wire(t->tls);

    while (buf_len(wire) > 0) {
        struct view v = buf_view(wire);
        struct iovec iov = { (void *)(uintptr_t)v.p, v.n };
        ssize_t n = send_iov(t, &iov, 1);

        if (n <= 0)
            return (int)n;
        buf_consume(wire, (size_t)n);
    }
    buf_release(wire);
    return 1;
}

/* Takes what makes WIRE_AHEAD bytes, from *skip bytes into the vector. */
static ssize_t encrypt(struct transport *t, const struct iovec *iov, size_t count, size_t skip)
{
    size_t taken = 0;

    for (size_t i = 0; i < count && buf_len(tls_wire(t->tls)) < WIRE_AHEAD; i++) {
        size_t off = skip < iov[i].iov_len ? skip : iov[i].iov_len;
        size_t n = iov[i].iov_len - off, room = WIRE_AHEAD - buf_len(tls_wire(t->tls));

        skip -= off;
        n = n < room ? n : room;
        if (n == 0)
            continue;
        if (tls_write(t->tls, (struct view){ (uint8_t *)iov[i].iov_base + off, n }) < 0)
            return -EIO;
        taken += n;
    }
    return (ssize_t)taken;
}

static ssize_t write_tls(struct transport *t, const struct iovec *iov, size_t count)
{
    size_t taken = 0;

    for (;;) {
        int empty = send_wire(t);
        ssize_t n;

        if (empty < 0)
            return empty;
        if (!empty || t->broken || !tls_ready(t->tls))
            return (ssize_t)taken;
        n = encrypt(t, iov, count, taken);
        if (n <= 0)
            return n < 0 ? n : (ssize_t)taken;
        taken += (size_t)n;
    }
}

ssize_t transport_write(struct transport *t, const struct iovec *iov, size_t count)
{
    return t->tls != NULL ? write_tls(t, iov, count) : send_iov(t, iov, count);
}

size_t transport_pending(const struct transport *t)
{
    return t->tls != NULL ? buf_len(tls_wire(t->tls)) : 0;
}

int transport_ready(const struct transport *t)
{
    return t->tls == NULL || tls_ready(t->tls);
}

int transport_ended(const struct transport *t)
{
    return t->tls != NULL && tls_ended(t->tls);
}

void transport_bye(struct transport *t)
{
    if (t->tls != NULL && !t->broken)
        tls_bye(t->tls);
}
