#include "logvalue.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(long) == 8 && sizeof(size_t) == 8,
               "%ld, %zu and %lld take the same argument");

void logvalue_add(struct logvalue *v, const char *p, size_t n)
{
    if (n > LOGVALUE_MAX - v->n) {
        n = LOGVALUE_MAX - v->n;
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

static void add_digits(struct logvalue *v, const struct conversion *c, uint64_t n, int minus)
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
    logvalue_add(v, text, strlen(text));
    /* Padded ones are names, and JSON knows no hexadecimal. */
    v->number = c->type != 'x' && c->type != 'X' && c->width == 0;
}

void logvalue_add_uint(struct logvalue *v, uint64_t n)
{
    const struct conversion c = { .type = 'u' };

    add_digits(v, &c, n, 0);
}

static void add_float(struct logvalue *v, const struct conversion *c, double d)
{
    char text[400];

    snprintf(text, sizeof text, "%.*f", c->precision >= 0 && c->precision < 20 ? c->precision : 6,
             d);
    logvalue_add(v, text, strlen(text));
    v->number = d - d == 0; /* neither infinite nor NaN */
}

static void add_string(struct logvalue *v, const struct conversion *c, const char *s)
{
    if (s == NULL)
        s = "(null)";
    logvalue_add(v, s, c->precision >= 0 ? strnlen(s, (size_t)c->precision) : strlen(s));
    v->number = 0;
}

/* 0: a conversion that is not known here; the arguments behind it cannot be found. */
static int add_argument(struct logvalue *v, struct conversion *c, struct logvalue_args *a)
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

        logvalue_add(v, &one, 1);
        v->number = 0;
        return 1;
    }
    default:
        logvalue_add(v, "?", 1);
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
static void unescape(struct logvalue *v)
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

const char *logvalue_read(const char *p, struct logvalue *v, struct logvalue_args *a,
                          int to_the_end)
{
    struct conversion c = { 0 };

    v->quoted = to_the_end || *p == '"';
    if (*p == '"' && !to_the_end)
        p++;
    while (*p != '\0' && (to_the_end || *p != (v->quoted ? '"' : ' '))) {
        size_t n = strcspn(p, v->quoted ? (to_the_end ? "%" : "\"%") : " %");

        if (n > 0 || p[1] == '%') {
            logvalue_add(v, p, n > 0 ? n : 1);
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
