/*
 * eventlog - everything one kernel said, in numbered entries: some MiB in
 * memory, then an unlinked spool file. Clients, replay and later readers are
 * cursors on it. When it is full the oldest stream text goes and leaves a marker
 * that counts what went; the other entries stay until nothing else is left to
 * give up. Adding never fails and never waits for a reader.
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
    EVENT_KEEP,   /* replies, status, comm, displays */
    EVENT_STREAM, /* given up first */
    EVENT_MARKER, /* made by the log: stream entries were here */
};

enum { EVENT_PARTS = 4 }; /* header, parent_header, metadata, content */

struct event {
    uint64_t seq; /* of the entry; 0 when adding */
    enum event_kind kind;
    enum jmsg_channel channel;
    uint64_t addressee;             /* seat that this is for; 0: all */
    struct view parts[EVENT_PARTS]; /* marker: the parent_header alone */
    const struct view *buffers;
    size_t buffer_count;
    uint64_t dropped, dropped_bytes; /* marker: entries and text bytes that went */
};

/* A place between two entries. Plain data: copied and kept freely. */
struct eventlog_cursor {
    uint64_t seq; /* of the next entry wanted */
    /* Where that was seen last; a hint. */
    uint64_t segment, version;
    size_t offset;
};

/* dir_fd and quota are borrowed for the log's life. The spool file is made when
 * it is needed. limits NULL: the default. */
struct eventlog *eventlog_new(int dir_fd, struct spool_quota *quota,
                              const struct eventlog_limits *limits);
struct eventlog *eventlog_free(struct eventlog *g);

/* Copies the event; returns its number. What cannot be kept for want of memory is
 * counted in a marker. */
uint64_t eventlog_add(struct eventlog *g, const struct event *in);

/* The cursor behind the last entry. */
struct eventlog_cursor eventlog_end(const struct eventlog *g);

/* 1: the next entry is in *ret and c is behind it; 0: none yet; -HC_EGONE: what
 * c wanted was given up beyond its stream text. Views are borrowed until the
 * next call on the log. */
int eventlog_read(struct eventlog *g, struct eventlog_cursor *c, struct event *ret) MUST_CHECK;

struct eventlog_use {
    size_t memory;
    uint64_t spool;
    uint64_t entries_given_up, stream_dropped, stream_bytes_dropped;
    unsigned segments;
};
struct eventlog_use eventlog_use(const struct eventlog *g);

#endif
