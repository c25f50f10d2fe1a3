/*
 * tls - see tls.h. OpenSSL reads and writes through a BIO of our own: reading takes from
 * what the caller handed over, writing appends to the buffer. A pair of BIOs with their
 * fixed buffers would cost 34 kB for each idle connection.
 */
#include "tls.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "tlscontext.h"

enum { TLS_HANDSHAKE_RECORD = 0x16 };

struct tls {
    SSL *ssl;
    struct view in;  /* during tls_feed() */
    struct buf wire; /* owned */
    unsigned heard : 1, failed : 1, ended : 1, bye : 1;
};

/* What who speaks plain HTTP here gets to read. */
static const char plain_answer[] =
    "HTTP/1.1 400 Bad Request\r\nContent-Length: 78\r\nContent-Type: application/json\r\n"
    "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    "{\"reason\":\"Bad Request\",\"message\":\"this port speaks TLS: use an https:// URL\"}";

/* ---- the BIO -------------------------------------------------------------- */

static int bio_read(BIO *bio, char *out, int size)
{
    struct tls *t = BIO_get_data(bio);
    size_t n = t->in.n < (size_t)size ? t->in.n : (size_t)size;

    BIO_clear_retry_flags(bio);
    if (n == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(out, t->in.p, n);
    t->in = (struct view){ t->in.p + n, t->in.n - n };
    return (int)n;
}

static int bio_write(BIO *bio, const char *in, int n)
{
    struct tls *t = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    return buf_add(&t->wire, in, (size_t)n) == 0 ? n : -1;
}

static long bio_ctrl(BIO *bio, int what, long n, void *p)
{
    (void)bio;
    (void)n;
    (void)p;
    return what == BIO_CTRL_FLUSH; /* always done; nothing else is supported */
}

static BIO_METHOD *method;

static void make_method(void)
{
    BIO_METHOD *made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "holdcell");

    if (made != NULL && BIO_meth_set_read(made, bio_read) && BIO_meth_set_write(made, bio_write) &&
        BIO_meth_set_ctrl(made, bio_ctrl))
        method = made; /* for the life of the process */
    else
        BIO_meth_free(made);
}

/* ---- life ----------------------------------------------------------------- */

struct tls *tls_new(const struct tlscontext *context)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct tls *t = xcalloc(1, sizeof *t);
    BIO *bio = NULL;

    pthread_once(&once, make_method);
    buf_init(&t->wire, TLS_WIRE_MAX);
    t->ssl = SSL_new(tlscontext_ssl(context));
    if (t->ssl != NULL && method != NULL)
        bio = BIO_new(method);
    if (bio == NULL) {
        ERR_clear_error();
        return tls_free(t);
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    SSL_set_accept_state(t->ssl);
    return t;
}

struct tls *tls_free(struct tls *t)
{
    if (t == NULL)
        return NULL;
    SSL_free(t->ssl);
    buf_free(&t->wire);
    free(t);
    return NULL;
}

/* ---- in ------------------------------------------------------------------- */

static int failed(struct tls *t, const char *what, struct err *e)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);
    long verified = SSL_get_verify_result(t->ssl);

    t->failed = 1;
    if (verified != X509_V_OK && SSL_get_verify_mode(t->ssl) != SSL_VERIFY_NONE)
        err_set(e, HC_EPARSE, "%s: client certificate: %s", what,
                X509_verify_cert_error_string(verified));
    else
        err_set(e, HC_EPARSE, "%s: %s", what, reason != NULL ? reason : "the connection broke");
    ERR_clear_error();
    return -HC_EPARSE;
}

/* The first byte tells who has taken the wrong scheme: methods are upper-case letters.
 * Everything else that is no handshake gets OpenSSL's alert. */
static int refuse_plain_http(struct tls *t, struct err *e)
{
    t->failed = 1;
    if (buf_add_str(&t->wire, plain_answer) != 0)
        return err_set(e, ENOMEM, "no memory");
    return err_set(e, HC_EPARSE, "plain HTTP on a port that speaks TLS");
}

int tls_feed(struct tls *t, struct view in, uint8_t *out, size_t *ret_n, struct err *e)
{
    size_t room = in.n + TLS_RECORD_MAX, at = 0;
    int n = 0, was_ready = tls_ready(t);

    if (t->failed)
        return err_set(e, HC_EPARSE, "the TLS connection has failed");
    if (in.n == 0 || t->ended) {
        *ret_n = 0;
        return 0;
    }
    if (!t->heard && in.p[0] >= 'A' && in.p[0] <= 'Z')
        return refuse_plain_http(t, e);
    t->heard = 1;
    t->in = in;
    ERR_clear_error();
    /* To the last record: what is left inside would wake nobody. */
    while (at < room && (n = SSL_read(t->ssl, out + at, (int)(room - at))) > 0)
        at += (size_t)n;
    t->in = (struct view){ 0 };
    check(at < room); /* decrypted bytes are fewer than encrypted ones */
    switch (SSL_get_error(t->ssl, n)) {
    case SSL_ERROR_ZERO_RETURN:
        t->ended = 1;
        break;
    case SSL_ERROR_WANT_READ:
        break;
    default:
        return failed(t, was_ready ? "TLS" : "TLS handshake", e);
    }
    /* Nothing can be written until the rest comes, and it may never come. No client sends its
     * five bytes of a KeyUpdate in two records. */
    if (was_ready && !tls_ready(t))
        return failed(t, "TLS: a handshake message in parts", e);
    *ret_n = at;
    return 0;
}

/* ---- out ------------------------------------------------------------------ */

int tls_write(struct tls *t, struct view plain)
{
    check(!t->failed && tls_ready(t));
    while (plain.n > 0) {
        int part = plain.n < TLS_RECORD_MAX ? (int)plain.n : TLS_RECORD_MAX;

        ERR_clear_error();
        if (SSL_write(t->ssl, plain.p, part) != part) {
            t->failed = 1;
            ERR_clear_error();
            return -EIO; /* no memory, or the buffer is full beyond its maximum */
        }
        plain = (struct view){ plain.p + part, plain.n - (size_t)part };
    }
    return 0;
}

void tls_bye(struct tls *t)
{
    if (t->failed || t->bye || !tls_ready(t))
        return;
    t->bye = 1;
    ERR_clear_error();
    (void)SSL_shutdown(t->ssl); /* 0: the peer's has not come, and is not waited for */
    ERR_clear_error();
}

int tls_ready(const struct tls *t)
{
    return SSL_is_init_finished(t->ssl);
}

int tls_ended(const struct tls *t)
{
    return t->ended;
}

struct buf *tls_wire(struct tls *t)
{
    return &t->wire;
}
