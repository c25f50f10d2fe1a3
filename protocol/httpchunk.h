/*
 * httpchunk - decoder of the chunked transfer coding (RFC 9112 7.1). Owns no
 * memory: data comes out as views of the input.
 *
 * Chunk extensions are skipped and trailer fields are checked and dropped, both
 * bounded over the whole body: unbounded ones were an attack on several servers
 * (CVE-2023-39326, CVE-2024-22019). Trailers that would speak about the framing
 * (RFC 9110 6.5.1 forbids them) are refused: nobody sends them in good faith.
 */
#ifndef HC_HTTPCHUNK_H
#define HC_HTTPCHUNK_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "cleanup.h"

struct err;

/* Lives in its owner; only the functions below touch the fields. */
struct httpchunk {
    int state;
    uint64_t left;   /* bytes of the current chunk to come; the size while its digits are read */
    uint64_t room;   /* bytes that the body may still have */
    unsigned digits; /* of the current chunk size */
    unsigned extensions; /* bytes of extensions so far */
    unsigned trailers;   /* bytes of trailers so far */
    unsigned name_len;   /* of the present trailer's name */
    char name[20];       /* its beginning */
};

/* max_body bounds the decoded bytes of the body. */
void httpchunk_init(struct httpchunk *c, uint64_t max_body);

/*
 * Takes up to len bytes; *used says how many and *data is what they held of the
 * body (a view of `in`, perhaps empty; at most one run per call, so call again
 * while *used < len). Returns 1 at the end of the body: the bytes behind *used
 * belong to the next request. 0 to go on, -HC_EPARSE for malformed input (400),
 * -HC_ELIMIT for a body above max_body (413) or too many extension or trailer
 * bytes (431); httpchunk_status() says which. A refusal is final; after the end
 * there must be no further call.
 */
int httpchunk_feed(struct httpchunk *c, const void *in, size_t len, size_t *used, struct view *data,
                   struct err *e) MUST_CHECK;
int httpchunk_status(const struct httpchunk *c); /* 400, 413 or 431; 0 while not refused */

#endif
