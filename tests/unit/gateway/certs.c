#include "certs.h"

#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "err.h"

static char *text_of(BIO *b)
{
    char *p = NULL;
    long n = BIO_get_mem_data(b, &p);
    char *text = xcalloc(1, (size_t)n + 1);

    memcpy(text, p, (size_t)n);
    BIO_free(b);
    return text;
}

static void add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *ext;

    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    check(ext != NULL && X509_add_ext(x, ext, -1) == 1);
    X509_EXTENSION_free(ext);
}

void cert_make(struct cert *c, const char *name, const struct cert *issuer, long from_s, long to_s)
{
    static long serial = 1;
    X509 *x = X509_new();
    X509_NAME *subject = X509_get_subject_name(x);
    BIO *b;

    c->key = EVP_EC_gen("P-256");
    c->x509 = x;
    check(c->key != NULL && X509_set_version(x, 2) == 1);
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
    X509_gmtime_adj(X509_getm_notBefore(x), from_s);
    X509_gmtime_adj(X509_getm_notAfter(x), to_s);
    X509_set_pubkey(x, c->key);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(x, issuer != NULL ? X509_get_subject_name(issuer->x509) : subject);
    add_extension(x, issuer != NULL ? issuer->x509 : x, NID_basic_constraints,
                  issuer != NULL ? "CA:FALSE" : "critical,CA:TRUE");
    if (issuer != NULL)
        add_extension(x, issuer->x509, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    check(X509_sign(x, issuer != NULL ? issuer->key : c->key, EVP_sha256()) > 0);
    b = BIO_new(BIO_s_mem());
    check(PEM_write_bio_X509(b, x) == 1);
    c->pem = text_of(b);
    b = BIO_new(BIO_s_mem());
    check(PEM_write_bio_PrivateKey(b, c->key, NULL, NULL, 0, NULL, NULL) == 1);
    c->key_pem = text_of(b);
}

void cert_free(struct cert *c)
{
    X509_free(c->x509);
    EVP_PKEY_free(c->key);
    free(c->pem);
    free(c->key_pem);
    memset(c, 0, sizeof *c);
}

char *cert_encrypted_key(const struct cert *c)
{
    BIO *b = BIO_new(BIO_s_mem());

    check(PEM_write_bio_PrivateKey(b, c->key, EVP_aes_128_cbc(), NULL, 0, NULL,
                                   (void *)(uintptr_t) "secret") == 1);
    return text_of(b);
}

char *joined(const char *a, const char *b)
{
    char *text = NULL;

    check(asprintf(&text, "%s%s", a, b) >= 0);
    return text;
}

SSL_CTX *client_context(const struct cert *ca, const struct cert *own)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    check(ctx != NULL && X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca->x509) == 1);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (own != NULL)
        check(SSL_CTX_use_certificate(ctx, own->x509) == 1 &&
              SSL_CTX_use_PrivateKey(ctx, own->key) == 1);
    return ctx;
}

/* ---- records that no library sends ---------------------------------------- */

enum { SECRET = 32, GCM_KEY = 16, GCM_NONCE = 12, GCM_TAG = 16, RECORD_HEAD = 5 };

static uint8_t client_secret[SECRET];

static void keep_secret(const SSL *ssl, const char *line)
{
    const char *hex = strrchr(line, ' ');

    (void)ssl;
    if (strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) != 0)
        return;
    for (size_t i = 0; i < SECRET; i++)
        check(sscanf(hex + 1 + 2 * i, "%2hhx", &client_secret[i]) == 1);
}

SSL_CTX *odd_client_context(const struct cert *ca)
{
    SSL_CTX *ctx = client_context(ca, NULL);

    check(SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
          SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") == 1);
    SSL_CTX_set_keylog_callback(ctx, keep_secret);
    return ctx;
}

/* HKDF-Expand-Label (RFC 8446 7.1) without a context, of one block at most. */
static void expand(const char *label, uint8_t *out, size_t n)
{
    uint8_t info[64] = { 0, (uint8_t)n, (uint8_t)(6 + strlen(label)) }, block[SECRET];
    int size = snprintf((char *)info + 3, sizeof info - 3, "tls13 %s", label) + 3;

    info[size] = 0;     /* no context */
    info[size + 1] = 1; /* the first block */
    check(HMAC(EVP_sha256(), client_secret, SECRET, info, (size_t)size + 2, block, NULL) != NULL);
    memcpy(out, block, n);
}

size_t odd_record(uint64_t number, const void *content, size_t n, uint8_t out[2 * ODD_RECORD_MAX])
{
    uint8_t key[GCM_KEY], nonce[GCM_NONCE], inner[ODD_RECORD_MAX];
    size_t sealed = n + 1 + GCM_TAG;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    int got;

    check(n < sizeof inner);
    memcpy(inner, content, n);
    inner[n] = SSL3_RT_HANDSHAKE;
    expand("key", key, sizeof key);
    expand("iv", nonce, sizeof nonce);
    for (unsigned i = 0; i < 8; i++)
        nonce[GCM_NONCE - 1 - i] ^= (uint8_t)(number >> 8 * i);
    memcpy(out, (const uint8_t[]){ SSL3_RT_APPLICATION_DATA, 3, 3, 0, (uint8_t)sealed },
           RECORD_HEAD);
    check(EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), NULL, key, nonce) == 1 &&
          EVP_EncryptUpdate(c, NULL, &got, out, RECORD_HEAD) == 1 &&
          EVP_EncryptUpdate(c, out + RECORD_HEAD, &got, inner, (int)n + 1) == 1 &&
          EVP_EncryptFinal_ex(c, out + RECORD_HEAD + n + 1, &got) == 1 &&
          EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, GCM_TAG, out + RECORD_HEAD + n + 1) == 1);
    EVP_CIPHER_CTX_free(c);
    return RECORD_HEAD + sealed;
}
