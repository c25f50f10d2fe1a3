#include "eventlog_sift.h"

#include <string.h>

static size_t round8(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

void sift_note(struct sift_held *held, enum event_kind kind, size_t size)
{
    held->kinds |= 1u << kind;
    if (kind < EVENT_BULKS)
        held->bulk[kind] += size;
}

unsigned sift_kinds(enum sift_level level)
{
    static const unsigned kinds[SIFT_LEVELS] = {
        [SIFT_STREAM] = 1u << EVENT_STREAM,
        [SIFT_DISPLAY] = 1u << EVENT_DISPLAY,
        [SIFT_KEEP] = 1u << EVENT_STREAM | 1u << EVENT_DISPLAY | 1u << EVENT_KEEP |
                      1u << EVENT_END | 1u << EVENT_CUT,
        [SIFT_CUT] = 1u << EVENT_END,
    };

    return kinds[level];
}

enum sift_level sift_order(const uint64_t bulk[EVENT_BULKS], unsigned turn)
{
    if (turn >= EVENT_BULKS)
        return (enum sift_level)turn;
    int displays_first = bulk[EVENT_DISPLAY] > bulk[EVENT_STREAM];
    return (turn == 0) == displays_first ? SIFT_DISPLAY : SIFT_STREAM;
}

void sift_begin(struct sift *s, enum sift_level level, const struct eventlog_readers *readers,
                uint8_t *out)
{
    *s = (struct sift){ .level = level, .readers = readers, .out = out };
}

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

static int awaits(const struct sift *s, uint64_t seat, uint64_t seq)
{
    const struct eventlog_readers *r = s->readers;

    return r == NULL || r->awaits == NULL || r->awaits(r->arg, seat, seq);
}

static int between(const struct sift *s, uint64_t after, uint64_t to)
{
    const struct eventlog_readers *r = s->readers;

    return r != NULL && r->between != NULL && r->between(r->arg, after, to);
}

/* ---- what happens to a record ---- */

enum verdict { STAYS, IS_CUT, GOES };

static enum verdict judge(const struct sift *s, const struct record *r)
{
    if (r->kind == EVENT_MARKER)
        return GOES; /* into another one */
    if (r->kind != EVENT_END && r->kind != EVENT_CUT)
        return sift_kinds(s->level) & 1u << r->kind || s->level == SIFT_CUT ? GOES : STAYS;
    if (s->level >= SIFT_KEEP && (r->owner == 0 || !awaits(s, r->owner, r->seq)))
        return GOES;
    if (s->level == SIFT_CUT && r->kind == EVENT_END && r->channel != JMSG_IOPUB &&
        r->size > SIFT_CUT_MIN)
        return IS_CUT;
    return STAYS;
}

static uint64_t bytes_of(const uint8_t *at, const struct record *r)
{
    uint64_t n = r->part[3];

    for (size_t i = 0; i < r->buffer_count; i++) {
        uint32_t size;
        memcpy(&size, at + sizeof *r + i * sizeof size, sizeof size);
        n += size;
    }
    return n;
}

static void add_loss(struct event_loss *to, const struct event_loss *more)
{
    for (unsigned i = 0; i < EVENT_LOSTS; i++)
        to->count[i] += more->count[i];
    to->bytes += more->bytes;
}

static void stay(struct sift *s, const uint8_t *at, const struct record *r)
{
    memcpy(s->out + s->len, at, r->size);
    sift_note(&s->held, r->kind, r->size);
    s->len += r->size;
    s->gap = s->len;
}

/* Headers say whose reply it was; what it said is gone. */
static void cut(struct sift *s, const uint8_t *at, const struct record *r)
{
    struct record c = *r;
    size_t n = (size_t)r->part[0] + r->part[1];
    uint8_t *to = s->out + s->len;

    c.kind = EVENT_CUT;
    c.buffer_count = 0;
    c.part[2] = c.part[3] = 0;
    c.lost = (struct event_loss){ .count = { [LOST_OTHER] = 1 }, .bytes = bytes_of(at, r) };
    c.size = (uint32_t)round8(sizeof c + n);
    memset(to, 0, c.size);
    memcpy(to, &c, sizeof c);
    memcpy(to + sizeof c, at + sizeof c + r->buffer_count * sizeof(uint32_t), n);
    add_loss(&s->lost, &c.lost);
    sift_note(&s->held, EVENT_CUT, c.size);
    s->len += c.size;
    s->gap = s->len;
}

/* ---- markers ---- */

/* Those of one gap stand in the order of the last entry that each counts. */
static void append_marker(struct sift *s, const struct record *r, struct view parent,
                          const struct event_loss *loss)
{
    struct record m = {
        .size = (uint32_t)round8(sizeof m + parent.n),
        .kind = EVENT_MARKER,
        .channel = JMSG_IOPUB,
        .seq = r->seq,
        .addressee = r->addressee,
        .lost = *loss,
        .part = { 0, (uint32_t)parent.n, 0, 0 },
    };

    memset(s->out + s->len, 0, m.size);
    memcpy(s->out + s->len, &m, sizeof m);
    if (parent.n > 0)
        memcpy(s->out + s->len + sizeof m, parent.p, parent.n);
    sift_note(&s->held, EVENT_MARKER, m.size);
    s->len += m.size;
}

/* Takes the marker of that parent out of the gap, when one is there that no cursor
 * parts from seq. */
static int take_marker(struct sift *s, const struct record *r, struct view parent,
                       struct event_loss *ret)
{
    for (size_t at = s->gap; at < s->len;) {
        struct record m;
        memcpy(&m, s->out + at, sizeof m);
        if (m.addressee == r->addressee && same(parent_of(s->out + at), parent) &&
            !between(s, m.seq, r->seq)) {
            *ret = m.lost;
            memmove(s->out + at, s->out + at + m.size, s->len - at - m.size);
            s->len -= m.size;
            return 1;
        }
        at += m.size;
    }
    return 0;
}

static void go(struct sift *s, const uint8_t *at, const struct record *r)
{
    static const enum event_lost what[] = { [EVENT_STREAM] = LOST_STREAM,
                                            [EVENT_DISPLAY] = LOST_DISPLAY,
                                            [EVENT_KEEP] = LOST_OTHER,
                                            [EVENT_END] = LOST_OTHER,
                                            [EVENT_CUT] = LOST_OTHER };
    struct event_loss loss = r->lost, before = { 0 };
    struct view parent = parent_of(at);

    if (r->kind != EVENT_MARKER) {
        loss = (struct event_loss){ .bytes = bytes_of(at, r) };
        loss.count[what[r->kind]] = 1;
        add_loss(&s->lost, &loss);
    }
    /* Nobody is left who would read what was for him alone. */
    if (r->addressee != 0 && s->level >= SIFT_KEEP && !awaits(s, r->addressee, r->seq))
        return;
    if (take_marker(s, r, parent, &before))
        add_loss(&loss, &before);
    append_marker(s, r, parent, &loss);
}

void sift_add(struct sift *s, const uint8_t *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        struct record r;
        memcpy(&r, data + at, sizeof r);
        switch (judge(s, &r)) {
        case STAYS:
            stay(s, data + at, &r);
            break;
        case IS_CUT:
            cut(s, data + at, &r);
            break;
        case GOES:
            go(s, data + at, &r);
            break;
        }
        at += r.size;
    }
}
