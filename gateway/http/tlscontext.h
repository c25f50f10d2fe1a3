/*
 * tlscontext - what all TLS connections of one moment share: certificate, private
 * key, the authorities of client certificates, the rules. Connections keep what
 * they began with, so a new context takes the place of the old one at any time.
 */
#ifndef HC_TLSCONTEXT_H
#define HC_TLSCONTEXT_H

#include "cleanup.h"

struct err;
struct tlscontext;

/* PEM texts, borrowed for the call. */
struct tlscontext_config {
    const char *cert;      /* the server's certificate, then the chain above it */
    const char *key;       /* NULL: the key stands beside the certificate */
    const char *client_ca; /* NULL: no certificate is asked of clients */
};

/* Caller owns *ret. -EINVAL names the option (--tls-cert, --tls-key, --tls-client-ca) whose
 * text is no PEM, does not fit, or is encrypted. */
int tlscontext_new(const struct tlscontext_config *config, struct tlscontext **ret,
                   struct err *e) MUST_CHECK;
struct tlscontext *tlscontext_free(struct tlscontext *t); /* accepts NULL, returns NULL */

/* -EINVAL when the server's certificate is not valid at this moment. Apart from the above,
 * since a server that runs must come up again although its certificate has expired. */
int tlscontext_check_dates(const struct tlscontext *t, struct err *e) MUST_CHECK;

void *tlscontext_ssl(const struct tlscontext *t); /* the SSL_CTX, for tls.c */

#endif
