/*
 * The server's side of TLS on whatever comes: no crash, no leak, no plaintext before a
 * handshake, and an end that stays one. The first byte says in which pieces it comes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "certs.h"
#include "err.h"
#include "tls.h"
#include "tlscontext.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tlscontext *make_context(void)
{
    struct tlscontext *context = NULL;
    struct cert ca = { 0 }, server = { 0 };

    cert_make(&ca, "authority", NULL, -86400, 86400);
    cert_make(&server, "server", &ca, -86400, 86400);
    const struct tlscontext_config config = { server.pem, server.key_pem, ca.pem };
    check(tlscontext_new(&config, &context, NULL) == 0);
    cert_free(&server);
    cert_free(&ca);
    return context;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tlscontext *context;
    static uint8_t out[65536 + TLS_RECORD_MAX];
    struct tls *t;
    size_t piece, n;
    int rc = 0;

    if (size < 1 || size > 65536)
        return 0;
    if (context == NULL)
        context = make_context();
    piece = data[0] == 0 ? size : data[0];
    t = tls_new(context);
    check(t != NULL);
    for (size_t at = 1; at < size; at += piece) {
        size_t part = size - at < piece ? size - at : piece;
        int now = tls_feed(t, (struct view){ data + at, part }, out, &n, NULL);

        check(now <= 0 && (rc == 0 || now < 0));
        check(now < 0 || n == 0 || tls_ready(t));
        rc = now;
    }
    tls_bye(t);
    tls_free(t);
    return 0;
}
