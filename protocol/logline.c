#include "logline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

_Static_assert(sizeof(long) == 8 && sizeof(size_t) == 8,
               "%ld, %zu and %lld take the same argument");

enum {
    VALUE_MAX = 1024, /* bytes of one value; longer ones are cut */
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

struct value {
    size_t n;
    unsigned conversions;
    int literal; /* has text of the format string in it */
    int number;  /* its one conversion is a number */
    int quoted, cut;
    uint8_t text[VALUE_MAX];
};

/* A whole field or nothing of it. */
static void put_field(struct logline *l, const char *key, size_t key_n, const struct value *v)
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

/* ---- values ---- */

static void add(struct value *v, const char *p, size_t n)
{
    if (n > VALUE_MAX - v->n) {
        n = VALUE_MAX - v->n;
        v->cut = 1;
    }
    memcpy(v->text + v->n, p, n);
    v->n += n;
}

struct conversion {
    int zero, width, precision; /* precision -1: none */
    int longs;                  /* l: 1, ll and j: 2, z and t: 1, h: -1, hh: -2 */
    char type;
};

/* Behind the '%'. Returns what follows it. */
static const char *read_conversion(const char *p, struct conversion *c)
{
    *c = (struct conversion){ .precision = -1 };
    for (; *p == '0'; p++)
        c->zero = 1;
    for (; *p >= '0' && *p <= '9' && c->width < 100; p++)
        c->width = c->width * 10 + (*p - '0');
    if (*p == '.') {
        c->precision = 0;
        if (*++p == '*') {
            c->precision = -2; /* an argument */
            p++;
        }
        for (; *p >= '0' && *p <= '9' && c->precision < 10000; p++)
            c->precision = c->precision * 10 + (*p - '0');
    }
    for (;; p++) {
        if (*p == 'l' || *p == 'z' || *p == 't')
            c->longs++;
        else if (*p == 'j')
            c->longs = 2;
        else if (*p == 'h')
            c->longs--;
        else
            break;
    }
    c->type = *p;
    return *p != '\0' ? p + 1 : p;
}

static void add_digits(struct value *v, const struct conversion *c, uint64_t n, int minus)
{
    char text[128];
    int width = c->width < 100 ? c->width : 100;

    if (c->type == 'x')
        snprintf(text, sizeof text, "%0*" PRIx64, width > 0 && c->zero ? width : 1, n);
    else if (c->type == 'X')
        snprintf(text, sizeof text, "%0*" PRIX64, width > 0 && c->zero ? width : 1, n);
    else
        snprintf(text, sizeof text, "%s%0*" PRIu64, minus ? "-" : "",
                 width > 0 && c->zero ? width : 1, n);
    add(v, text, strlen(text));
    /* Padded ones are names, and JSON knows no hexadecimal. */
    v->number = c->type != 'x' && c->type != 'X' && c->width == 0;
}

static void add_float(struct value *v, const struct conversion *c, double d)
{
    char text[400];

    snprintf(text, sizeof text, "%.*f", c->precision >= 0 && c->precision < 20 ? c->precision : 6,
             d);
    add(v, text, strlen(text));
    v->number = d - d == 0; /* neither infinite nor NaN */
}

static void add_string(struct value *v, const struct conversion *c, const char *s)
{
    if (s == NULL)
        s = "(null)";
    add(v, s, c->precision >= 0 ? strnlen(s, (size_t)c->precision) : strlen(s));
    v->number = 0;
}

/* The arguments lie in a struct: a va_list that was handed down by value is spent. */
struct arguments {
    va_list list;
};

/* 0: a conversion that is not known here; the arguments behind it cannot be found. */
static int add_argument(struct value *v, struct conversion *c, struct arguments *a)
{
    if (c->precision == -2)
        c->precision = va_arg(a->list, int);
    switch (c->type) {
    case 'd':
    case 'i': {
        int64_t n = c->longs > 0 ? va_arg(a->list, int64_t) : va_arg(a->list, int);

        add_digits(v, c, n < 0 ? -(uint64_t)n : (uint64_t)n, n < 0);
        return 1;
    }
    case 'u':
    case 'x':
    case 'X':
        add_digits(v, c, c->longs > 0 ? va_arg(a->list, uint64_t) : va_arg(a->list, unsigned), 0);
        return 1;
    case 'f':
        add_float(v, c, va_arg(a->list, double));
        return 1;
    case 's':
        add_string(v, c, va_arg(a->list, const char *));
        return 1;
    case 'c': {
        char one = (char)va_arg(a->list, int);

        add(v, &one, 1);
        v->number = 0;
        return 1;
    }
    default:
        add(v, "?", 1);
        v->number = 0;
        return 0;
    }
}

static int is_integer(const uint8_t *p, size_t n)
{
    size_t i = n > 1 && p[0] == '-' ? 1 : 0;

    if (n == 0 || n > 18 || (p[i] == '0' && n > i + 1))
        return 0;
    for (; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return 0;
    }
    return 1;
}

static int hex_digit(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int is_hex_escape(const uint8_t *p, size_t n)
{
    return n >= 4 && p[0] == '\\' && p[1] == 'x' && hex_digit(p[2]) >= 0 && hex_digit(p[3]) >= 0;
}

/* What logescape made of a text becomes the text again: it is not to be escaped twice. */
static void unescape(struct value *v)
{
    int quoted = v->n >= 2 && v->text[0] == '"' && v->text[v->n - 1] == '"' && !v->cut;
    size_t end = v->n - (quoted ? 1 : 0), to = 0;

    for (size_t i = quoted ? 1 : 0; i < end; i++) {
        const uint8_t *p = &v->text[i];

        if (is_hex_escape(p, end - i)) {
            v->text[to++] = (uint8_t)(hex_digit(p[2]) << 4 | hex_digit(p[3]));
            i += 3;
        } else if (quoted && p[0] == '\\' && end - i >= 2) {
            v->text[to++] = p[1];
            i++;
        } else {
            v->text[to++] = p[0];
        }
    }
    v->n = to;
    v->quoted |= quoted;
}

/* From behind the '=' to behind the value. Returns NULL when the rest cannot be read. */
static const char *read_value(const char *p, struct value *v, struct arguments *a, int to_the_end)
{
    struct conversion c = { 0 };

    v->quoted = to_the_end || *p == '"';
    if (*p == '"' && !to_the_end)
        p++;
    while (*p != '\0' && (to_the_end || *p != (v->quoted ? '"' : ' '))) {
        size_t n = strcspn(p, v->quoted ? (to_the_end ? "%" : "\"%") : " %");

        if (n > 0 || p[1] == '%') {
            add(v, p, n > 0 ? n : 1);
            v->literal = 1;
            p += n > 0 ? n : 2;
            continue;
        }
        p = read_conversion(p + 1, &c);
        v->conversions++;
        if (!add_argument(v, &c, a))
            return NULL;
    }
    if (v->conversions == 0)
        v->number = is_integer(v->text, v->n);
    v->number =
        v->number && !v->quoted && (v->conversions == 0 || !v->literal) && v->conversions <= 1;
    if (!v->quoted && v->conversions == 1 && !v->literal && c.type == 's')
        unescape(v);
    return *p == '"' && v->quoted && !to_the_end ? p + 1 : p;
}

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
    struct arguments a;

    va_copy(a.list, ap);
    for (const char *p = fmt + strspn(fmt, " "); p != NULL && *p != '\0';) {
        size_t n = key_length(p);
        const char *key = n > 0 ? p : "text";
        struct value v;

        v.n = 0;
        v.conversions = 0;
        v.literal = v.number = v.cut = 0;
        p = read_value(n > 0 ? p + n + 1 : p, &v, &a, n == 0);
        if (n > 0 || v.n > 0)
            put_field(l, key, n > 0 ? n : strlen(key), &v);
        if (p != NULL)
            p += strspn(p, " ");
    }
    va_end(a.list);
}

void logline_string(struct logline *l, const char *key, struct view value)
{
    struct value v = { 0 };

    add(&v, (const char *)value.p, value.n);
    put_field(l, key, strlen(key), &v);
}

void logline_uint(struct logline *l, const char *key, uint64_t value)
{
    struct value v = { 0 };
    const struct conversion c = { .type = 'u' };

    add_digits(&v, &c, value, 0);
    put_field(l, key, strlen(key), &v);
}

/* ---- begin and end ---- */

static void put_time(struct logline *l, uint64_t realtime_us)
{
    time_t seconds = (time_t)(realtime_us / 1000000);
    struct tm tm = { 0 };
    char date[32], text[48];

    gmtime_r(&seconds, &tm);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof text, "%.19s.%06uZ", date, (unsigned)(realtime_us % 1000000));
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
