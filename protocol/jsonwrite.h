/*
 * jsonwrite - writes small JSON documents straight into a buf. Commas and
 * escapes are its affair; an error sticks, so callers check once at the end.
 *
 *     struct jsonwrite w = jsonwrite_to(&b);
 *     jsonwrite_object(&w);
 *     jsonwrite_key(&w, "status");
 *     jsonwrite_str(&w, "ok");
 *     jsonwrite_end(&w);
 *     return jsonwrite_finish(&w, e);
 */
#ifndef HC_JSONWRITE_H
#define HC_JSONWRITE_H

#include <stdint.h>

#include "buf.h"

struct err;

enum { JSONWRITE_DEPTH = 32 };

struct jsonwrite {
    struct buf *to;     /* borrowed */
    int error;          /* first failure, 0 or negative */
    unsigned depth;     /* open arrays and objects, at most JSONWRITE_DEPTH */
    uint32_t arrays;    /* bit per level: it is an array */
    uint32_t filled;    /* bit per level: a comma is due before the next member */
    unsigned after_key; /* the next value belongs to a key */
};

struct jsonwrite jsonwrite_to(struct buf *b);

void jsonwrite_object(struct jsonwrite *w);
void jsonwrite_array(struct jsonwrite *w);
void jsonwrite_end(struct jsonwrite *w); /* closes the innermost one */
void jsonwrite_key(struct jsonwrite *w, const char *key);

void jsonwrite_string(struct jsonwrite *w, struct view utf8); /* invalid UTF-8 becomes U+FFFD */
void jsonwrite_str(struct jsonwrite *w, const char *s);       /* NULL is null */
void jsonwrite_int(struct jsonwrite *w, int64_t n);
void jsonwrite_uint(struct jsonwrite *w, uint64_t n);
void jsonwrite_bool(struct jsonwrite *w, int b);
void jsonwrite_null(struct jsonwrite *w);
void jsonwrite_raw(struct jsonwrite *w, struct view json); /* a value that is JSON already */

/* 0, or the first failure (-EMSGSIZE, -ENOMEM) with a text in e. Every array
 * and object must be closed by then. */
int jsonwrite_finish(struct jsonwrite *w, struct err *e) MUST_CHECK;

/* Appends one quoted string to b. Escaped are quotes, backslash, U+0000-U+001F
 * and also U+0085, U+2028 and U+2029: they end a line for readers of SSE and
 * NDJSON that split with Unicode rules (Python's splitlines). */
int jsonwrite_quoted(struct buf *b, struct view utf8) MUST_CHECK;

#endif
