/*
 * principals - all who may ask, by name and by the SHA-256 of their tokens. Made
 * from the text of --principals (docs/PRINCIPALS.md) and the one token of --token.
 */
#ifndef HC_PRINCIPALS_H
#define HC_PRINCIPALS_H

#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"
#include "principal.h"

struct err;
struct principals;
struct view;

enum {
    PRINCIPAL_DIGEST = 32,
    PRINCIPALS_MAX = 4096,
    PRINCIPAL_HASHES_MAX = 8, /* of one principal: the old token and the new one, and some */
};

/* What the file may grant at most; a field of 0 has no maximum. */
struct principals_maxima {
    unsigned max_kernels;
    struct launch_limits limits;
    struct time_limits times;
    uint64_t workspace_bytes;
    const char *data;                /* comma list of names (datanames.h); NULL: there are none */
    const struct profiles *profiles; /* the named ones; NULL: there are none */
    uint64_t profiles_version;
};

struct principals *principals_new(void);
struct principals *principals_free(struct principals *t); /* accepts NULL, returns NULL */

/* Adds one with a single token: the one of --token; name lives as long as the table. -EIO when libcrypto fails. */
int principals_add_token(struct principals *t, const char *name, struct view token,
                         struct err *e) MUST_CHECK;

/*
 * Adds those of the file's text: one JSON object a line; empty lines and lines that
 * begin with '#' are skipped. On failure (-EINVAL) the table is of no use; the text
 * tells line and field, and shows nothing of the file. maxima may be NULL.
 */
int principals_parse(struct principals *t, struct view text, const struct principals_maxima *maxima,
                     struct err *e) MUST_CHECK;

/* Adds a copy with its hashes. -EEXIST: the name or a hash is there already. */
int principals_add(struct principals *t, const struct principal *p,
                   const uint8_t (*hashes)[PRINCIPAL_DIGEST], unsigned count, uint64_t expires_s,
                   struct err *e) MUST_CHECK;

size_t principals_count(const struct principals *t);

/* Whose token it is, or NULL; one that has expired at now_s (CLOCK_REALTIME) is
 * nobody's. Looks at every hash whatever it finds: the time tells nothing. Borrowed. */
const struct principal *principals_by_token(const struct principals *t,
                                            const uint8_t digest[PRINCIPAL_DIGEST], uint64_t now_s);
const struct principal *principals_by_name(const struct principals *t, const char *name,
                                           uint64_t now_s);

/* 1 also when it has expired. */
int principals_has(const struct principals *t, const char *name);

/* The first expiry after now_s; 0: none. */
uint64_t principals_next_expiry(const struct principals *t, uint64_t now_s);

/* SHA-256 of a token. 0 when libcrypto fails. */
int principals_digest(struct view token, uint8_t out[PRINCIPAL_DIGEST]);

#endif
