/* eventlog_own - what the files of the event log share; nobody else includes it. */
#ifndef HC_EVENTLOG_OWN_H
#define HC_EVENTLOG_OWN_H

#include <sys/types.h>

#include "eventlog.h"
#include "eventlog_sift.h"

struct segment {
    uint64_t id, version;         /* version rises when records moved inside */
    uint64_t first_seq, last_seq; /* of its records */
    size_t len;
    uint8_t *data;   /* owned; NULL while in the spool */
    size_t size;     /* allocated */
    off_t at;        /* in the spool */
    uint64_t region; /* bytes charged there, from at */
    uint64_t extent; /* bytes that nobody else uses, from at */
    struct sift_held held;
    unsigned clean; /* bits of enum sift_level: nothing goes at that level */
    uint64_t era;   /* of the log when those were found that depend on readers */
};

struct eventlog {
    int dir_fd; /* borrowed */
    struct spool_quota *quota;
    struct eventlog_limits limits;
    struct segment **list; /* owned ring-free deque: list[head .. head + count - 1], oldest first */
    size_t head, count, room;
    size_t clean[SIFT_LEVELS]; /* leading segments that are clean at that level */
    uint64_t era;              /* rises when ends that stayed are looked at again */
    uint64_t added, looked_at; /* bytes, ever; and what they were then */
    int passed;                /* an end may have been read, or its owner gone, since then */
    uint64_t held[EVENT_BULKS];
    struct eventlog_readers readers; /* its functions may be NULL */
    size_t memory;
    size_t spooled; /* segments in the file */
    int spool_fd;   /* owned; -1 until needed */
    off_t spool_end;
    uint64_t spool_used;
    int no_punch; /* the file system cannot give back space inside a file */
    uint64_t next_seq, next_id;
    uint64_t lost_before; /* a cursor below it has missed entries */
    uint64_t given_up;
    struct event_loss lost;
    int sealed; /* the last segment takes no more */
    struct {    /* a segment read back */
        uint64_t id, version;
        uint8_t *data; /* owned */
        size_t size;
    } cache;
    struct view *views; /* owned: of the entry read last */
    size_t view_room;
};

static inline struct segment *log_segment(const struct eventlog *g, size_t i)
{
    return g->list[g->head + i];
}

/* The bytes of a segment, from memory or the spool; NULL when it cannot be read.
 * Borrowed until the next call. */
const uint8_t *log_load(struct eventlog *g, const struct segment *s);

/* Brings memory below its limit: to the spool, by giving up what is least missed
 * (eventlog_sift.h), at last the oldest entries. */
void log_make_room(struct eventlog *g);

void log_remove(struct eventlog *g, size_t i); /* frees the segment and what is charged for it */

#endif
