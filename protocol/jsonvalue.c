/* Reading the values that a scan found (jsonscan.h). Texts were validated, yet
 * nothing here reads outside of one that was not. */
#include <errno.h>
#include <string.h>

#include "err.h"
#include "jsonscan.h"
#include "utf8.h"

const char *jsonscan_kind_name(enum jsonscan_kind kind)
{
    static const char *const names[] = {
        [JSONSCAN_ABSENT] = "missing",     [JSONSCAN_NULL] = "null",
        [JSONSCAN_FALSE] = "false",        [JSONSCAN_TRUE] = "true",
        [JSONSCAN_INTEGER] = "an integer", [JSONSCAN_REAL] = "a number",
        [JSONSCAN_STRING] = "a string",    [JSONSCAN_ARRAY] = "an array",
        [JSONSCAN_OBJECT] = "an object",
    };

    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

/* The text between the quotes, or -HC_EPARSE. */
static int inside(struct jsonscan_value v, struct view *ret, struct err *e)
{
    if (v.kind != JSONSCAN_STRING || v.text.n < 2)
        return err_set(e, HC_EPARSE, "JSON is %s, not a string", jsonscan_kind_name(v.kind));
    *ret = (struct view){ v.text.p + 1, v.text.n - 2 };
    return 0;
}

static int hex4(const uint8_t *p)
{
    int unit = 0;

    for (int i = 0; i < 4; i++) {
        uint8_t c = p[i], lower = c | 0x20;

        if (c >= '0' && c <= '9')
            unit = unit << 4 | (c - '0');
        else if (lower >= 'a' && lower <= 'f')
            unit = unit << 4 | (lower - 'a' + 10);
        else
            return -1;
    }
    return unit;
}

/* The code point of the escape at *p (a backslash), which moves behind it; a
 * lone surrogate is returned as it is; -1 for what is no escape. */
static int32_t take_escape(const uint8_t **p, const uint8_t *end)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const uint8_t *at = *p;

    *p = end - at < 2 ? end : at + 2;
    if (end - at < 2)
        return -1;
    if (at[1] != 'u') {
        const char *found = at[1] != '\0' ? strchr(from, at[1]) : NULL;

        return found != NULL ? to[found - from] : -1;
    }
    int unit = end - at >= 6 ? hex4(at + 2) : -1;
    if (unit < 0)
        return -1;
    *p = at + 6;
    if (unit < 0xd800 || unit > 0xdbff || end - at < 12 || at[6] != '\\' || at[7] != 'u')
        return unit;
    int low = hex4(at + 8);
    if (low < 0xdc00 || low > 0xdfff)
        return unit;
    *p = at + 12;
    return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

/* UTF-8 of a code point; 0 bytes for surrogates and -1. */
static unsigned encode(int32_t cp, uint8_t out[4])
{
    if (cp < 0 || (cp >= 0xd800 && cp <= 0xdfff))
        return 0;
    if (cp < 0x80) {
        out[0] = (uint8_t)cp;
        return 1;
    }
    unsigned n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (unsigned i = n - 1; i > 0; i--, cp >>= 6)
        out[i] = (uint8_t)(0x80 | (cp & 0x3f));
    out[0] = (uint8_t)((0xf0 << (4 - n)) | cp); /* 110, 1110, 11110 and the top bits */
    return n;
}

/* Compares an escaped text with s; what is decoded has to match at every step. */
static int escaped_equals(struct view raw, const char *s, size_t left)
{
    const uint8_t *p = raw.p, *end = raw.p + raw.n;

    while (p < end) {
        const uint8_t *stop = memchr(p, '\\', (size_t)(end - p));
        size_t plain = (size_t)((stop != NULL ? stop : end) - p);

        if (plain > left || memcmp(p, s, plain) != 0)
            return 0;
        s += plain;
        left -= plain;
        p += plain;
        if (p == end)
            break;
        uint8_t utf8[4];
        unsigned n = encode(take_escape(&p, end), utf8);
        if (n == 0 || n > left || memcmp(utf8, s, n) != 0)
            return 0;
        s += n;
        left -= n;
    }
    return left == 0;
}

int jsonscan_string_equals(struct jsonscan_value v, const char *s)
{
    struct view raw = { 0 };
    size_t n = strlen(s);

    if (inside(v, &raw, NULL) < 0)
        return 0;
    /* An escape makes at most six bytes out of one: longer texts need no look. */
    if (raw.n < n || raw.n > 6 * n)
        return 0;
    if (raw.n == n && memchr(raw.p, '\\', n) == NULL)
        return memcmp(raw.p, s, n) == 0;
    return escaped_equals(raw, s, n);
}

static int add_plain(struct view plain, struct buf *out, struct err *e)
{
    struct view text;
    int rc = utf8_repair(plain, out, &text, e);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = buf_add_view(out, text);
    return rc < 0 ? err_set(e, -rc, "decoded string does not fit") : 0;
}

int jsonscan_string_decode(struct jsonscan_value v, struct buf *out, struct err *e)
{
    size_t before = buf_len(out);
    struct view raw = { 0 };
    int rc = inside(v, &raw, e);

    if (rc < 0)
        return rc;
    const uint8_t *p = raw.p, *end = raw.p + raw.n;
    while (p < end) {
        const uint8_t *stop = memchr(p, '\\', (size_t)(end - p));

        if (stop == NULL)
            stop = end;
        rc = add_plain((struct view){ p, (size_t)(stop - p) }, out, e);
        p = stop;
        if (rc == 0 && p < end) {
            uint8_t utf8[4] = { 0xef, 0xbf, 0xbd }; /* U+FFFD unless it is a character */
            unsigned n = encode(take_escape(&p, end), utf8);

            rc = buf_add(out, utf8, n > 0 ? n : 3);
            if (rc < 0)
                err_set(e, -rc, "decoded string does not fit");
        }
        if (rc < 0) {
            buf_truncate(out, before);
            return rc;
        }
    }
    return 0;
}

int jsonscan_string_copy(struct jsonscan_value v, char *out, size_t size, struct err *e)
{
    struct view raw = { 0 };
    autobuf struct buf decoded;
    int rc = inside(v, &raw, e);

    check(size > 0);
    buf_init(&decoded, size - 1);
    if (rc < 0)
        return rc;
    if ((raw.n > 0 && memchr(raw.p, '\\', raw.n) != NULL) || !utf8_valid(raw)) {
        rc = jsonscan_string_decode(v, &decoded, e);
        if (rc < 0)
            return rc;
        raw = buf_view(&decoded);
    }
    if (raw.n > size - 1)
        return err_set(e, EMSGSIZE, "string is longer than %zu bytes", size - 1);
    if (raw.n > 0 && memchr(raw.p, '\0', raw.n) != NULL)
        return err_set(e, HC_EPARSE, "string contains a NUL character");
    if (raw.n > 0)
        memcpy(out, raw.p, raw.n);
    out[raw.n] = '\0';
    return (int)raw.n;
}

int jsonscan_integer(struct jsonscan_value v, int64_t *ret, struct err *e)
{
    const uint8_t *p = v.text.p, *end = v.text.p + v.text.n;
    int64_t n = 0;

    if (v.kind != JSONSCAN_INTEGER || p == end)
        return err_set(e, HC_EPARSE, "JSON is %s, not an integer", jsonscan_kind_name(v.kind));
    int negative = *p == '-';
    for (p += negative; p < end && *p >= '0' && *p <= '9'; p++) {
        int digit = *p - '0';

        /* Built downwards: INT64_MIN has no positive counterpart. */
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, digit, &n))
            return err_set(e, ERANGE, "integer beyond 64 bits");
    }
    if (!negative && __builtin_mul_overflow(n, -1, &n))
        return err_set(e, ERANGE, "integer beyond 64 bits");
    *ret = n;
    return 0;
}

int jsonscan_bool(struct jsonscan_value v, int *ret, struct err *e)
{
    if (v.kind != JSONSCAN_TRUE && v.kind != JSONSCAN_FALSE)
        return err_set(e, HC_EPARSE, "JSON is %s, not true or false", jsonscan_kind_name(v.kind));
    *ret = v.kind == JSONSCAN_TRUE;
    return 0;
}
