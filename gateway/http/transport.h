/*
 * transport - how the bytes of a connection travel over its socket: as they are, or in
 * TLS. Non-blocking; never waits, never closes the socket.
 */
#ifndef HC_TRANSPORT_H
#define HC_TRANSPORT_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "buf.h"

struct err;
struct tls;
struct tlscontext;

enum {
    TRANSPORT_READ_MAX = 64 * 1024, /* taken from the socket at a time */
    TRANSPORT_SLACK = 16 * 1024,    /* that more may come out of it: a record in parts */
};

/* Lies in its owner. */
struct transport {
    int fd;          /* borrowed */
    struct tls *tls; /* owned; NULL: plain */
    int broken;      /* TLS failed: what wire holds is all that may still be sent */
    uint64_t sent;   /* bytes that the socket took */
};

/* context NULL: plain. -ENOMEM. */
int transport_init(struct transport *t, int fd, const struct tlscontext *context) MUST_CHECK;
void transport_free(struct transport *t);

/*
 * Takes at most max bytes from the socket. scratch has room for max + TRANSPORT_SLACK, and
 * so has cipher (used by TLS alone). Returns the bytes for the protocol, which lie in scratch; 0 when
 * the peer sends no more; -EAGAIN when none came (yet), and other negative codes when
 * the connection is broken: -HC_EPARSE by a peer that speaks no right TLS, and then what
 * transport_pending() counts is still to be sent.
 */
ssize_t transport_read(struct transport *t, uint8_t *scratch, uint8_t *cipher, size_t max,
                       struct err *e) MUST_CHECK;

/* Sends; returns how many bytes it took, 0 when the socket is full, negative when the
 * connection is broken. Taken bytes may wait inside: transport_pending(). */
ssize_t transport_write(struct transport *t, const struct iovec *iov, size_t count) MUST_CHECK;
size_t transport_pending(const struct transport *t);

/* 0 until the handshake is done: nothing can be written before. */
int transport_ready(const struct transport *t);
/* 1 when the peer has said that it sends no more, though its socket is open. */
int transport_ended(const struct transport *t);
/* Nothing more will be written: queues what TLS has to say at the end. */
void transport_bye(struct transport *t);

#endif
