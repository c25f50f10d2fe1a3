/*
 * jsonscan - validates a JSON text in one pass and tells where the values of
 * some keys are; for messages that must pass byte for byte. Iterative: depth
 * costs one bit per level. The grammar is RFC 8259 with any length of number,
 * lone surrogate escapes and \u0000 allowed (kernels send all of them, and
 * jansson refuses them). Of duplicate keys the last one counts, as in Python.
 */
#ifndef HC_JSONSCAN_H
#define HC_JSONSCAN_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct err;

enum {
    JSONSCAN_NAN = 1,          /* the tokens NaN, Infinity and -Infinity of Python's json */
    JSONSCAN_BAD_UTF8 = 2,     /* invalid UTF-8 inside strings (counted); elsewhere never */
    JSONSCAN_DEPTH_MAX = 4096, /* a larger depth of the rules counts as this */
    JSONSCAN_KEYS_MAX = 32,    /* wanted keys of one scan */
};

struct jsonscan_rules {
    unsigned flags; /* JSONSCAN_NAN | JSONSCAN_BAD_UTF8 */
    unsigned depth; /* arrays and objects open at a time; 0 = scalars only */
};

enum jsonscan_kind {
    JSONSCAN_ABSENT = 0, /* the key was not there */
    JSONSCAN_NULL,
    JSONSCAN_FALSE,
    JSONSCAN_TRUE,
    JSONSCAN_INTEGER, /* a number without fraction and exponent */
    JSONSCAN_REAL,    /* any other number, NaN and Infinity included */
    JSONSCAN_STRING,
    JSONSCAN_ARRAY,
    JSONSCAN_OBJECT,
};

/* A value inside a scanned text; text is the exact bytes, quotes included. */
struct jsonscan_value {
    enum jsonscan_kind kind;
    struct view text; /* borrowed from the document */
};

/* What passed only because a rule allowed it, and what strict readers may refuse. */
struct jsonscan_notes {
    size_t bad_utf8;        /* invalid sequences; each is one U+FFFD when repaired */
    size_t nan_tokens;      /* NaN, Infinity, -Infinity */
    size_t lone_surrogates; /* escapes like \ud800 without a partner */
    unsigned depth;         /* deepest nesting seen */
};

/* Validates a whole text (white space around it allowed). ret and ret_notes may
 * be NULL. -HC_EPARSE tells the byte and what is wrong, -HC_ELIMIT the depth. */
int jsonscan_text(struct view doc, const struct jsonscan_rules *rules, struct jsonscan_value *ret,
                  struct jsonscan_notes *ret_notes, struct err *e) MUST_CHECK;

/* As jsonscan_text() for a text that must be an object: ret_values[i] is the value
 * of the top-level key keys[i] (UTF-8, compared after decoding escapes). */
int jsonscan_object(struct view doc, const struct jsonscan_rules *rules, const char *const *keys,
                    size_t count, struct jsonscan_value *ret_values,
                    struct jsonscan_notes *ret_notes, struct err *e) MUST_CHECK;

/* Walks the members of one array or object; validates as it goes. */
struct jsonscan_iter {
    struct view rest;            /* not walked yet; borrowed */
    struct jsonscan_rules rules; /* for the members */
    enum jsonscan_kind kind;     /* of the container */
    int started;
};

/* -EINVAL when container is neither. depth in rules counts from the container. */
int jsonscan_iter_init(struct jsonscan_iter *it, struct jsonscan_value container,
                       const struct jsonscan_rules *rules, struct err *e) MUST_CHECK;
/* 1 and the member (key absent in an array), 0 at the end, -HC_EPARSE, -HC_ELIMIT.
 * Members come in document order, duplicates included. */
int jsonscan_iter_next(struct jsonscan_iter *it, struct jsonscan_value *ret_key,
                       struct jsonscan_value *ret_value, struct err *e) MUST_CHECK;

/* The functions below read values that a scan returned; another kind is not an
 * error of the program: equals says 0, the others -HC_EPARSE. */

/* 1 when the decoded string is exactly s (UTF-8). A string with a lone surrogate
 * or invalid UTF-8 equals nothing. */
int jsonscan_string_equals(struct jsonscan_value v, const char *s);

/* Appends the decoded text. It is always valid UTF-8: a lone surrogate and an
 * invalid sequence become U+FFFD each (not WTF-8: the result goes into documents
 * of our own). It may contain NUL. -EMSGSIZE above the buffer's maximum. */
int jsonscan_string_decode(struct jsonscan_value v, struct buf *out, struct err *e) MUST_CHECK;

/* Decodes into a C string of at most size - 1 bytes: returns its length, or
 * -EMSGSIZE, or -HC_EPARSE also when it contains NUL. */
int jsonscan_string_copy(struct jsonscan_value v, char *out, size_t size, struct err *e) MUST_CHECK;

/* -HC_EPARSE when it is no integer, -ERANGE beyond 64 bits. */
int jsonscan_integer(struct jsonscan_value v, int64_t *ret, struct err *e) MUST_CHECK;

/* -HC_EPARSE unless true or false. */
int jsonscan_bool(struct jsonscan_value v, int *ret, struct err *e) MUST_CHECK;

/* 1 when the value is there and not null. */
static inline int jsonscan_given(struct jsonscan_value v)
{
    return v.kind != JSONSCAN_ABSENT && v.kind != JSONSCAN_NULL;
}

/* The name of a kind for error texts, e.g. "an object". */
const char *jsonscan_kind_name(enum jsonscan_kind kind);

#endif
