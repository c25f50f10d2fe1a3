/* Signatures of Jupyter messages (jmsg.h): HMAC with libcrypto. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "err.h"
#include "hex.h"
#include "jmsg.h"

struct jmsg_key {
    EVP_MAC_CTX *keyed; /* owned; NULL for an empty key */
    size_t digest_size;
};

struct jmsg_key *jmsg_key_free(struct jmsg_key *k)
{
    if (k != NULL)
        EVP_MAC_CTX_free(k->keyed);
    free(k);
    return NULL;
}

static void key_freep(struct jmsg_key **k)
{
    jmsg_key_free(*k);
}

/* "hmac-sha256" -> libcrypto's name of the hash. Schemes use the names of
 * Python's hashlib, which differ for a few. */
static int hash_name(struct view scheme, char *out, size_t size, struct err *e)
{
    static const struct {
        const char *python, *libcrypto;
    } other[] = {
        { "blake2b", "BLAKE2B-512" },   { "blake2s", "BLAKE2S-256" },   { "sha3_224", "SHA3-224" },
        { "sha3_256", "SHA3-256" },     { "sha3_384", "SHA3-384" },     { "sha3_512", "SHA3-512" },
        { "sha512_224", "SHA512-224" }, { "sha512_256", "SHA512-256" },
    };
    static const char prefix[] = "hmac-";
    size_t skip = sizeof prefix - 1;

    if (scheme.n <= skip || memcmp(scheme.p, prefix, skip) != 0 || scheme.n - skip >= size)
        return err_set(e, EINVAL, "signature scheme '%.*s' is not hmac-<hash>",
                       (int)(scheme.n < 64 ? scheme.n : 64), (const char *)scheme.p);
    struct view name = { scheme.p + skip, scheme.n - skip };
    for (size_t i = 0; i < name.n; i++)
        if (!isalnum(name.p[i]) && name.p[i] != '_' && name.p[i] != '-')
            return err_set(e, EINVAL, "signature scheme contains an odd character");
    snprintf(out, size, "%.*s", (int)name.n, (const char *)name.p);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (view_equals(name, other[i].python))
            snprintf(out, size, "%s", other[i].libcrypto);
    return 0;
}

/* libcrypto takes NULL as "no key set", so an empty key never gets here. */
static int key_init(struct jmsg_key *k, char *hash, struct view key, struct err *e)
{
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, hash, 0),
        OSSL_PARAM_construct_end(),
    };
    EVP_MAC *mac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);

    if (mac == NULL)
        return err_set(e, ENOTSUP, "libcrypto offers no HMAC");
    k->keyed = EVP_MAC_CTX_new(mac);
    EVP_MAC_free(mac); /* the context holds a reference */
    if (k->keyed == NULL)
        return err_set(e, ENOMEM, "no memory for a signing key");
    if (EVP_MAC_init(k->keyed, key.p, key.n, params) != 1)
        return err_set(e, EINVAL, "libcrypto offers no HMAC with '%s'", hash);
    k->digest_size = EVP_MAC_CTX_get_mac_size(k->keyed);
    if (k->digest_size == 0 || k->digest_size > EVP_MAX_MD_SIZE)
        return err_set(e, EINVAL, "HMAC with '%s' has no usable size", hash);
    return 0;
}

int jmsg_key_new(struct view scheme, struct view key, struct jmsg_key **ret, struct err *e)
{
    __attribute__((cleanup(key_freep))) struct jmsg_key *k = xcalloc(1, sizeof *k);
    char hash[32];
    int rc = hash_name(scheme, hash, sizeof hash, e);

    if (rc < 0)
        return rc;
    if (key.n > 0) {
        rc = key_init(k, hash, key, e);
        if (rc < 0)
            return rc;
    }
    *ret = take_ptr(k);
    return 0;
}

int jmsg_sign(struct jmsg_key *k, const struct view parts[JMSG_PARTS],
              char ret_hex[JMSG_SIGNATURE_SIZE], struct err *e)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    size_t n = 0;

    _Static_assert(JMSG_SIGNATURE_SIZE > 2 * EVP_MAX_MD_SIZE, "the longest digest fits");
    ret_hex[0] = '\0';
    if (k->keyed == NULL)
        return 0;
    /* A copy, not EVP_MAC_init() with a NULL key: that is 0.3 us faster, but whether
     * it starts a used HMAC context afresh is not the same in every OpenSSL 3.0.x. */
    EVP_MAC_CTX *c = EVP_MAC_CTX_dup(k->keyed);
    int ok = c != NULL;
    for (int i = 0; ok && i < JMSG_PARTS; i++)
        ok = parts[i].n == 0 || EVP_MAC_update(c, parts[i].p, parts[i].n) == 1;
    ok = ok && EVP_MAC_final(c, digest, &n, sizeof digest) == 1;
    EVP_MAC_CTX_free(c);
    if (!ok)
        return err_set(e, ENOMEM, "libcrypto failed to sign a message");
    hex_encode(digest, n, ret_hex);
    return (int)(2 * n);
}

int jmsg_verify(struct jmsg_key *k, const struct jmsg *m, struct err *e)
{
    char hex[JMSG_SIGNATURE_SIZE];

    if (k->keyed == NULL)
        return 0;
    if (m->signature.n == 0)
        return err_set(e, HC_EAUTH, "message is not signed");
    if (m->signature.n != 2 * k->digest_size)
        return err_set(e, HC_EAUTH, "signature of %zu characters; %zu are needed", m->signature.n,
                       2 * k->digest_size);
    int n = jmsg_sign(k, m->parts, hex, e);
    if (n < 0)
        return n;
    if (!equal_secret(hex, m->signature.p, (size_t)n))
        return err_set(e, HC_EAUTH, "signature does not match");
    return 0;
}
