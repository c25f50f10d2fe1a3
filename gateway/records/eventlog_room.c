/* How an event log stays within its bounds: moving segments to the spool file,
 * and giving up stream text when neither memory nor file has room. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "eventlog_own.h"
#include "log.h"
#include "metrics.h"

enum { BLOCK = 4096 }; /* what file systems charge by */

static uint64_t round_block(uint64_t n)
{
    return (n + BLOCK - 1) / BLOCK * BLOCK;
}

static void charge(struct eventlog *g, struct segment *s, uint64_t region)
{
    g->spool_used += region - s->region;
    g->quota->used += region - s->region;
    s->region = region;
}

/* Gives back the blocks of [at + keep, at + region). Returns 0 when the file
 * system cannot. */
static int punch(struct eventlog *g, const struct segment *s, uint64_t keep)
{
    if (keep >= s->region)
        return 1;
    if (!g->no_punch && fallocate(g->spool_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  s->at + (off_t)keep, (off_t)(s->region - keep)) == 0)
        return 1;
    if (!g->no_punch)
        log_warn("spool_punch", "error=\"%s\"", strerror(errno));
    g->no_punch = 1;
    return 0;
}

void log_remove(struct eventlog *g, size_t i)
{
    struct segment *s = log_segment(g, i);

    if (s->data != NULL) {
        g->memory -= s->size;
    } else {
        g->spooled--;
        if (punch(g, s, 0))
            charge(g, s, 0);
    }
    if (g->spooled == 0 && g->spool_end > 0 && ftruncate(g->spool_fd, 0) == 0) {
        /* Starts anew: also the way back where holes cannot be punched. */
        g->quota->used -= g->spool_used;
        g->spool_used = 0;
        g->spool_end = 0;
    }
    free(s->data);
    free(s);
    if (i == 0)
        g->head++;
    else
        memmove(&g->list[g->head + i], &g->list[g->head + i + 1],
                (g->count - i - 1) * sizeof *g->list);
    g->count--;
    if (g->clean > i)
        g->clean--;
}

