/* eventlog_own - what the files of the event log share; nobody else includes it. */
#ifndef HC_EVENTLOG_OWN_H
#define HC_EVENTLOG_OWN_H

#include <sys/types.h>

#include "eventlog.h"

/* An entry as it lies in a segment, followed by the sizes of the buffers (u32
 * each), the parts and the buffers; size is rounded up to 8. */
struct record {
    uint32_t size;
    uint8_t kind, channel;
    uint16_t buffer_count;
    uint64_t seq, addressee;
    uint64_t dropped, dropped_bytes;
    uint32_t part[EVENT_PARTS];
};

struct segment {
    uint64_t id, version;         /* version rises when records moved inside */
    uint64_t first_seq, last_seq; /* of its records */
    size_t len;
    uint8_t *data;   /* owned; NULL while in the spool */
    size_t size;     /* allocated */
    off_t at;        /* in the spool */
    uint64_t region; /* bytes charged there, from at */
    uint64_t extent; /* bytes that nobody else uses, from at */
    int has_stream;
};

struct eventlog {
    int dir_fd; /* borrowed */
    struct spool_quota *quota;
    struct eventlog_limits limits;
    struct segment **list; /* owned ring-free deque: list[head .. head + count - 1], oldest first */
    size_t head, count, room;
    size_t clean; /* leading segments that hold no stream */
    size_t memory;
    size_t spooled; /* segments in the file */
    int spool_fd;   /* owned; -1 until needed */
    off_t spool_end;
    uint64_t spool_used;
    int no_punch; /* the file system cannot give back space inside a file */
    uint64_t next_seq, next_id;
    uint64_t lost_before; /* a cursor below it has missed entries */
    uint64_t given_up, stream_dropped, stream_bytes;
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

/* Brings memory below its limit: to the spool, by giving up stream text, at last
 * by giving up the oldest entries. */
void log_make_room(struct eventlog *g);

void log_remove(struct eventlog *g, size_t i); /* frees the segment and what is charged for it */

#endif
