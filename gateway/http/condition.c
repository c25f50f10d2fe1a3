#include "condition.h"

#include <openssl/evp.h>
#include <stdint.h>
#include <string.h>

#include "hex.h"
#include "httphead.h"

enum { DIGEST = 32, SHOWN = 16 };

int etag_of(struct view body, char out[ETAG_TEXT])
{
    uint8_t digest[DIGEST];
    char hex[2 * SHOWN + 1];

    if (EVP_Digest(body.n > 0 ? (const void *)body.p : "", body.n, digest, NULL, EVP_sha256(),
                   NULL) != 1)
        return 0;
    hex_encode(digest, SHOWN, hex);
    out[0] = '"';
    memcpy(out + 1, hex, sizeof hex - 1);
    memcpy(out + sizeof hex, "\"", 2);
    return 1;
}

static struct view strong_of(struct view tag)
{
    if (tag.n >= 2 && memcmp(tag.p, "W/", 2) == 0)
        return (struct view){ tag.p + 2, tag.n - 2 };
    return tag;
}

int etag_known(const struct http_head *head, const char *etag)
{
    struct http_list it = { 0 };
    struct view tag;

    while (http_list_next(head, "if-none-match", &it, &tag))
        if (view_equals(tag, "*") || view_equals(strong_of(tag), etag))
            return 1;
    return 0;
}

/* Digits up to a '-' or the end; -1: none, or too many to be an offset. */
static int64_t take_number(struct view *rest)
{
    int64_t n = 0;
    size_t i = 0;

    while (i < rest->n && rest->p[i] >= '0' && rest->p[i] <= '9') {
        if (n > INT64_MAX / 10 - 1)
            return -1;
        n = n * 10 + (rest->p[i++] - '0');
    }
    *rest = (struct view){ rest->p + i, rest->n - i };
    return i > 0 ? n : -1;
}

/* "first-", "first-last" or "-suffix". 0 when it is none of them. */
static int parse_range(struct view text, int64_t *first, int64_t *last)
{
    *first = take_number(&text);
    if (text.n == 0 || text.p[0] != '-')
        return 0;
    text = (struct view){ text.p + 1, text.n - 1 };
    *last = take_number(&text);
    return text.n == 0 && (*first >= 0 || *last >= 0) &&
           (*first < 0 || *last < 0 || *first <= *last);
}

enum range range_asked(const struct http_head *head, size_t size, const char *etag,
                       size_t *ret_offset, size_t *ret_length)
{
    static const char unit[] = "bytes=";
    struct view text = http_value(head, "range"), only_if = http_value(head, "if-range");
    int64_t first, last;

    if (http_field_count(head, "range") != 1 || text.n < sizeof unit ||
        memcmp(text.p, unit, sizeof unit - 1) != 0 ||
        (only_if.n > 0 && !view_equals(only_if, etag)))
        return RANGE_NONE;
    text = (struct view){ text.p + sizeof unit - 1, text.n - (sizeof unit - 1) };
    if (!parse_range(text, &first, &last))
        return RANGE_NONE;
    if (first < 0) { /* the last bytes */
        if (last == 0 || size == 0)
            return RANGE_UNSATISFIABLE;
        first = (uint64_t)last >= size ? 0 : (int64_t)size - last;
        last = -1;
    }
    if ((uint64_t)first >= size)
        return RANGE_UNSATISFIABLE;
    if (last < 0 || (uint64_t)last >= size)
        last = (int64_t)size - 1;
    *ret_offset = (size_t)first;
    *ret_length = (size_t)(last - first + 1);
    return RANGE_PART;
}
