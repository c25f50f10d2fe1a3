/* httpchars - character classes shared by the HTTP parsers; internal to protocol/. */
#ifndef HC_HTTPCHARS_H
#define HC_HTTPCHARS_H

#include <stdint.h>

extern const uint8_t http_token_chars[256]; /* 1 for the tchar of RFC 9110 5.6.2 */

/* What may stand in a request target. RFC 3986 allows less, but the query encode set
 * of WHATWG lets browsers send []{}|\^` as they are; none of them delimits anything here. */
static inline int http_is_target_char(uint8_t c)
{
    return c > 0x20 && c < 0x7f && c != '#' && c != '"' && c != '<' && c != '>';
}

/* VCHAR, obs-text, blank and tab: everything but control characters. */
static inline int http_is_value_char(uint8_t c)
{
    return (c >= 0x20 && c != 0x7f) || c == '\t';
}

static inline int http_is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* The value of a hexadecimal digit, or -1. */
static inline int http_hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
