/* tlscontext - see tlscontext.h. OpenSSL 3.0. */
#include "tlscontext.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <string.h>

#include "err.h"

struct tlscontext {
    SSL_CTX *ssl; /* shared: connections hold references of their own */
};

/* Forward secrecy and authenticated encryption only; TLS 1.3 has nothing else. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

static const unsigned char session_scope[] = "holdcell";

/* OpenSSL's own words for what went wrong last; its queue is empty afterwards. */
static const char *ssl_reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = ERR_reason_error_string(code);

    ERR_clear_error();
    return text != NULL ? text : "unknown error";
}

/* The end of a PEM file is an error to its reader. */
static int at_end_of_pem(void)
{
    unsigned long code = ERR_peek_last_error();

    return ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
}

/* RFC 7301 section 3.2: who offers protocols, and not ours, is told so. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_n,
                           const unsigned char *in, unsigned in_n, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen = NULL;

    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&chosen, out_n, ours, sizeof ours - 1, in, in_n) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* A server has nobody to ask: the passphrase of an encrypted key is refused. */
static int no_passphrase(char *out, int size, int writing, void *asked)
{
    (void)out;
    (void)size;
    (void)writing;
    *(int *)asked = 1;
    return -1;
}

static int use_rules(SSL_CTX *ssl, struct err *e)
{
    if (SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(ssl, CIPHERS) != 1 ||
        SSL_CTX_set_session_id_context(ssl, session_scope, sizeof session_scope - 1) != 1)
        return err_set(e, EIO, "TLS cannot be set up: %s", ssl_reason());
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    /* An idle connection holds no record buffers; the queue that is written from may move. */
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* Sessions are resumed by tickets, which cost us no memory. */
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
    return 0;
}

/* Reads the next certificate; NULL at the end (*bad 0) and where the text is none (*bad 1). */
static X509 *next_cert(BIO *from, int *bad)
{
    X509 *cert = PEM_read_bio_X509(from, NULL, NULL, NULL);

    *bad = cert == NULL && !at_end_of_pem();
    return cert;
}

static int use_cert(SSL_CTX *ssl, BIO *from, struct err *e)
{
    int bad;
    X509 *cert = next_cert(from, &bad);

    if (cert == NULL)
        return err_set(e, EINVAL, "option --tls-cert: the file has no certificate in PEM form: %s",
                       ssl_reason());
    int used = SSL_CTX_use_certificate(ssl, cert);
    X509_free(cert);
    if (used != 1)
        return err_set(e, EINVAL, "option --tls-cert: the certificate cannot be used: %s",
                       ssl_reason());
    while ((cert = next_cert(from, &bad)) != NULL) {
        if (SSL_CTX_add0_chain_cert(ssl, cert) != 1) {
            X509_free(cert);
            return err_set(e, EINVAL, "option --tls-cert: a certificate of the chain: %s",
                           ssl_reason());
        }
    }
    if (bad)
        return err_set(e, EINVAL, "option --tls-cert: a certificate of the chain is damaged: %s",
                       ssl_reason());
    ERR_clear_error();
    return 0;
}

static int use_key(SSL_CTX *ssl, BIO *from, struct err *e)
{
    int asked = 0;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(from, NULL, no_passphrase, &asked);

    if (asked) {
        EVP_PKEY_free(key);
        ERR_clear_error();
        return err_set(e, EINVAL,
                       "option --tls-key: the key is encrypted; nobody is there to give the "
                       "passphrase: store it unencrypted, readable by root only");
    }
    if (key == NULL)
        return err_set(e, EINVAL, "option --tls-key: the file has no private key in PEM form: %s",
                       ssl_reason());
    int fits = X509_check_private_key(SSL_CTX_get0_certificate(ssl), key) == 1;
    int used = fits && SSL_CTX_use_PrivateKey(ssl, key) == 1;
    EVP_PKEY_free(key);
    if (!fits) {
        ERR_clear_error();
        return err_set(
            e, EINVAL,
            "option --tls-key: the key does not belong to the certificate of --tls-cert");
    }
    if (!used)
        return err_set(e, EINVAL, "option --tls-key: the key cannot be used: %s", ssl_reason());
    return 0;
}

/* Only these authorities count, never those of the host. */
static int use_client_ca(SSL_CTX *ssl, BIO *from, struct err *e)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ssl);
    unsigned count = 0;
    X509 *ca;
    int bad;

    while ((ca = next_cert(from, &bad)) != NULL) {
        int added = X509_STORE_add_cert(store, ca) == 1 && SSL_CTX_add_client_CA(ssl, ca) == 1;

        X509_free(ca);
        if (!added)
            return err_set(e, EINVAL, "option --tls-client-ca: a certificate cannot be used: %s",
                           ssl_reason());
        count++;
    }
    if (bad)
        return err_set(e, EINVAL, "option --tls-client-ca: a certificate is damaged: %s",
                       ssl_reason());
    ERR_clear_error();
    if (count == 0)
        return err_set(e, EINVAL,
                       "option --tls-client-ca: the file has no certificate in PEM form");
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return 0;
}

/* Runs `use` on the text. */
static int with_text(SSL_CTX *ssl, const char *text, int (*use)(SSL_CTX *, BIO *, struct err *),
                     struct err *e)
{
    BIO *from = BIO_new_mem_buf(text, -1);

    if (from == NULL)
        return err_set(e, ENOMEM, "no memory");
    int rc = use(ssl, from, e);
    BIO_free(from);
    return rc;
}

int tlscontext_new(const struct tlscontext_config *config, struct tlscontext **ret, struct err *e)
{
    SSL_CTX *ssl;
    int rc;

    ERR_clear_error();
    ssl = SSL_CTX_new(TLS_server_method());
    if (ssl == NULL)
        return err_set(e, EIO, "TLS cannot be set up: %s", ssl_reason());
    rc = use_rules(ssl, e);
    if (rc == 0)
        rc = with_text(ssl, config->cert, use_cert, e);
    if (rc == 0)
        rc = with_text(ssl, config->key != NULL ? config->key : config->cert, use_key, e);
    if (rc == 0 && config->client_ca != NULL)
        rc = with_text(ssl, config->client_ca, use_client_ca, e);
    if (rc < 0) {
        SSL_CTX_free(ssl);
        return rc;
    }
    struct tlscontext *t = xcalloc(1, sizeof *t);
    t->ssl = ssl;
    *ret = t;
    return 0;
}

struct tlscontext *tlscontext_free(struct tlscontext *t)
{
    if (t == NULL)
        return NULL;
    SSL_CTX_free(t->ssl);
    free(t);
    return NULL;
}

int tlscontext_check_dates(const struct tlscontext *t, struct err *e)
{
    X509 *cert = SSL_CTX_get0_certificate(t->ssl);

    if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0)
        return err_set(e, EINVAL, "option --tls-cert: the certificate has expired");
    if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0)
        return err_set(e, EINVAL, "option --tls-cert: the certificate is not valid yet");
    return 0;
}

void *tlscontext_ssl(const struct tlscontext *t)
{
    return t->ssl;
}
