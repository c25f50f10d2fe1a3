#include "logescape.h"

#include <string.h>

#include "err.h"

enum { ESCAPE_MAX = 4 };

/* As \xNN; these return the length. */
static size_t escape(unsigned char c, char out[ESCAPE_MAX])
{
    static const char digits[] = "0123456789abcdef";

    out[0] = '\\';
    out[1] = 'x';
    out[2] = digits[c >> 4];
    out[3] = digits[c & 15];
    return 4;
}

static int is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static size_t escape_in_word(unsigned char c, char out[ESCAPE_MAX])
{
    if (!is_plain(c) || c == ' ')
        return escape(c, out);
    out[0] = (char)c;
    return 1;
}

static size_t escape_in_quotes(unsigned char c, char out[ESCAPE_MAX])
{
    if (c == '"' || c == '\\') {
        out[0] = '\\';
        out[1] = (char)c;
        return 2;
    }
    if (!is_plain(c))
        return escape(c, out);
    out[0] = (char)c;
    return 1;
}

const char *log_escape(const void *text, size_t n, char *out, size_t out_n)
{
    const unsigned char *p = text;
    size_t at = 0;

    if (out_n == 0)
        return out;
    for (size_t i = 0; i < n; i++) {
        char part[ESCAPE_MAX];
        size_t part_n = escape_in_word(p[i], part);

        if (part_n >= out_n - at)
            break;
        memcpy(out + at, part, part_n);
        at += part_n;
    }
    out[at] = '\0';
    return out;
}

const char *log_quote(char *out, size_t size, const char *text)
{
    static const char cut[] = "...";
    size_t n = 0;

    check(size >= 16);
    out[n++] = '"';
    for (const char *p = text; *p != '\0'; p++) {
        if (size - n < ESCAPE_MAX + sizeof cut + 1) { /* with its NUL, and the closing quote */
            memcpy(out + n, cut, sizeof cut - 1);
            n += sizeof cut - 1;
            break;
        }
        n += escape_in_quotes((unsigned char)*p, out + n);
    }
    out[n++] = '"';
    out[n] = '\0';
    return out;
}
