#include "logline.h"

#include <stdio.h>
#include <string.h>

#include "logvalue.h"
#include "timestamp.h"

enum {
    KEY_MAX = 64,
    TAIL = 32, /* kept free for the end of the line */
};

static const char *const level_names[] = { "debug", "info", "warn", "error" };
static const char *const format_names[] = { "text", "json" };

/* ---- the line ---- */

static size_t room(const struct logline *l)
{
    return LOGLINE_MAX - TAIL - l->n;
}

static int put(struct logline *l, const char *p, size_t n)
{
    if (n > room(l))
        return 0;
    memcpy(l->text + l->n, p, n);
    l->n += n;
    return 1;
}

static int puts_in(struct logline *l, const char *s)
{
    return put(l, s, strlen(s));
}

/* One code point of the n bytes at p; an invalid byte is U+FFFD. Returns the bytes taken. */
static size_t code_point(const uint8_t *p, size_t n, uint32_t *ret)
{
    static const struct {
        uint8_t mask, lead;
        uint32_t least;
    } forms[] = { { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 } };

    *ret = 0xfffd;
    for (size_t more = 1; more <= 3; more++) {
        uint32_t c = p[0] & (uint8_t)~forms[more - 1].mask;

        if ((p[0] & forms[more - 1].mask) != forms[more - 1].lead)
            continue;
        for (size_t i = 1; i <= more; i++) {
            if (i >= n || (p[i] & 0xc0) != 0x80)
                return 1;
            c = c << 6 | (p[i] & 0x3f);
        }
        if (c < forms[more - 1].least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            return 1;
        *ret = c;
        return more + 1;
    }
    return 1;
}

/* All that is not printable ASCII is escaped: no reader of the line is led astray by
 * line separators or writing directions, and no terminal is driven. */
static size_t json_escape(const uint8_t *p, size_t n, char out[16])
{
    uint32_t c = p[0];
    size_t used = c < 0x80 ? 1 : code_point(p, n, &c);

    if (c == '"' || c == '\\')
        snprintf(out, 16, "\\%c", (char)c);
    else if (c >= 0x20 && c < 0x7f)
        snprintf(out, 16, "%c", (char)c);
    else if (c < 0x10000)
        snprintf(out, 16, "\\u%04x", c);
    else
        snprintf(out, 16, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                 0xdc00 + ((c - 0x10000) & 0x3ff));
    return used;
}

static size_t text_escape(const uint8_t *p, char out[16])
{
    if (p[0] == '"' || p[0] == '\\')
        snprintf(out, 16, "\\%c", p[0]);
    else if (p[0] >= 0x20 && p[0] < 0x7f)
        snprintf(out, 16, "%c", p[0]);
    else
        snprintf(out, 16, "\\x%02x", p[0]);
    return 1;
}

/* In double quotes; what does not fit is cut and ends in three dots. */
static int put_quoted(struct logline *l, const uint8_t *p, size_t n, int cut)
{
    enum { ENDING = 4 }; /* ..." */
    char one[16];

    if (room(l) < 2 * ENDING || !put(l, "\"", 1))
        return 0;
    for (size_t i = 0; i < n;) {
        i += l->format == LOGLINE_JSON ? json_escape(p + i, n - i, one) : text_escape(p + i, one);
        if (strlen(one) + ENDING > room(l)) {
            cut = 1;
            break;
        }
        puts_in(l, one);
    }
    if (cut)
        puts_in(l, "...");
    return put(l, "\"", 1);
}

static int plain(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] <= ' ' || p[i] >= 0x7f || p[i] == '"')
            return 0;
    }
    return n > 0;
}

static int put_key(struct logline *l, const char *key, size_t n)
{
    if (l->format == LOGLINE_TEXT)
        return (l->n == 0 || put(l, " ", 1)) && put(l, key, n) && put(l, "=", 1);
    return put(l, l->n == 0 ? "{\"" : ",\"", 2) && put(l, key, n) && put(l, "\":", 2);
}

/* A whole field or nothing of it. */
static void put_field(struct logline *l, const char *key, size_t key_n, const struct logvalue *v)
{
    size_t before = l->n;
    int bare =
        v->number || (l->format == LOGLINE_TEXT && !v->quoted && !v->cut && plain(v->text, v->n));

    if (put_key(l, key, key_n) &&
        (bare ? put(l, (const char *)v->text, v->n) : put_quoted(l, v->text, v->n, v->cut)))
        return;
    l->n = before;
    l->cut = 1;
}

/* ---- fields ---- */

static size_t key_length(const char *p)
{
    size_t n = 0;

    while ((p[n] >= 'a' && p[n] <= 'z') || (p[n] >= '0' && p[n] <= '9') || p[n] == '_' ||
           p[n] == '-' || p[n] == '.')
        n++;
    return n > 0 && n <= KEY_MAX && p[n] == '=' ? n : 0;
}

void logline_fields(struct logline *l, const char *fmt, va_list ap)
{
    struct logvalue_args a;

    va_copy(a.list, ap);
    for (const char *p = fmt + strspn(fmt, " "); p != NULL && *p != '\0';) {
        size_t n = key_length(p);
        const char *key = n > 0 ? p : "text";
        struct logvalue v;

        v.n = 0;
        v.conversions = 0;
        v.literal = v.number = v.cut = 0;
        p = logvalue_read(n > 0 ? p + n + 1 : p, &v, &a, n == 0);
        if (n > 0 || v.n > 0)
            put_field(l, key, n > 0 ? n : strlen(key), &v);
        if (p != NULL)
            p += strspn(p, " ");
    }
    va_end(a.list);
}

void logline_string(struct logline *l, const char *key, struct view value)
{
    struct logvalue v = { 0 };

    logvalue_add(&v, (const char *)value.p, value.n);
    put_field(l, key, strlen(key), &v);
}

void logline_uint(struct logline *l, const char *key, uint64_t value)
{
    struct logvalue v = { 0 };

    logvalue_add_uint(&v, value);
    put_field(l, key, strlen(key), &v);
}

/* ---- begin and end ---- */

static void put_time(struct logline *l, uint64_t realtime_us)
{
    char text[TIMESTAMP_TEXT];

    timestamp_format(realtime_us, text);
    logline_string(l, "ts", view_cstr(text));
}

void logline_begin(struct logline *l, enum logline_format format, const struct logline_head *h)
{
    l->format = format;
    l->cut = 0;
    l->n = 0;
    put_time(l, h->realtime_us);
    logline_string(l, "level", view_cstr(level_names[h->level]));
    logline_string(l, "process", view_cstr(h->process));
    logline_string(l, "event", view_cstr(h->event));
}

struct view logline_end(struct logline *l)
{
    const char *end = l->format == LOGLINE_TEXT ? (l->cut ? " cut=1\n" : "\n")
                                                : (l->cut ? ",\"cut\":true}\n" : "}\n");

    memcpy(l->text + l->n, end, strlen(end));
    l->n += strlen(end);
    return (struct view){ (const uint8_t *)l->text, l->n };
}

static int index_of(const char *name, const char *const *names, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0)
            return (int)i;
    }
    return -1;
}

int logline_format_of(const char *name, enum logline_format *ret)
{
    int i = index_of(name, format_names, sizeof format_names / sizeof format_names[0]);

    if (i >= 0)
        *ret = (enum logline_format)i;
    return i >= 0;
}

int logline_level_of(const char *name, enum logline_level *ret)
{
    int i = index_of(name, level_names, sizeof level_names / sizeof level_names[0]);

    if (i >= 0)
        *ret = (enum logline_level)i;
    return i >= 0;
}
