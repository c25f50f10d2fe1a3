/* certs - certificates made on the spot, as PEM texts, and clients of TLS in memory. */
#ifndef HC_TEST_CERTS_H
#define HC_TEST_CERTS_H

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>

struct cert {
    X509 *x509;
    EVP_PKEY *key;
    char *pem, *key_pem; /* owned */
};

/* P-256. issuer NULL: an authority, signed by itself; else signed by it. Valid from now +
 * from_s to now + to_s. */
void cert_make(struct cert *c, const char *name, const struct cert *issuer, long from_s, long to_s);
void cert_free(struct cert *c);
/* The key under a passphrase; owned by the caller. */
char *cert_encrypted_key(const struct cert *c);
char *joined(const char *a, const char *b); /* owned by the caller */

/* A client's context that trusts ca and may show a certificate (NULL: none). */
SSL_CTX *client_context(const struct cert *ca, const struct cert *own);

/* The same for TLS 1.3 alone, whose last client's secret is remembered for odd_record(). */
SSL_CTX *odd_client_context(const struct cert *ca);
enum { ODD_RECORD_MAX = 64 }; /* of the content, and what is around it */
/* The record of that client with this number (its data records count from 0) that holds `content`
 * as a part of handshake messages: what no client of OpenSSL can be made to send. Returns its size. */
size_t odd_record(uint64_t number, const void *content, size_t n, uint8_t out[2 * ODD_RECORD_MAX]);

#endif
