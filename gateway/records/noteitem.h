/*
 * noteitem - the tail of a note: what clients have at a kernel, as a flat row of
 * items. A seat comes first, what is its follows. Pure.
 *
 * An item is u8 kind, u8 flags, u16 length (little-endian) and the bytes.
 */
#ifndef HC_NOTEITEM_H
#define HC_NOTEITEM_H

#include "buf.h"

struct err;

enum noteitem_kind {
    NOTEITEM_SEAT = 1, /* session_id */
    NOTEITEM_IDENTITY, /* of its sockets at the kernel */
    NOTEITEM_RUN,      /* header of an execute_request without an end that the client was given */
    NOTEITEM_ASK,      /* one part of an input_request without an answer */
    NOTEITEM_CLOCK,    /* runclock.h, of the run before it; only where a run has deadlines */
    NOTEITEM_SENT,     /* struct noteitem_sent, of the run before it, its clock may stand between */
    NOTEITEM_MORE,     /* u64, how many ends that the client was not given had no room */
    NOTEITEM_KINDS_END,
};

enum {
    NOTEITEM_RETURNS = 1, /* SEAT: the client gave the session_id, it may come back */

    NOTEITEM_BUSY = 1,        /* RUN: the kernel has begun it */
    NOTEITEM_STDIN = 2,       /* it may ask for input */
    NOTEITEM_UNDELIVERED = 4, /* it ended; the client had not been given the end yet */

    NOTEITEM_PART = 3,  /* ASK: mask of the part's number */
    NOTEITEM_GIVEN = 4, /* it was given to the client */
};

enum {
    NOTEITEM_HEAD = 4,
    NOTEITEM_BYTES_MAX = 4096,
    NOTEITEM_IDENTITY_MAX = 64,
    NOTEITEM_SENT_BYTES = 2 * 8,
    NOTEITEM_MORE_BYTES = 8,
};

/* Of a run: JSON has no larger integer that all read alike, and there is always a next one. */
#define NOTEITEM_NUMBER_MAX (UINT64_C(1) << 53)

struct noteitem {
    enum noteitem_kind kind;
    unsigned flags;
    struct view bytes;
};

/* What log and audit file call a run, and since when it is under way: both go on. */
struct noteitem_sent {
    uint64_t number;  /* up to NOTEITEM_NUMBER_MAX */
    uint64_t sent_us; /* CLOCK_MONOTONIC; 0: unknown */
};

/* -EMSGSIZE when out is full, -HC_ELIMIT when the item itself is too long. */
int noteitem_put(struct buf *out, const struct noteitem *i) MUST_CHECK;
int noteitem_put_sent(struct buf *out, const struct noteitem_sent *s) MUST_CHECK;
/* i: one of kind NOTEITEM_SENT that noteitem_next() gave. */
struct noteitem_sent noteitem_sent(const struct noteitem *i);
int noteitem_put_more(struct buf *out, uint64_t ends) MUST_CHECK;
uint64_t noteitem_more(const struct noteitem *i); /* likewise, of one of kind NOTEITEM_MORE */

/* 1: the next item is in *ret, and rest begins behind it; 0: there is none;
 * -HC_EPARSE. */
int noteitem_next(struct view *rest, struct noteitem *ret, struct err *e) MUST_CHECK;

/* Whether the whole row can be read and each item has its seat. */
int noteitem_check(struct view all, struct err *e) MUST_CHECK;

#endif
