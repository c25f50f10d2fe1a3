/*
 * jsonwrite - writes small JSON documents straight into a buf. Commas and
 * escapes are its affair; an error sticks, so callers check once at the end.
 *
 *     struct json_out o = json_out_to(&b);
 *     json_put_object(&o);
 *     json_put_key(&o, "status");
 *     json_put_str(&o, "ok");
 *     json_put_end(&o);
 *     return json_out_finish(&o, e);
 */
#ifndef HC_JSONWRITE_H
#define HC_JSONWRITE_H

#include <stdint.h>

#include "buf.h"

struct err;

enum { JSON_OUT_DEPTH = 32 };

struct json_out {
    struct buf *to;     /* borrowed */
    int error;          /* first failure, 0 or negative */
    unsigned depth;     /* open arrays and objects, at most JSON_OUT_DEPTH */
    uint32_t arrays;    /* bit per level: it is an array */
    uint32_t filled;    /* bit per level: a comma is due before the next member */
    unsigned after_key; /* the next value belongs to a key */
};

struct json_out json_out_to(struct buf *b);

void json_put_object(struct json_out *o);
void json_put_array(struct json_out *o);
void json_put_end(struct json_out *o); /* closes the innermost one */
void json_put_key(struct json_out *o, const char *key);

void json_put_string(struct json_out *o, struct view utf8); /* invalid UTF-8 becomes U+FFFD */
void json_put_str(struct json_out *o, const char *s);       /* NULL is null */
void json_put_int(struct json_out *o, int64_t n);
void json_put_uint(struct json_out *o, uint64_t n);
void json_put_bool(struct json_out *o, int b);
void json_put_null(struct json_out *o);
void json_put_raw(struct json_out *o, struct view json); /* a value that is JSON already */

/* 0, or the first failure (-EMSGSIZE, -ENOMEM) with a text in e. Every array
 * and object must be closed by then. */
int json_out_finish(struct json_out *o, struct err *e) MUST_CHECK;

/* Appends one quoted string to b. Escaped are quotes, backslash, U+0000-U+001F
 * and also U+0085, U+2028 and U+2029: they end a line for readers of SSE and
 * NDJSON that split with Unicode rules (Python's splitlines). */
int json_write_string(struct buf *b, struct view utf8) MUST_CHECK;

#endif