static int open_spool(struct eventlog *g)
{
    if (g->spool_fd >= 0)
        return 0;
    g->spool_fd = openat(g->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (g->spool_fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
        /* A file system without O_TMPFILE: make a name and take it away again. */
        char name[64];
        snprintf(name, sizeof name, "spool-%p", (void *)g);
        g->spool_fd =
            openat(g->dir_fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (g->spool_fd >= 0)
            unlinkat(g->dir_fd, name, 0);
    }
    return g->spool_fd < 0 ? -errno : 0;
}

static int write_at(int fd, const uint8_t *p, size_t n, off_t at)
{
    while (n > 0) {
        ssize_t done = pwrite(fd, p, n, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        p += done;
        n -= (size_t)done;
        at += done;
    }
    return 0;
}

/* 1 when the segment lies in the spool now and its memory is free. */
static int move_out(struct eventlog *g, struct segment *s)
{
    static struct log_limit limit;
    uint64_t region = round_block(s->len);

    if (g->spool_used + region > g->limits.spool || g->quota->used + region > g->quota->max)
        return 0;
    int rc = open_spool(g);
    if (rc == 0)
        rc = write_at(g->spool_fd, s->data, s->len, g->spool_end);
    if (rc < 0) {
        metrics_count(METRIC_SPOOL_FAILURES, 0);
        /* The disk is full or the file at its end: the log lives on in memory. */
        if (log_allowed(&limit, 3))
            log_warn("spool_write", "error=\"%s\"", strerror(-rc));
        return 0;
    }
    s->at = g->spool_end;
    s->extent = region;
    g->spooled++;
    g->spool_end += (off_t)region;
    charge(g, s, region);
    g->memory -= s->size;
    free(s->data);
    s->data = NULL;
    s->size = 0;
    return 1;
}

/* ---- giving up stream text ---- */

struct out {
    uint8_t *data; /* owned; as large as the input, which never grows */
    size_t len;
    size_t last; /* offset of the last record when it is a marker, else SIZE_MAX */
};

/* Parts come in order: header, then parent_header; a marker has the latter alone. */
static struct view parent_of(const uint8_t *at)
{
    struct record r;

    memcpy(&r, at, sizeof r);
    const uint8_t *p = at + sizeof r + r.buffer_count * sizeof(uint32_t);
    return (struct view){ p + r.part[0], r.part[1] };
}

static int same(struct view a, struct view b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static void add_keep(struct out *o, const uint8_t *at, size_t n)
{
    memcpy(o->data + o->len, at, n);
    o->len += n;
    o->last = SIZE_MAX;
}

/* Adds what a stream record or a marker stands for to the marker at the end of
 * out, or makes one. It holds the parent alone, so it fits where the record was. */
static void add_dropped(struct out *o, const uint8_t *at, const struct record *r)
{
    struct view parent = parent_of(at);
    uint64_t dropped = r->kind == EVENT_MARKER ? r->dropped : 1;
    uint64_t bytes = r->kind == EVENT_MARKER ? r->dropped_bytes : r->part[3];
    struct record m;

    if (o->last != SIZE_MAX && same(parent_of(o->data + o->last), parent)) {
        memcpy(&m, o->data + o->last, sizeof m);
        m.seq = r->seq;
        m.dropped += dropped;
        m.dropped_bytes += bytes;
        memcpy(o->data + o->last, &m, sizeof m);
        return;
    }
    size_t size = (sizeof m + parent.n + 7) & ~(size_t)7;
    m = (struct record){
        .size = (uint32_t)size,
        .kind = EVENT_MARKER,
        .channel = JMSG_IOPUB,
        .seq = r->seq,
        .dropped = dropped,
        .dropped_bytes = bytes,
        .part = { 0, (uint32_t)parent.n, 0, 0 },
    };
    o->last = o->len;
    memset(o->data + o->len, 0, size);
    memcpy(o->data + o->len, &m, sizeof m);
    if (parent.n > 0)
        memcpy(o->data + o->len + sizeof m, parent.p, parent.n);
    o->len += size;
}

static void sift(struct out *o, const uint8_t *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        struct record r;
        memcpy(&r, data + at, sizeof r);
        if (r.kind == EVENT_KEEP)
            add_keep(o, data + at, r.size);
        else
            add_dropped(o, data + at, &r);
        at += r.size;
    }
}

static void count_dropped(struct eventlog *g, const uint8_t *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        struct record r;
        memcpy(&r, data + at, sizeof r);
        if (r.kind == EVENT_STREAM) {
            g->stream_dropped++;
            metrics_count(METRIC_DROPPED, METRIC_GIVEN_UP);
            g->stream_bytes += r.part[3];
        }
        at += r.size;
    }
}

/* Puts the sifted bytes in the place of s. 0 when the spool refuses. */
static int replace(struct eventlog *g, struct segment *s, struct out *o)
{
    if (s->data != NULL) {
        uint8_t *data = realloc(o->data, o->len);
        g->memory -= s->size;
        free(s->data);
        s->data = data != NULL ? data : o->data;
        o->data = NULL;
        s->size = o->len;
        g->memory += s->size;
    } else {
        uint64_t region = round_block(o->len);
        if (region > s->extent || write_at(g->spool_fd, o->data, o->len, s->at) < 0)
            return 0;
        if (region > s->region || punch(g, s, region))
            charge(g, s, region);
    }
    s->len = o->len;
    s->version++;
    s->has_stream = 0;
    return 1;
}

/* Puts what is left of list[i] behind the clean segment before it when both fit
 * into one: a long flood would else leave a thread of tiny segments, and a marker
 * in each. */
static int join(struct eventlog *g, size_t i, const struct out *rest)
{
    if (i == 0)
        return 0;
    struct segment *s = log_segment(g, i), *p = log_segment(g, i - 1);
    if (p->has_stream || p->len + rest->len > g->limits.segment)
        return 0;
    const uint8_t *data = log_load(g, p);
    struct out o = { .data = malloc(p->len + rest->len), .last = SIZE_MAX };
    int done = 0;
    if (data != NULL && o.data != NULL) {
        sift(&o, data, p->len);
        sift(&o, rest->data, rest->len);
        done = replace(g, p, &o);
    }
    free(o.data);
    if (done) {
        p->last_seq = s->last_seq;
        log_remove(g, i);
    }
    return done;
}

/* Takes the stream text out of list[i]; 0 when that gave nothing back. */
static int compact(struct eventlog *g, size_t i)
{
    struct segment *s = log_segment(g, i);
    uint64_t before = g->memory + g->spool_used;
    struct out o = { .data = malloc(s->len), .last = SIZE_MAX };

    /* Nothing would be won in a file that gives no blocks back. */
    const uint8_t *data =
        o.data != NULL && (s->data != NULL || !g->no_punch) ? log_load(g, s) : NULL;
    if (data == NULL) {
        free(o.data);
        return 0;
    }
    sift(&o, data, s->len);
    count_dropped(g, data, s->len);
    int done = join(g, i, &o) || replace(g, s, &o);
    free(o.data);
    return done && g->memory + g->spool_used < before;
}

/* Gives up the oldest stream text there is. 0 when that frees nothing. */
static int drop_stream(struct eventlog *g)
{
    while (g->clean + 1 < g->count) { /* nobody had a turn yet to read the newest */
        size_t i = g->clean;
        if (!log_segment(g, i)->has_stream) {
            g->clean++;
            continue;
        }
        if (compact(g, i))
            return 1;
        g->clean = i + 1;
    }
    return 0;
}

static void drop_oldest(struct eventlog *g)
{
    struct segment *s = log_segment(g, 0);

    g->lost_before = s->last_seq + 1;
    g->given_up++;
    log_remove(g, 0);
}

static struct segment *oldest_in_memory(struct eventlog *g)
{
    /* Those in the spool come first, but for the few that it refused. */
    for (size_t i = 0; i < g->count; i++) {
        struct segment *s = log_segment(g, i);
        if (s->data != NULL && (i + 1 < g->count || g->sealed))
            return s;
    }
    return NULL;
}

void log_make_room(struct eventlog *g)
{
    while (g->memory > g->limits.memory && g->count > 0) {
        struct segment *s = oldest_in_memory(g);
        if (s == NULL) {
            /* Only the last segment is in memory and it alone is too large. */
            g->sealed = 1;
            continue;
        }
        if (move_out(g, s) || drop_stream(g))
            continue;
        if (g->count == 1)
            return; /* the spool refuses: what came just now is offered once, in memory */
        drop_oldest(g);
    }
}
