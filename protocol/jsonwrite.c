#include "jsonwrite.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "err.h"
#include "utf8.h"

/* Bytes at p that have to be escaped as one: 0 when p may stand as it is. */
static size_t special(const uint8_t *p, const uint8_t *end)
{
    if (*p < 0x20 || *p == '"' || *p == '\\')
        return 1;
    if (*p == 0xc2 && end - p >= 2 && p[1] == 0x85)
        return 2;
    if (*p == 0xe2 && end - p >= 3 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
        return 3;
    return 0;
}

static int add_escape(struct buf *b, const uint8_t *p, size_t n)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";

    if (n == 2)
        return buf_add_str(b, "\\u0085");
    if (n == 3)
        return buf_add_str(b, p[2] == 0xa8 ? "\\u2028" : "\\u2029");
    const char *found = *p != '\0' ? strchr(named, *p) : NULL;
    if (found == NULL)
        return buf_addf(b, "\\u%04x", *p);
    char pair[2] = { '\\', letters[found - named] };
    return buf_add(b, pair, sizeof pair);
}

static int add_escaped(struct buf *b, struct view text)
{
    const uint8_t *p = text.p, *end = text.p + text.n, *plain = p;

    while (p < end) {
        size_t n = special(p, end);

        if (n == 0) {
            p++;
            continue;
        }
        int rc = buf_add(b, plain, (size_t)(p - plain));
        if (rc == 0)
            rc = add_escape(b, p, n);
        if (rc < 0)
            return rc;
        p += n;
        plain = p;
    }
    return buf_add(b, plain, (size_t)(end - plain));
}

int jsonwrite_quoted(struct buf *b, struct view utf8)
{
    size_t before = buf_len(b);
    autobuf struct buf repaired = { .max = SIZE_MAX };
    struct view text;
    int rc = utf8_repair(utf8, &repaired, &text, NULL);

    if (rc < 0)
        return rc;
    rc = buf_add_str(b, "\"");
    if (rc == 0 && text.n > 0)
        rc = add_escaped(b, text);
    if (rc == 0)
        rc = buf_add_str(b, "\"");
    if (rc < 0)
        buf_truncate(b, before);
    return rc;
}

struct jsonwrite jsonwrite_to(struct buf *b)
{
    return (struct jsonwrite){ .to = b };
}

static void note(struct jsonwrite *w, int rc)
{
    if (w->error == 0 && rc < 0)
        w->error = rc;
}

static void put(struct jsonwrite *w, const char *s)
{
    if (w->error == 0)
        note(w, buf_add_str(w->to, s));
}

static uint32_t level_bit(const struct jsonwrite *w)
{
    return UINT32_C(1) << (w->depth - 1);
}

static int in_array(const struct jsonwrite *w)
{
    return w->depth > 0 && (w->arrays & level_bit(w)) != 0;
}

static void put_comma(struct jsonwrite *w)
{
    if (w->filled & level_bit(w))
        put(w, ",");
    w->filled |= level_bit(w);
}

/* A value stands at the top, in an array, or behind a key: all else would be no JSON. */
static void begin_value(struct jsonwrite *w)
{
    check(w->depth == 0 || in_array(w) || w->after_key);
    if (in_array(w))
        put_comma(w);
    w->after_key = 0;
}

static void open_level(struct jsonwrite *w, int array)
{
    begin_value(w);
    check(w->depth < JSONWRITE_DEPTH);
    w->depth++;
    w->filled &= ~level_bit(w);
    w->arrays = array ? w->arrays | level_bit(w) : w->arrays & ~level_bit(w);
    put(w, array ? "[" : "{");
}

void jsonwrite_object(struct jsonwrite *w)
{
    open_level(w, 0);
}

void jsonwrite_array(struct jsonwrite *w)
{
    open_level(w, 1);
}

void jsonwrite_end(struct jsonwrite *w)
{
    check(w->depth > 0 && !w->after_key);
    put(w, in_array(w) ? "]" : "}");
    w->depth--;
}

void jsonwrite_key(struct jsonwrite *w, const char *key)
{
    check(w->depth > 0 && !in_array(w) && !w->after_key);
    put_comma(w);
    if (w->error == 0)
        note(w, jsonwrite_quoted(w->to, view_cstr(key)));
    put(w, ":");
    w->after_key = 1;
}

void jsonwrite_string(struct jsonwrite *w, struct view utf8)
{
    begin_value(w);
    if (w->error == 0)
        note(w, jsonwrite_quoted(w->to, utf8));
}

void jsonwrite_str(struct jsonwrite *w, const char *s)
{
    if (s == NULL)
        jsonwrite_null(w);
    else
        jsonwrite_string(w, view_cstr(s));
}

void jsonwrite_int(struct jsonwrite *w, int64_t n)
{
    begin_value(w);
    if (w->error == 0)
        note(w, buf_addf(w->to, "%" PRId64, n));
}

void jsonwrite_uint(struct jsonwrite *w, uint64_t n)
{
    begin_value(w);
    if (w->error == 0)
        note(w, buf_addf(w->to, "%" PRIu64, n));
}

void jsonwrite_bool(struct jsonwrite *w, int b)
{
    begin_value(w);
    put(w, b ? "true" : "false");
}

void jsonwrite_null(struct jsonwrite *w)
{
    begin_value(w);
    put(w, "null");
}

void jsonwrite_raw(struct jsonwrite *w, struct view json)
{
    begin_value(w);
    if (w->error == 0)
        note(w, buf_add_view(w->to, json));
}

int jsonwrite_finish(struct jsonwrite *w, struct err *e)
{
    check(w->depth == 0 && !w->after_key);
    return w->error < 0 ? err_sys(e, -w->error, "write JSON") : 0;
}
