/*
 * utf8 - validation and repair of UTF-8 (RFC 3629: no surrogates, nothing above
 * U+10FFFF, shortest forms only).
 */
#ifndef HC_UTF8_H
#define HC_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "cleanup.h"

struct err;

int utf8_valid(struct view v); /* 1 or 0 */

/* Length of the longest valid prefix; a sequence cut off at the end is not in it. */
size_t utf8_valid_prefix(struct view v);

/* Validation of a text that comes in pieces. Start with a zeroed state. */
struct utf8_state {
    uint8_t need;   /* continuation bytes still to come */
    uint8_t lo, hi; /* range of the next one */
};
/* 1 while what was fed is the beginning of valid UTF-8, else 0 (and so for ever). */
int utf8_feed(struct utf8_state *s, struct view piece);
int utf8_complete(const struct utf8_state *s); /* 1 when the text may end here */

/*
 * Replaces each invalid sequence by U+FFFD, one for each maximal subpart, as
 * Python's errors="replace" and the WHATWG decoder do. Returns 0 when nothing
 * had to be changed: *text is the input itself, nothing was copied and out is
 * untouched. Returns 1 when the repaired text was appended to out: *text is a
 * view of it. buf's error when it does not fit (three times the input always fits).
 */
int utf8_repair(struct view in, struct buf *out, struct view *text, struct err *e) MUST_CHECK;

#endif
