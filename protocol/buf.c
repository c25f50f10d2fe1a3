#include "buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "err.h"

struct view view_cstr(const char *s)
{
    return (struct view){ (const uint8_t *)s, strlen(s) };
}

int view_equals(struct view v, const char *s)
{
    return v.n == strlen(s) && (v.n == 0 || memcmp(v.p, s, v.n) == 0);
}

int view_equals_nocase(struct view v, const char *s)
{
    return v.n == strlen(s) && (v.n == 0 || strncasecmp((const char *)v.p, s, v.n) == 0);
}

char *view_dup(struct view v)
{
    char *s = xcalloc(1, v.n + 1);

    if (v.n > 0)
        memcpy(s, v.p, v.n);
    return s;
}

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){ .max = max };
}

void buf_free(struct buf *b)
{
    free(b->data);
    *b = (struct buf){ .max = b->max };
}

struct view buf_view(const struct buf *b)
{
    if (b->data == NULL)
        return (struct view){ NULL, 0 }; /* NULL + 0 is undefined in C17 */
    return (struct view){ b->data + b->head, b->tail - b->head };
}

size_t buf_len(const struct buf *b)
{
    return b->tail - b->head;
}

/* Room for n more bytes, and memory for spare ones behind them that are never content. */
static int reserve(struct buf *b, size_t n, size_t spare)
{
    size_t used = buf_len(b), room = n + spare;

    if (n > b->max || used > b->max - n)
        return -EMSGSIZE;
    if (b->size - b->tail >= room && b->data != NULL)
        return 0;
    if (b->head > 0 && b->size - used >= room) {
        memmove(b->data, b->data + b->head, used);
        b->head = 0;
        b->tail = used;
        return 0;
    }

    size_t want = b->size > 0 ? b->size : 256;
    while (want < used + room)
        want *= 2;
    if (want > b->max)
        want = used + n > b->max / 2 ? b->max + spare : want;
    if (want == 0)
        want = 1;
    uint8_t *data = malloc(want);
    if (data == NULL)
        return -ENOMEM;
    if (used > 0)
        memcpy(data, b->data + b->head, used);
    free(b->data);
    b->data = data;
    b->size = want;
    b->head = 0;
    b->tail = used;
    return 0;
}

int buf_reserve(struct buf *b, size_t n)
{
    return reserve(b, n, 0);
}

uint8_t *buf_tail(struct buf *b)
{
    return b->data + b->tail;
}

void buf_commit(struct buf *b, size_t n)
{
    check(n <= b->size - b->tail);
    b->tail += n;
}

int buf_add(struct buf *b, const void *p, size_t n)
{
    int rc = buf_reserve(b, n);

    if (rc < 0)
        return rc;
    if (n > 0)
        memcpy(buf_tail(b), p, n);
    buf_commit(b, n);
    return 0;
}

int buf_add_view(struct buf *b, struct view v)
{
    return buf_add(b, v.p, v.n);
}

int buf_add_str(struct buf *b, const char *s)
{
    return buf_add(b, s, strlen(s));
}

int buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return -EINVAL;
    int rc = reserve(b, (size_t)n,
                     1); /* vsnprintf writes a NUL behind the text: not content, so not bounded */
    if (rc < 0)
        return rc;
    va_start(ap, fmt);
    vsnprintf((char *)buf_tail(b), (size_t)n + 1, fmt, ap);
    va_end(ap);
    buf_commit(b, (size_t)n);
    return 0;
}

void buf_consume(struct buf *b, size_t n)
{
    check(n <= buf_len(b));
    b->head += n;
    if (b->head == b->tail)
        b->head = b->tail = 0;
}

void buf_truncate(struct buf *b, size_t n)
{
    check(n <= buf_len(b));
    b->tail = b->head + n;
}

void buf_clear(struct buf *b)
{
    b->head = b->tail = 0;
}

void buf_release(struct buf *b)
{
    free(b->data);
    b->data = NULL;
    b->size = b->head = b->tail = 0;
}
