#include "eventlog.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "err.h"
#include "eventlog_own.h"
#include "log.h"
#include "metrics.h"

const struct eventlog_limits eventlog_limits_default = {
    .memory = 4 << 20,
    .spool = 256 << 20,
    .segment = 64 << 10,
};

enum { SEGMENT_FIRST = 4 * 1024 }; /* a quiet kernel's log costs no more */

struct eventlog *eventlog_new(int dir_fd, struct spool_quota *quota,
                              const struct eventlog_limits *limits)
{
    struct eventlog *g = xcalloc(1, sizeof *g);

    g->dir_fd = dir_fd;
    g->quota = quota;
    g->limits = limits != NULL ? *limits : eventlog_limits_default;
    g->spool_fd = -1;
    g->next_seq = 1;
    return g;
}

struct eventlog *eventlog_free(struct eventlog *g)
{
    if (g == NULL)
        return NULL;
    while (g->count > 0)
        log_remove(g, g->count - 1);
    /* Where holes cannot be punched the whole file was charged. */
    g->quota->used -= g->spool_used;
    closep(&g->spool_fd);
    free(g->list);
    free(g->cache.data);
    free(g->views);
    free(g);
    return NULL;
}

void eventlog_set_readers(struct eventlog *g, const struct eventlog_readers *r)
{
    g->readers = *r;
}

void eventlog_reader_left(struct eventlog *g)
{
    g->passed = 1;
}

/* ---- adding ---- */

