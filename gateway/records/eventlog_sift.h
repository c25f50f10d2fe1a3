/*
 * eventlog_sift - the bytes of log entries, and what is given up of them in which
 * order. Pure: bytes in, fewer bytes out, a marker where something was.
 */
#ifndef HC_EVENTLOG_SIFT_H
#define HC_EVENTLOG_SIFT_H

#include <stddef.h>
#include <stdint.h>

#include "eventlog.h"

/* An entry as it lies in a segment, followed by the sizes of the buffers (u32
 * each), the parts and the buffers; size is rounded up to 8. */
struct record {
    uint32_t size;
    uint8_t kind, channel;
    uint16_t buffer_count;
    uint64_t seq, addressee, owner;
    struct event_loss lost;
    uint32_t part[EVENT_PARTS];
};

#define EVENT_BULKS 2 /* EVENT_STREAM and EVENT_DISPLAY */

struct sift_held {  /* what some records are */
    unsigned kinds; /* bits of enum event_kind */
    uint64_t bulk[EVENT_BULKS];
};
void sift_note(struct sift_held *held, enum event_kind kind, size_t size);

enum sift_level {
    SIFT_STREAM,  /* text alone */
    SIFT_DISPLAY, /* displays alone */
    SIFT_KEEP,    /* all but the ends that somebody waits for */
    SIFT_CUT,     /* likewise, and of long replies all but the headers */
    SIFT_LEVELS,
};
enum { SIFT_CUT_MIN = 4096 }; /* shorter replies stay whole */

/* Kinds of which something may go at that level. */
unsigned sift_kinds(enum sift_level level);
/* The order in which levels are tried: the bulk that holds more room first. */
enum sift_level sift_order(const uint64_t bulk[EVENT_BULKS], unsigned turn);

struct sift {
    enum sift_level level;
    const struct eventlog_readers *readers;
    uint8_t *out; /* borrowed: as large as all that is put in, which never grows */
    size_t len;
    size_t gap; /* offset of the markers since the last entry that stayed; len: none */
    struct sift_held held;
    struct event_loss lost; /* by this sifting, not before */
};
void sift_begin(struct sift *s, enum sift_level level, const struct eventlog_readers *readers,
                uint8_t *out);
/* Whole records, in order; may be called again with those that follow. */
void sift_add(struct sift *s, const uint8_t *data, size_t len);

#endif
