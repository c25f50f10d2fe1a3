/* jsontoken - the strings, numbers and words of a JSON text (jsonscan.h tells the
 * grammar). */
#include <string.h>

#include "err.h"
#include "jsonscan_own.h"

int json_fail(struct jsonscan_pass *s, const char *what)
{
    return err_set(s->e, HC_EPARSE, "JSON byte %zu: %s", (size_t)(s->p - s->doc), what);
}

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

static uint64_t has_zero(uint64_t w)
{
    return (w - ONES) & ~w & HIGHS;
}

/* Skips bytes of a string that stand for themselves, eight at a time: outputs of
 * many megabytes are one string. */
static void skip_plain(struct jsonscan_pass *s)
{
    while (s->end - s->p >= 8) {
        uint64_t w;

        memcpy(&w, s->p, sizeof w);
        if ((w & HIGHS) != 0 || ((w - ONES * 0x20) & ~w & HIGHS) != 0 ||
            has_zero(w ^ (ONES * '"')) != 0 || has_zero(w ^ (ONES * '\\')) != 0)
            break;
        s->p += 8;
    }
    while (s->p < s->end && *s->p >= 0x20 && *s->p < 0x80 && *s->p != '"' && *s->p != '\\')
        s->p++;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The 16 bits of \uXXXX at p, or -1 when that is not what is there. */
static int unicode_escape(const uint8_t *p, const uint8_t *end)
{
    int unit = 0;

    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(p[i]);

        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static int scan_escape(struct jsonscan_pass *s)
{
    if (s->end - s->p >= 2 && s->p[1] != '\0' && strchr("\"\\/bfnrt", s->p[1]) != NULL) {
        s->p += 2;
        return 0;
    }
    int unit = unicode_escape(s->p, s->end);
    if (unit < 0)
        return json_fail(s, "invalid escape in a string");
    s->p += 6;
    if (unit < 0xd800 || unit > 0xdfff)
        return 0;
    if (unit < 0xdc00) {
        int low = unicode_escape(s->p, s->end);

        if (low >= 0xdc00 && low <= 0xdfff) {
            s->p += 6;
            return 0;
        }
    }
    s->notes.lone_surrogates++;
    return 0;
}

/* Length of the sequence that a byte >= 0x80 begins. An invalid one is counted as
 * its maximal subpart (Unicode 3.9, U+FFFD substitution): never an ASCII byte. */
static unsigned sequence(const uint8_t *p, const uint8_t *end, int *valid)
{
    unsigned more = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : p[0] < 0xf5 ? 3 : 0;
    uint8_t lo = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t hi = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    unsigned n = 1;

    while (n <= more && p + n < end && p[n] >= lo && p[n] <= hi) {
        n++;
        lo = 0x80;
        hi = 0xbf;
    }
    *valid = more > 0 && n == more + 1;
    return n;
}

static int scan_multibyte(struct jsonscan_pass *s)
{
    while (s->p < s->end && *s->p >= 0x80) {
        int valid;
        unsigned n = sequence(s->p, s->end, &valid);

        if (!valid && !(s->rules.flags & JSONSCAN_BAD_UTF8))
            return json_fail(s, "invalid UTF-8 in a string");
        s->notes.bad_utf8 += !valid;
        s->p += n;
    }
    return 0;
}

int json_scan_string(struct jsonscan_pass *s)
{
    s->p++;
    for (;;) {
        int rc = 0;

        skip_plain(s);
        if (s->p == s->end)
            return json_fail(s, "the text ends inside a string");
        if (*s->p == '"') {
            s->p++;
            return 0;
        }
        if (*s->p == '\\')
            rc = scan_escape(s);
        else if (*s->p >= 0x80)
            rc = scan_multibyte(s);
        else
            return json_fail(s, "control character in a string");
        if (rc < 0)
            return rc;
    }
}

/* 1 and past it when the word is next. */
static int take_word(struct jsonscan_pass *s, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return 0;
    s->p += n;
    return 1;
}

static size_t skip_digits(struct jsonscan_pass *s)
{
    const uint8_t *start = s->p;

    while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        s->p++;
    return (size_t)(s->p - start);
}

int json_scan_number(struct jsonscan_pass *s, enum jsonscan_kind *ret_kind)
{
    *ret_kind = JSONSCAN_INTEGER;
    if (*s->p == '-')
        s->p++;
    if (s->p < s->end && *s->p == '0')
        s->p++;
    else if (skip_digits(s) == 0)
        return json_fail(s, "expected a digit");
    if (s->p < s->end && *s->p == '.') {
        s->p++;
        *ret_kind = JSONSCAN_REAL;
        if (skip_digits(s) == 0)
            return json_fail(s, "expected a digit after the decimal point");
    }
    if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
        s->p++;
        *ret_kind = JSONSCAN_REAL;
        if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
            s->p++;
        if (skip_digits(s) == 0)
            return json_fail(s, "expected a digit in the exponent");
    }
    return 0;
}

int json_scan_word(struct jsonscan_pass *s, enum jsonscan_kind *ret_kind)
{
    if (take_word(s, "null")) {
        *ret_kind = JSONSCAN_NULL;
    } else if (take_word(s, "true")) {
        *ret_kind = JSONSCAN_TRUE;
    } else if (take_word(s, "false")) {
        *ret_kind = JSONSCAN_FALSE;
    } else if ((s->rules.flags & JSONSCAN_NAN) &&
               (take_word(s, "NaN") || take_word(s, "Infinity") || take_word(s, "-Infinity"))) {
        *ret_kind = JSONSCAN_REAL;
        s->notes.nan_tokens++;
    } else {
        return json_fail(s, "expected a value");
    }
    return 0;
}
