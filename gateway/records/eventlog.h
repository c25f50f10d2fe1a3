/*
 * eventlog - everything one kernel said, in numbered entries: some MiB in
 * memory, then an unlinked spool file. Clients, replay and later readers are
 * cursors on it. When it is full, what all readers have passed goes first, then
 * bulk (text or displays, whichever holds more room, oldest first), then the rest
 * but for the ends that a seat waits for. What goes leaves a marker in its place
 * that counts it. Adding never fails and never waits for a reader.
 */
#ifndef HC_EVENTLOG_H
#define HC_EVENTLOG_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "jmsg.h"

struct eventlog;

/* Bytes of spool files of one principal, over all its kernels. */
struct spool_quota {
    uint64_t used, max;
};

struct eventlog_limits {
    size_t memory;  /* bytes of entries kept in memory */
    uint64_t spool; /* bytes of the spool file */
    size_t segment; /* entries move to the file, and are read back, in pieces of about this size */
};
extern const struct eventlog_limits eventlog_limits_default; /* 4 MiB, 256 MiB, 64 KiB */

enum event_kind {
    EVENT_STREAM,  /* text: bulk */
    EVENT_DISPLAY, /* displays, results: bulk */
    EVENT_KEEP,    /* comm, input, status, errors: after all bulk */
    EVENT_END,     /* a reply, or the idle of a request: stays as long as its owner waits for it */
    EVENT_MARKER,  /* made by the log: entries were here */
    EVENT_CUT,     /* made by the log: a long reply, of which the headers are left */
};

enum event_lost { LOST_STREAM, LOST_DISPLAY, LOST_OTHER, EVENT_LOSTS };

struct event_loss { /* what was given up */
    uint64_t count[EVENT_LOSTS];
    uint64_t bytes; /* of contents and buffers */
};

enum { EVENT_PARTS = 4 }; /* header, parent_header, metadata, content */

struct event {
    uint64_t seq; /* of the entry; 0 when adding */
    enum event_kind kind;
    enum jmsg_channel channel;
    uint64_t addressee;             /* seat that this is for; 0: all */
    uint64_t owner;                 /* EVENT_END: the seat that asked; 0: nobody is known to */
    struct view parts[EVENT_PARTS]; /* marker: the parent_header alone */
    const struct view *buffers;
    size_t buffer_count;
    struct event_loss lost; /* of a marker or a cut reply */
};

/* A place between two entries. Plain data: copied and kept freely. */
struct eventlog_cursor {
    uint64_t seq; /* of the next entry wanted */
    /* Where that was seen last; a hint. */
    uint64_t segment, version;
    size_t offset;
};

/* Who reads: asked only while room is made. */
struct eventlog_readers {
    void *arg; /* borrowed */
    /* A cursor wants an entry behind after, up to and with to: what lies on both
     * sides of it is never counted in one marker. */
    int (*between)(void *arg, uint64_t after, uint64_t to);
    /* That seat is there, or may come back, and was not given entry seq. */
    int (*awaits)(void *arg, uint64_t owner, uint64_t seq);
    uint64_t (*floor)(void *arg); /* no cursor wants an entry below it */
};

/* dir_fd and quota are borrowed for the log's life. The spool file is made when
 * it is needed. limits NULL: the default. */
struct eventlog *eventlog_new(int dir_fd, struct spool_quota *quota,
                              const struct eventlog_limits *limits);
struct eventlog *eventlog_free(struct eventlog *g);
/* Without: nothing is known to be passed, and every end is waited for. */
void eventlog_set_readers(struct eventlog *g, const struct eventlog_readers *r);
/* Somebody left who had not read all: ends of his need not stay. */
void eventlog_reader_left(struct eventlog *g);

/* Copies the event; returns its number. What cannot be kept for want of memory is
 * counted in a marker. */
uint64_t eventlog_add(struct eventlog *g, const struct event *in);

/* The cursor behind the last entry. */
struct eventlog_cursor eventlog_end(const struct eventlog *g);

/* 1: the next entry is in *ret and c is behind it; 0: none yet; -HC_EGONE: what
 * c wanted is gone without a marker. Views are borrowed until the
 * next call on the log. */
int eventlog_read(struct eventlog *g, struct eventlog_cursor *c, struct event *ret) MUST_CHECK;

struct eventlog_use {
    size_t memory;
    uint64_t spool;
    uint64_t entries_given_up; /* without a marker */
    struct event_loss lost;
    unsigned segments;
};
struct eventlog_use eventlog_use(const struct eventlog *g);

#endif
