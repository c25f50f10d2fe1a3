#include "settingspage.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#include "err.h"
#include "hex.h"
#include "settings.h"

enum { AT_VERSION = 8, AT_LENGTH = 16, AT_DIGEST = 24, DIGEST = 32 };

static const uint8_t magic[8] = { 'h', 'o', 'l', 'd', 's', 'e', 't', '1' };

/* Of version and length as they stand in the head, and the blob. */
static int digest(const uint8_t *head, struct view blob, uint8_t out[DIGEST], struct err *e)
{
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    int ok = c != NULL && EVP_DigestInit_ex(c, EVP_sha256(), NULL) == 1 &&
             EVP_DigestUpdate(c, head + AT_VERSION, AT_DIGEST - AT_VERSION) == 1 &&
             EVP_DigestUpdate(c, blob.p, blob.n) == 1 && EVP_DigestFinal_ex(c, out, NULL) == 1;

    EVP_MD_CTX_free(c);
    return ok ? 0 : err_set(e, EIO, "libcrypto has no SHA-256");
}

int settingspage_encode(uint64_t version, struct view blob, struct buf *out, struct err *e)
{
    uint8_t head[SETTINGSPAGE_HEAD];
    uint64_t length = blob.n;

    memcpy(head, magic, sizeof magic);
    memcpy(head + AT_VERSION, &version, sizeof version);
    memcpy(head + AT_LENGTH, &length, sizeof length);
    int rc = digest(head, blob, head + AT_DIGEST, e);
    if (rc < 0)
        return rc;
    rc = buf_reserve(out, sizeof head + blob.n);
    if (rc == 0)
        rc = buf_add(out, head, sizeof head);
    if (rc == 0)
        rc = buf_add_view(out, blob);
    return rc < 0 ? err_sys(e, -rc, "page of the settings") : 0;
}

int settingspage_decode(struct view page, uint64_t *ret_version, struct view *ret_blob,
                        struct err *e)
{
    uint8_t right[DIGEST];
    uint64_t version, length;

    if (page.n < SETTINGSPAGE_HEAD || memcmp(page.p, magic, sizeof magic) != 0)
        return err_set(e, HC_EPARSE, "this is no page of settings");
    memcpy(&version, page.p + AT_VERSION, sizeof version);
    memcpy(&length, page.p + AT_LENGTH, sizeof length);
    if (length > page.n - SETTINGSPAGE_HEAD)
        return err_set(e, EAGAIN, "the settings are being written");
    struct view blob = { page.p + SETTINGSPAGE_HEAD, (size_t)length };
    int rc = digest(page.p, blob, right, e);
    if (rc < 0)
        return rc;
    if (!equal_secret(right, page.p + AT_DIGEST, sizeof right))
        return err_set(e, EAGAIN, "the settings are being written");
    rc = settings_check(blob, e);
    if (rc < 0)
        return rc;
    *ret_version = version;
    *ret_blob = blob;
    return 0;
}
