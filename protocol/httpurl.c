#include "httpurl.h"

#include <string.h>

#include "err.h"
#include "httpchars.h"
#include "utf8.h"

enum { MALFORMED = -1, ESCAPED = 0x100 }; /* results of unit_next() beside bytes */

/* Takes one byte, plain or escaped, off the view (not empty). */
static int unit_next(struct view *v)
{
    int c = v->p[0], size = 1;

    if (c == '%') {
        int hi = v->n > 2 ? http_hex_value(v->p[1]) : -1;
        int lo = v->n > 2 ? http_hex_value(v->p[2]) : -1;

        if (hi < 0 || lo < 0)
            return MALFORMED;
        c = ESCAPED | hi << 4 | lo;
        size = 3;
    }
    v->p += size;
    v->n -= (size_t)size;
    return c;
}

static int decode(struct view in, int plus, struct buf *out, struct err *e)
{
    int rc = buf_reserve(out, in.n);
    size_t n = 0;

    if (rc < 0)
        return err_sys(e, -rc, "percent-decode %zu bytes", in.n);
    for (uint8_t *to = in.n > 0 ? buf_tail(out) : NULL; in.n > 0; n++) {
        int c = unit_next(&in);

        if (c == MALFORMED)
            return err_set(e, HC_EPARSE, "malformed percent escape");
        to[n] = plus && c == '+' ? ' ' : (uint8_t)c;
    }
    buf_commit(out, n);
    return 0;
}

int http_percent_decode(struct view in, struct buf *out, struct err *e)
{
    return decode(in, 0, out, e);
}

int http_percent_valid(struct view in)
{
    while (in.n > 0)
        if (unit_next(&in) == MALFORMED)
            return 0;
    return 1;
}

int http_path_next(struct view *rest, struct view *segment)
{
    if (rest->n == 0 || rest->p[0] != '/')
        return 0;

    const uint8_t *from = rest->p + 1, *slash = memchr(from, '/', rest->n - 1);
    size_t n = slash != NULL ? (size_t)(slash - from) : rest->n - 1;

    *segment = (struct view){ from, n };
    *rest = (struct view){ from + n, rest->n - 1 - n };
    return 1;
}

static int is_dots(const uint8_t *p, size_t n)
{
    return (n == 1 || n == 2) && p[0] == '.' && p[n - 1] == '.';
}

int http_segment_decode(struct view segment, struct buf *out, struct err *e)
{
    autobuf struct buf name;

    buf_init(&name, segment.n);
    int rc = http_percent_decode(segment, &name, e);
    if (rc < 0)
        return rc;

    struct view v = buf_view(&name);
    if (is_dots(v.p, v.n))
        return err_set(e, HC_EPARSE, "a dot segment in the path");
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] < 0x20 || v.p[i] == 0x7f || v.p[i] == '/')
            return err_set(e, HC_EPARSE, "byte 0x%02x in a path segment", v.p[i]);
    if (!utf8_valid(v))
        return err_set(e, HC_EPARSE, "a path segment is not UTF-8");
    rc = buf_add_view(out, v);
    return rc < 0 ? err_sys(e, -rc, "store a path segment") : 0;
}

/* 1 when no segment is "." or ".." once decoded and no byte is NUL. */
static int path_is_plain(struct view path)
{
    struct view segment;

    while (http_path_next(&path, &segment)) {
        unsigned units = 0, dots = 0;

        while (segment.n > 0) {
            int c = unit_next(&segment);

            if (c == MALFORMED || (uint8_t)c == 0)
                return 0;
            units++;
            dots += (uint8_t)c == '.' ? 1 : 0;
        }
        if (units == dots && (units == 1 || units == 2))
            return 0;
    }
    return path.n == 0;
}

/* An escaped '/' is a character of a name, a plain one separates names. */
static int same_unit(int a, int b)
{
    if (a == MALFORMED || b == MALFORMED)
        return 0;
    if ((uint8_t)a == '/' || (uint8_t)b == '/')
        return a == b;
    return (uint8_t)a == (uint8_t)b;
}

int http_path_under(struct view path, struct view base, struct view *rest)
{
    if (path.n == 0 || path.p[0] != '/' || !path_is_plain(path))
        return 0;
    if (base.n > 0 && base.p[base.n - 1] == '/')
        base.n--;
    while (base.n > 0)
        if (path.n == 0 || !same_unit(unit_next(&path), unit_next(&base)))
            return 0;
    if (path.n > 0 && path.p[0] != '/')
        return 0;
    *rest = path.n > 0 ? path : (struct view){ (const uint8_t *)"/", 1 };
    return 1;
}

static int query_name_is(struct view raw, const char *name)
{
    for (; raw.n > 0; name++) {
        int c = unit_next(&raw);

        if (c == MALFORMED || *name == '\0' || (c == '+' ? ' ' : (uint8_t)c) != (uint8_t)*name)
            return 0;
    }
    return *name == '\0';
}

int http_query_find(struct view query, const char *name, struct view *raw)
{
    while (query.n > 0) {
        const uint8_t *amp = memchr(query.p, '&', query.n);
        size_t n = amp != NULL ? (size_t)(amp - query.p) : query.n;
        const uint8_t *equals = memchr(query.p, '=', n);
        size_t name_n = equals != NULL ? (size_t)(equals - query.p) : n;

        if (query_name_is((struct view){ query.p, name_n }, name)) {
            size_t skip = equals != NULL ? name_n + 1 : name_n;

            *raw = (struct view){ query.p + skip, n - skip };
            return 1;
        }
        n += amp != NULL ? 1 : 0;
        query.p += n;
        query.n -= n;
    }
    return 0;
}

int http_query_get(struct view query, const char *name, struct buf *out, struct err *e)
{
    struct view raw;

    if (!http_query_find(query, name, &raw))
        return 0;
    int rc = decode(raw, 1, out, e);
    return rc < 0 ? rc : 1;
}
