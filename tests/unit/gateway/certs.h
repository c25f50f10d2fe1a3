/* certs - certificates made on the spot, as PEM texts, and clients of TLS in memory. */
#ifndef HC_TEST_CERTS_H
#define HC_TEST_CERTS_H

#include <openssl/ssl.h>

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

#endif
