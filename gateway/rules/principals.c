#include "principals.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "hex.h"

struct entry {
    struct principal principal;
    uint64_t expires_s; /* 0: never */
};

struct hash {
    uint8_t digest[PRINCIPAL_DIGEST];
    size_t entry;
};

struct principals {
    struct entry *entries; /* owned */
    size_t count, room;
    struct hash *hashes; /* owned */
    size_t hash_count, hash_room;
    const char *own; /* borrowed: whose token is no line of the file; NULL: nobody's */
};

struct principals *principals_new(void)
{
    return xcalloc(1, sizeof(struct principals));
}

struct principals *principals_free(struct principals *t)
{
    if (t == NULL)
        return NULL;
    if (t->hashes != NULL)
        OPENSSL_cleanse(t->hashes, t->hash_room * sizeof *t->hashes);
    free(t->hashes);
    free(t->entries);
    free(t);
    return NULL;
}

/* Doubles the room of an array when it is full. What it had is moved by copying, so
 * that the old place can be wiped. */
static void *grow(void *old, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return old;
    size_t more = *room == 0 ? 8 : *room * 2;
    void *new = xcalloc(more, size);
    if (old != NULL) {
        memcpy(new, old, count * size);
        OPENSSL_cleanse(old, count * size);
        free(old);
    }
    *room = more;
    return new;
}

static const struct entry *by_name(const struct principals *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->entries[i].principal.name, name) == 0)
            return &t->entries[i];
    }
    return NULL;
}

/* Place of the hash plus one, 0 for none, in a time that does not depend on it. */
static size_t find_hash(const struct principals *t, const uint8_t digest[PRINCIPAL_DIGEST])
{
    size_t found = 0;

    for (size_t i = 0; i < t->hash_count; i++) {
        size_t same = (size_t)equal_secret(digest, t->hashes[i].digest, PRINCIPAL_DIGEST);

        found |= (0 - same) & (i + 1); /* no hash is there twice */
    }
    return found;
}

/* Of the file, not of a client: may take its time. */
static int has_hash(const struct principals *t, const uint8_t digest[PRINCIPAL_DIGEST])
{
    for (size_t i = 0; i < t->hash_count; i++) {
        if (memcmp(digest, t->hashes[i].digest, PRINCIPAL_DIGEST) == 0)
            return 1;
    }
    return 0;
}

int principals_add(struct principals *t, const struct principal *p,
                   const uint8_t (*hashes)[PRINCIPAL_DIGEST], unsigned count, uint64_t expires_s,
                   struct err *e)
{
    if (t->count == PRINCIPALS_MAX)
        return err_set(e, EINVAL, "more than %d principals", PRINCIPALS_MAX);
    if (t->own != NULL && strcmp(t->own, p->name) == 0)
        return err_set(e, EEXIST,
                       "field 'name': '%s' has its token by --token, --token-file or a variable "
                       "already; it is given in one way",
                       p->name);
    if (by_name(t, p->name) != NULL)
        return err_set(e, EEXIST, "field 'name': '%s' is there already", p->name);
    for (unsigned i = 0; i < count; i++) {
        if (has_hash(t, hashes[i]))
            return err_set(e, EEXIST, "field 'sha256': the same hash is there already");
        t->hashes = grow(t->hashes, t->hash_count, &t->hash_room, sizeof *t->hashes);
        memcpy(t->hashes[t->hash_count].digest, hashes[i], PRINCIPAL_DIGEST);
        t->hashes[t->hash_count++].entry = t->count;
    }
    t->entries = grow(t->entries, t->count, &t->room, sizeof *t->entries);
    t->entries[t->count++] = (struct entry){ *p, expires_s };
    return 0;
}

int principals_digest(struct view token, uint8_t out[PRINCIPAL_DIGEST])
{
    return EVP_Digest(token.p, token.n, out, NULL, EVP_sha256(), NULL) == 1;
}

int principals_add_token(struct principals *t, const char *name, struct view token, struct err *e)
{
    struct principal p = { .role = ROLE_FULL, .profiles_all = 1 };
    uint8_t digest[1][PRINCIPAL_DIGEST];

    check(principal_name_valid(name, strlen(name)));
    memcpy(p.name, name, strlen(name));
    if (!principals_digest(token, digest[0]))
        return err_set(e, EIO, "libcrypto has no SHA-256");
    int rc = principals_add(t, &p, (const uint8_t(*)[PRINCIPAL_DIGEST])digest, 1, 0, e);
    if (rc == 0)
        t->own = name;
    return rc;
}

size_t principals_count(const struct principals *t)
{
    return t->count;
}

static const struct principal *unless_expired(const struct entry *entry, uint64_t now_s)
{
    if (entry == NULL || (entry->expires_s != 0 && entry->expires_s <= now_s))
        return NULL;
    return &entry->principal;
}

const struct principal *principals_by_token(const struct principals *t,
                                            const uint8_t digest[PRINCIPAL_DIGEST], uint64_t now_s)
{
    size_t found = find_hash(t, digest);

    return found != 0 ? unless_expired(&t->entries[t->hashes[found - 1].entry], now_s) : NULL;
}

const struct principal *principals_by_name(const struct principals *t, const char *name,
                                           uint64_t now_s)
{
    return unless_expired(by_name(t, name), now_s);
}

int principals_has(const struct principals *t, const char *name)
{
    return by_name(t, name) != NULL;
}

uint64_t principals_next_expiry(const struct principals *t, uint64_t now_s)
{
    uint64_t next = 0;

    for (size_t i = 0; i < t->count; i++) {
        uint64_t at = t->entries[i].expires_s;

        if (at > now_s && (next == 0 || at < next))
            next = at;
    }
    return next;
}
