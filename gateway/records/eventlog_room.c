/* How an event log stays within its bounds: moving segments to the spool file,
 * and giving up entries when neither memory nor file has room. */
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
    for (unsigned kind = 0; kind < EVENT_BULKS; kind++)
        g->held[kind] -= s->held.bulk[kind];
    free(s->data);
    free(s);
    if (i == 0)
        g->head++;
    else
        memmove(&g->list[g->head + i], &g->list[g->head + i + 1],
                (g->count - i - 1) * sizeof *g->list);
    g->count--;
    for (unsigned level = 0; level < SIFT_LEVELS; level++)
        g->clean[level] -= g->clean[level] > i;
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

/* ---- what need not be read again ---- */

/* A full log is sifted once for each level, not once for each segment that is added: what stayed
 * then stays for good, but for ends whose reader has read them or is gone. */
static const unsigned for_readers = 1u << SIFT_KEEP | 1u << SIFT_CUT;

static unsigned clean_at(const struct eventlog *g, const struct segment *s)
{
    return s->era == g->era ? s->clean : s->clean & ~for_readers;
}

static void set_clean(const struct eventlog *g, struct segment *s, unsigned levels)
{
    s->clean = levels;
    s->era = g->era;
}

/* Readers come and go as they like, and each look costs a read of the whole log: it is paid for
 * by what was added since the last one. */
static void look_again(struct eventlog *g)
{
    enum { SHARE = 8 };

    if (!g->passed || (g->era > 0 && g->added - g->looked_at < (g->memory + g->spool_used) / SHARE))
        return;
    g->passed = 0;
    g->looked_at = g->added;
    g->era++;
    g->clean[SIFT_KEEP] = g->clean[SIFT_CUT] = 0;
}

/* ---- giving up ---- */

/* Puts the sifted bytes in the place of s. 0 when the spool refuses. */
static int replace(struct eventlog *g, struct segment *s, struct sift *o)
{
    if (s->data != NULL) {
        uint8_t *data = realloc(o->out, o->len > 0 ? o->len : 1);
        g->memory -= s->size;
        free(s->data);
        s->data = data != NULL ? data : o->out;
        o->out = NULL;
        s->size = o->len;
        g->memory += s->size;
    } else {
        uint64_t region = round_block(o->len);
        if (region > s->extent || write_at(g->spool_fd, o->out, o->len, s->at) < 0)
            return 0;
        if (region > s->region || punch(g, s, region))
            charge(g, s, region);
    }
    s->len = o->len;
    s->version++;
    for (unsigned kind = 0; kind < EVENT_BULKS; kind++)
        g->held[kind] = g->held[kind] - s->held.bulk[kind] + o->held.bulk[kind];
    s->held = o->held;
    return 1;
}

static void count_lost(struct eventlog *g, const struct event_loss *lost)
{
    for (unsigned i = 0; i < EVENT_LOSTS; i++) {
        g->lost.count[i] += lost->count[i];
        metrics_add(METRIC_DROPPED, METRIC_GIVEN_UP, 0, 0, lost->count[i]);
    }
    g->lost.bytes += lost->bytes;
}

/* Puts what is left of list[i] behind the segment before it when both fit into
 * one: a long flood would else leave a thread of tiny segments, and a marker in
 * each. */
static int join(struct eventlog *g, size_t i, const struct sift *rest)
{
    if (i == 0)
        return 0;
    struct segment *s = log_segment(g, i), *p = log_segment(g, i - 1);
    if (p->len + rest->len > g->limits.segment)
        return 0;
    const uint8_t *data = log_load(g, p);
    uint8_t *out = malloc(p->len + rest->len + 1);
    struct sift o;
    int done = 0;
    sift_begin(&o, rest->level, &g->readers, out);
    if (data != NULL && out != NULL) {
        sift_add(&o, data, p->len);
        sift_add(&o, rest->out, rest->len);
        done = replace(g, p, &o);
    }
    free(o.out);
    if (!done)
        return 0;
    count_lost(g, &o.lost);
    p->last_seq = s->last_seq;
    set_clean(g, p, (clean_at(g, p) & clean_at(g, s)) | 1u << rest->level);
    log_remove(g, i);
    for (unsigned level = 0; level < SIFT_LEVELS; level++) {
        if (!(p->clean & 1u << level) && g->clean[level] >= i)
            g->clean[level] = i - 1; /* it has entries now that were not looked at */
    }
    return 1;
}

static int put_back(struct eventlog *g, size_t i, struct sift *o)
{
    if (o->len == 0) { /* all of it was for nobody */
        log_remove(g, i);
        return 1;
    }
    return join(g, i, o) || replace(g, log_segment(g, i), o);
}

/* Takes out of list[i] what goes at that level; 0 when that gave nothing back. */
static int compact(struct eventlog *g, size_t i, enum sift_level level)
{
    struct segment *s = log_segment(g, i);
    uint64_t before = g->memory + g->spool_used;
    uint8_t *out = malloc(s->len);
    struct sift o;

    /* Nothing would be won in a file that gives no blocks back. */
    const uint8_t *data = out != NULL && (s->data != NULL || !g->no_punch) ? log_load(g, s) : NULL;
    if (data == NULL) {
        free(out);
        return 0;
    }
    sift_begin(&o, level, &g->readers, out);
    sift_add(&o, data, s->len);
    int done = o.len < s->len && put_back(g, i, &o);
    if (done)
        count_lost(g, &o.lost);
    free(o.out);
    return done && g->memory + g->spool_used < before;
}

/* Gives up the oldest that goes at that level. 0 when that frees nothing. */
static int drop_level(struct eventlog *g, enum sift_level level)
{
    while (g->clean[level] + 1 < g->count) { /* nobody had a turn yet to read the newest */
        size_t i = g->clean[level];
        struct segment *s = log_segment(g, i);
        unsigned clean = clean_at(g, s), bit = 1u << level;
        set_clean(g, s, clean | bit); /* it will be */
        if (clean & bit || !(s->held.kinds & sift_kinds(level)))
            g->clean[level]++;
        else if (compact(g, i, level))
            return 1;
    }
    return 0;
}

static int drop_least_missed(struct eventlog *g)
{
    look_again(g);
    for (unsigned turn = 0; turn < SIFT_LEVELS; turn++) {
        if (drop_level(g, sift_order(g->held, turn)))
            return 1;
    }
    return 0;
}

static void drop_first(struct eventlog *g)
{
    uint64_t next = log_segment(g, 0)->last_seq + 1;

    if (g->lost_before < next)
        g->lost_before = next;
    log_remove(g, 0);
}

/* What everybody has read. */
static int drop_passed(struct eventlog *g)
{
    if (g->readers.floor == NULL || g->count < 2 ||
        log_segment(g, 0)->last_seq >= g->readers.floor(g->readers.arg))
        return 0;
    drop_first(g);
    return 1;
}

static void drop_oldest(struct eventlog *g)
{
    g->given_up++;
    drop_first(g);
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

/* All that is above the limit is one large entry that came just now: it is offered
 * once, in memory, and the ends of others do not go for it. */
static int only_newest_is_above(const struct eventlog *g)
{
    const struct segment *s = log_segment(g, g->count - 1);

    if (g->count == 1)
        return 1;
    return s->data != NULL && s->len > g->limits.segment && g->memory - s->size <= g->limits.memory;
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
        if (move_out(g, s) || drop_passed(g) || drop_least_missed(g))
            continue;
        if (only_newest_is_above(g))
            return;
        drop_oldest(g);
    }
}
