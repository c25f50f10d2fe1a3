/*
 * condition - what a client has already: entity tags, If-None-Match, Range
 * (RFC 9110 8.8.3, 13.1, 14). Pure but for the hash.
 */
#ifndef HC_CONDITION_H
#define HC_CONDITION_H

#include <stddef.h>

#include "buf.h"

struct http_head;

enum { ETAG_TEXT = 36 }; /* two quotes, 32 hexadecimal digits, NUL */

/* A strong tag of these bytes. 0 when libcrypto fails: then there is none. */
int etag_of(struct view body, char out[ETAG_TEXT]);

/* 1 when If-None-Match names the tag, or is "*". Compared weakly, as 13.1.2 asks. */
int etag_known(const struct http_head *head, const char *etag);

enum range { RANGE_NONE, RANGE_PART, RANGE_UNSATISFIABLE };

/*
 * The one range that is asked for of size bytes: offset and length for RANGE_PART.
 * Several ranges, other units, nonsense, and an If-Range that is not this tag all mean
 * RANGE_NONE: the whole is the answer to each of them.
 */
enum range range_asked(const struct http_head *head, size_t size, const char *etag,
                       size_t *ret_offset, size_t *ret_length);

#endif