static size_t round8(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

static size_t record_size(const struct event *in)
{
    size_t n = sizeof(struct record) + in->buffer_count * sizeof(uint32_t);

    for (unsigned i = 0; i < EVENT_PARTS; i++)
        n += in->parts[i].n;
    for (size_t i = 0; i < in->buffer_count; i++)
        n += in->buffers[i].n;
    return round8(n);
}

static void put(uint8_t **at, const void *p, size_t n)
{
    if (n > 0)
        memcpy(*at, p, n);
    *at += n;
}

static void write_record(uint8_t *at, const struct event *in, uint64_t seq, size_t size)
{
    struct record r = {
        .size = (uint32_t)size,
        .kind = (uint8_t)in->kind,
        .channel = (uint8_t)in->channel,
        .buffer_count = (uint16_t)in->buffer_count,
        .seq = seq,
        .addressee = in->addressee,
        .owner = in->owner,
        .lost = in->lost,
    };
    uint8_t *end = at + size;

    for (unsigned i = 0; i < EVENT_PARTS; i++)
        r.part[i] = (uint32_t)in->parts[i].n;
    put(&at, &r, sizeof r);
    for (size_t i = 0; i < in->buffer_count; i++) {
        uint32_t n = (uint32_t)in->buffers[i].n;
        put(&at, &n, sizeof n);
    }
    for (unsigned i = 0; i < EVENT_PARTS; i++)
        put(&at, in->parts[i].p, in->parts[i].n);
    for (size_t i = 0; i < in->buffer_count; i++)
        put(&at, in->buffers[i].p, in->buffers[i].n);
    memset(at, 0, (size_t)(end - at));
}

static int push_segment(struct eventlog *g, struct segment *s)
{
    if (g->head + g->count == g->room) {
        if (g->head > g->room / 2) {
            memmove(g->list, g->list + g->head, g->count * sizeof *g->list);
            g->head = 0;
        } else {
            size_t room = g->room > 0 ? 2 * g->room : 16;
            struct segment **list = realloc(g->list, room * sizeof *list);
            if (list == NULL)
                return -ENOMEM;
            g->list = list;
            g->room = room;
        }
    }
    g->list[g->head + g->count++] = s;
    return 0;
}

/* Memory for size more bytes in the last segment, growing it up to the segment
 * size; NULL when it is full or there is no memory. */
static uint8_t *grow_last(struct eventlog *g, size_t size)
{
    if (g->count == 0 || g->sealed)
        return NULL;
    struct segment *s = log_segment(g, g->count - 1);
    if (s->data == NULL ||
        s->len + size > (s->size > g->limits.segment ? s->size : g->limits.segment))
        return NULL;
    if (s->len + size > s->size) {
        size_t want = s->size;
        while (want < s->len + size)
            want *= 2;
        uint8_t *data = realloc(s->data, want);
        if (data == NULL)
            return NULL;
        g->memory += want - s->size;
        s->data = data;
        s->size = want;
    }
    return s->data + s->len;
}

static uint8_t *new_last(struct eventlog *g, size_t size)
{
    size_t room = size > SEGMENT_FIRST ? size : SEGMENT_FIRST;
    struct segment *s = calloc(1, sizeof *s);
    uint8_t *data = s != NULL ? malloc(room) : NULL;

    if (data == NULL || push_segment(g, s) < 0) {
        free(data);
        free(s);
        return NULL;
    }
    *s = (struct segment){
        .id = ++g->next_id, .first_seq = g->next_seq, .data = data, .size = room
    };
    g->memory += room;
    g->sealed = 0;
    return data;
}

uint64_t eventlog_add(struct eventlog *g, const struct event *in)
{
    uint64_t seq = g->next_seq++;
    size_t size = record_size(in);
    uint8_t *at = NULL;

    check(in->buffer_count <= UINT16_MAX);
    if (size <= UINT32_MAX)
        at = grow_last(g, size);
    if (at == NULL && size <= UINT32_MAX) {
        g->next_seq = seq; /* the new segment begins with this entry */
        at = new_last(g, size);
        g->next_seq = seq + 1;
    }
    if (at == NULL) {
        /* Every cursor that has not passed this number learns that it missed something. */
        log_error("event_lost", "bytes=%zu", size);
        g->given_up++;
        metrics_count(METRIC_DROPPED, METRIC_GIVEN_UP);
        g->lost_before = seq + 1;
        return seq;
    }
    write_record(at, in, seq, size);
    struct segment *s = log_segment(g, g->count - 1);
    s->len += size;
    s->last_seq = seq;
    g->added += size;
    sift_note(&s->held, in->kind, size);
    if (in->kind < EVENT_BULKS)
        g->held[in->kind] += size;
    if (g->memory > g->limits.memory)
        log_make_room(g);
    return seq;
}

struct eventlog_cursor eventlog_end(const struct eventlog *g)
{
    return (struct eventlog_cursor){ .seq = g->next_seq };
}

/* ---- reading ---- */

const uint8_t *log_load(struct eventlog *g, const struct segment *s)
{
    if (s->data != NULL)
        return s->data;
    if (g->cache.id == s->id && g->cache.version == s->version && g->cache.data != NULL)
        return g->cache.data;
    g->cache.id = 0;
    if (g->cache.size < s->len || g->cache.size > 16 * g->limits.segment) {
        free(g->cache.data);
        g->cache.data = malloc(s->len);
        g->cache.size = g->cache.data != NULL ? s->len : 0;
        if (g->cache.data == NULL)
            return NULL;
    }
    for (size_t done = 0; done < s->len;) {
        ssize_t n = pread(g->spool_fd, g->cache.data + done, s->len - done, s->at + (off_t)done);
        if (n <= 0) {
            if (n < 0 && errno == EINTR)
                continue;
            log_error("spool_read", "error=\"%s\"", n < 0 ? strerror(errno) : "end of file");
            return NULL;
        }
        done += (size_t)n;
    }
    g->cache.id = s->id;
    g->cache.version = s->version;
    return g->cache.data;
}

/* The first segment that may hold entry seq or a later one; count when none. */
static size_t find_segment(const struct eventlog *g, uint64_t seq)
{
    size_t low = 0, high = g->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (log_segment(g, mid)->last_seq < seq)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int give(struct eventlog *g, const uint8_t *at, struct event *ret)
{
    struct record r;

    memcpy(&r, at, sizeof r);
    if (r.buffer_count > g->view_room) {
        struct view *views = realloc(g->views, r.buffer_count * sizeof *views);
        if (views == NULL)
            return -ENOMEM;
        g->views = views;
        g->view_room = r.buffer_count;
    }
    const uint8_t *sizes = at + sizeof r;
    const uint8_t *p = sizes + r.buffer_count * sizeof(uint32_t);
    *ret = (struct event){
        .seq = r.seq,
        .kind = r.kind,
        .channel = r.channel,
        .addressee = r.addressee,
        .owner = r.owner,
        .buffers = g->views,
        .buffer_count = r.buffer_count,
        .lost = r.lost,
    };
    for (unsigned i = 0; i < EVENT_PARTS; i++) {
        ret->parts[i] = (struct view){ p, r.part[i] };
        p += r.part[i];
    }
    for (size_t i = 0; i < r.buffer_count; i++) {
        uint32_t n;
        memcpy(&n, sizes + i * sizeof n, sizeof n);
        g->views[i] = (struct view){ p, n };
        p += n;
    }
    return 0;
}

/* The offset of the first record in s with a number >= seq; s->len when none. */
static size_t find_record(const struct segment *s, const uint8_t *data, uint64_t seq, size_t from)
{
    size_t at = from;

    while (at < s->len) {
        struct record r;
        memcpy(&r, data + at, sizeof r);
        if (r.seq >= seq)
            break;
        at += r.size;
    }
    return at;
}

int eventlog_read(struct eventlog *g, struct eventlog_cursor *c, struct event *ret)
{
    if (c->seq < g->lost_before)
        return -HC_EGONE;
    for (size_t i = find_segment(g, c->seq); i < g->count; i++) {
        const struct segment *s = log_segment(g, i);
        const uint8_t *data = log_load(g, s);
        if (data == NULL)
            return -HC_EGONE;
        size_t from = c->segment == s->id && c->version == s->version ? c->offset : 0;
        size_t at = find_record(s, data, c->seq, from);
        if (at == s->len)
            continue;
        if (give(g, data + at, ret) < 0)
            return -HC_EGONE;
        struct record r;
        memcpy(&r, data + at, sizeof r);
        *c = (struct eventlog_cursor){ r.seq + 1, s->id, s->version, at + r.size };
        g->passed |= r.owner != 0;
        return 1;
    }
    return 0;
}

struct eventlog_use eventlog_use(const struct eventlog *g)
{
    return (struct eventlog_use){
        .memory = g->memory,
        .spool = g->spool_used,
        .entries_given_up = g->given_up,
        .lost = g->lost,
        .segments = (unsigned)g->count,
    };
}
