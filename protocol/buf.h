/*
 * buf - a growing byte buffer with a maximum given at construction, and the
 * borrowed view type that parsers return.
 */
#ifndef HC_BUF_H
#define HC_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"

/* Borrowed bytes: valid as long as what they point into. */
struct view {
    const uint8_t *p;
    size_t n;
};

#define VIEW_STR(literal) ((struct view){ (const uint8_t *)(literal), sizeof(literal) - 1 })

struct view view_cstr(const char *s);
int view_equals(struct view v, const char *s);        /* 1 or 0, byte for byte */
int view_equals_nocase(struct view v, const char *s); /* ASCII case only */
char *view_dup(struct view v); /* NUL-terminated copy, owned by the caller; aborts without memory */

/* The caller may keep it on the stack: buf_init() before, buf_free() after use.
 * Fields are read through the functions below. */
struct buf {
    uint8_t *data; /* owned */
    size_t head;   /* first byte that is not consumed */
    size_t tail;   /* end of the bytes */
    size_t size;   /* allocated */
    size_t max;    /* tail - head never exceeds this */
};

void buf_init(struct buf *b, size_t max);
void buf_free(struct buf *b);              /* accepts a zeroed buf; usable as empty afterwards */
struct view buf_view(const struct buf *b); /* borrowed until the next call on b */
size_t buf_len(const struct buf *b);

/* All writers: 0, or -EMSGSIZE above max, or -ENOMEM; the content is unchanged then. */
int buf_reserve(struct buf *b, size_t n) MUST_CHECK; /* room for n more bytes at buf_tail() */
uint8_t *buf_tail(struct buf *b);
void buf_commit(struct buf *b, size_t n); /* n bytes were written at buf_tail() */
int buf_add(struct buf *b, const void *p, size_t n) MUST_CHECK;
int buf_add_view(struct buf *b, struct view v) MUST_CHECK;
int buf_add_str(struct buf *b, const char *s) MUST_CHECK;
int buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3))) MUST_CHECK;
void buf_consume(struct buf *b, size_t n);  /* drops n bytes from the front; n <= buf_len */
void buf_truncate(struct buf *b, size_t n); /* keeps the first n bytes; n <= buf_len */
void buf_clear(struct buf *b);              /* keeps the memory */
void buf_release(struct buf *b);            /* clears and gives the memory back */

static inline void buf_freep(struct buf *b)
{
    buf_free(b);
}
#define autobuf __attribute__((cleanup(buf_freep)))

#endif
