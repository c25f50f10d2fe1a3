#include "utf8.h"

#include <string.h>

#include "err.h"

#define BROKEN 0xff /* utf8_state.need after an invalid byte */

/* The lead byte of a sequence: how many bytes follow it and where the first of them
 * must lie (Unicode 15, table 3-7). 0 for a byte that begins nothing. */
static int lead(uint8_t c, struct utf8_state *s)
{
    *s = (struct utf8_state){ .need = 2, .lo = 0x80, .hi = 0xbf };
    if (c >= 0xc2 && c <= 0xdf)
        s->need = 1;
    else if (c == 0xe0)
        s->lo = 0xa0; /* shorter forms exist below */
    else if (c == 0xed)
        s->hi = 0x9f; /* surrogates above */
    else if (c >= 0xe1 && c <= 0xef)
        s->need = 2;
    else if (c >= 0xf0 && c <= 0xf4) {
        s->need = 3;
        s->lo = c == 0xf0 ? 0x90 : 0x80;
        s->hi = c == 0xf4 ? 0x8f : 0xbf; /* U+10FFFF is the last */
    } else
        s->need = 0;
    return s->need > 0;
}

static size_t ascii_run(const uint8_t *p, size_t n)
{
    size_t i = 0;
    uint64_t word;

    for (; n - i >= sizeof word; i += sizeof word) {
        memcpy(&word, p + i, sizeof word);
        if (word & UINT64_C(0x8080808080808080))
            break;
    }
    while (i < n && p[i] < 0x80)
        i++;
    return i;
}

/* Returns the index of the first byte that cannot be, or n; *whole is the end of the
 * last whole sequence (0 when none ended here). s keeps what is open. */
static size_t scan(struct utf8_state *s, const uint8_t *p, size_t n, size_t *whole)
{
    size_t i = 0;

    *whole = 0;
    while (i < n) {
        if (s->need == 0) {
            i += ascii_run(p + i, n - i);
            *whole = i;
            if (i == n)
                break;
            if (!lead(p[i], s))
                return i;
        } else {
            if (p[i] < s->lo || p[i] > s->hi)
                return i;
            s->need--;
            s->lo = 0x80;
            s->hi = 0xbf;
            if (s->need == 0)
                *whole = i + 1;
        }
        i++;
    }
    return n;
}

size_t utf8_valid_prefix(struct view v)
{
    struct utf8_state s = { 0 };
    size_t whole;

    scan(&s, v.p, v.n, &whole);
    return whole;
}

int utf8_valid(struct view v)
{
    return utf8_valid_prefix(v) == v.n;
}

int utf8_feed(struct utf8_state *s, struct view piece)
{
    size_t whole;

    if (s->need != BROKEN && scan(s, piece.p, piece.n, &whole) < piece.n)
        s->need = BROKEN;
    return s->need != BROKEN;
}

int utf8_complete(const struct utf8_state *s)
{
    return s->need == 0;
}

/* Writes the repaired text to `to`, or only counts it when to is NULL. */
static size_t repair(struct view in, uint8_t *to)
{
    size_t n = 0;

    while (in.n > 0) {
        struct utf8_state s = { 0 };
        size_t whole, end = scan(&s, in.p, in.n, &whole);

        if (to != NULL)
            memcpy(to + n, in.p, whole);
        n += whole;
        if (whole < in.n) {
            if (to != NULL)
                memcpy(to + n, "\xef\xbf\xbd", 3);
            n += 3;
            end += end == whole ? 1 : 0; /* a byte that begins nothing is its own subpart */
        }
        in.p += end;
        in.n -= end;
    }
    return n;
}

int utf8_repair(struct view in, struct buf *out, struct view *text, struct err *e)
{
    size_t good = utf8_valid_prefix(in);

    if (good == in.n) {
        *text = in;
        return 0;
    }
    struct view bad = { in.p + good, in.n - good };
    size_t n = good + repair(bad, NULL), start = buf_len(out);
    int rc = buf_reserve(out, n);

    if (rc < 0)
        return err_sys(e, -rc, "repair %zu bytes of text", in.n);
    memcpy(buf_tail(out), in.p, good);
    repair(bad, buf_tail(out) + good);
    buf_commit(out, n);
    *text = (struct view){ buf_view(out).p + start, n };
    return 1;
}
