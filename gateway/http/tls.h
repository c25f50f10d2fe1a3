/*
 * tls - the server's side of one TLS connection, without a socket: what comes in is
 * handed over, what is to go out lies in a buffer. transport.h moves the bytes.
 */
#ifndef HC_TLS_H
#define HC_TLS_H

#include "buf.h"

struct err;
struct tls;
struct tlscontext;

enum {
    TLS_RECORD_MAX = 16 * 1024, /* plaintext of one record; a part of one may wait inside */
    TLS_WIRE_MAX = 256 * 1024,  /* ciphertext that waits at most */
};

/* NULL without memory. Keeps what it needs of the context. */
struct tls *tls_new(const struct tlscontext *context);
struct tls *tls_free(struct tls *t); /* accepts NULL, returns NULL */

/*
 * Takes all of `in` and writes what it decrypts to out, which has room for in.n +
 * TLS_RECORD_MAX bytes; *ret_n says how many. Negative: this is the end, and tls_wire()
 * may hold what the peer is still to be told (an alert, or an answer in plain HTTP to a
 * request in plain HTTP). -HC_EPARSE: the peer's fault, e says which.
 */
int tls_feed(struct tls *t, struct view in, uint8_t *out, size_t *ret_n, struct err *e) MUST_CHECK;

/* Encrypts all of it, to tls_wire(). Only after tls_ready(). */
int tls_write(struct tls *t, struct view plain) MUST_CHECK;
void tls_bye(struct tls *t); /* our close_notify, once, unless the connection failed */

int tls_ready(const struct tls *t);  /* the handshake is done */
int tls_ended(const struct tls *t);  /* the peer's close_notify came: it sends no more */
struct buf *tls_wire(struct tls *t); /* ciphertext to be sent; the caller consumes it */

#endif
