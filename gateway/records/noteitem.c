#include "noteitem.h"

#include "err.h"
#include "runclock.h"

int noteitem_put(struct buf *out, const struct noteitem *i)
{
    const uint8_t head[NOTEITEM_HEAD] = { (uint8_t)i->kind, (uint8_t)i->flags,
                                          (uint8_t)(i->bytes.n & 0xff),
                                          (uint8_t)(i->bytes.n >> 8) };

    if (i->bytes.n > NOTEITEM_BYTES_MAX)
        return -HC_ELIMIT;
    int rc = buf_reserve(out, sizeof head + i->bytes.n);
    if (rc < 0)
        return rc;
    rc = buf_add(out, head, sizeof head);
    return rc < 0 ? rc : buf_add_view(out, i->bytes);
}

static int put_numbers(struct buf *out, enum noteitem_kind kind, const uint64_t *values, size_t n)
{
    uint8_t bytes[NOTEITEM_SENT_BYTES];

    for (size_t i = 0; i < 8 * n; i++)
        bytes[i] = (uint8_t)(values[i / 8] >> (8 * (i % 8)));
    return noteitem_put(out, &(struct noteitem){ kind, 0, { bytes, 8 * n } });
}

static uint64_t number_at(const struct noteitem *i, size_t which)
{
    uint64_t value = 0;

    for (size_t at = 0; at < 8; at++)
        value |= (uint64_t)i->bytes.p[8 * which + at] << (8 * at);
    return value;
}

int noteitem_put_sent(struct buf *out, const struct noteitem_sent *s)
{
    return put_numbers(out, NOTEITEM_SENT, (const uint64_t[]){ s->number, s->sent_us }, 2);
}

struct noteitem_sent noteitem_sent(const struct noteitem *i)
{
    return (struct noteitem_sent){ number_at(i, 0), number_at(i, 1) };
}

int noteitem_put_more(struct buf *out, uint64_t ends)
{
    return put_numbers(out, NOTEITEM_MORE, &ends, 1);
}

uint64_t noteitem_more(const struct noteitem *i)
{
    return number_at(i, 0);
}

static int check_item(const struct noteitem *i, struct err *e)
{
    if (i->kind == 0 || i->kind >= NOTEITEM_KINDS_END)
        return err_set(e, HC_EPARSE, "note: an item of kind %u", (unsigned)i->kind);
    if (i->bytes.n > NOTEITEM_BYTES_MAX)
        return err_set(e, HC_EPARSE, "note: an item of %zu bytes", i->bytes.n);
    if (i->kind == NOTEITEM_IDENTITY && (i->bytes.n == 0 || i->bytes.n > NOTEITEM_IDENTITY_MAX))
        return err_set(e, HC_EPARSE, "note: an identity of %zu bytes", i->bytes.n);
    if (i->kind == NOTEITEM_CLOCK && i->bytes.n != RUNCLOCK_BYTES)
        return err_set(e, HC_EPARSE, "note: a clock of %zu bytes", i->bytes.n);
    if (i->kind == NOTEITEM_SENT && i->bytes.n != NOTEITEM_SENT_BYTES)
        return err_set(e, HC_EPARSE, "note: %zu bytes of when a run was sent", i->bytes.n);
    if (i->kind == NOTEITEM_MORE && i->bytes.n != NOTEITEM_MORE_BYTES)
        return err_set(e, HC_EPARSE, "note: %zu bytes of how many ends more", i->bytes.n);
    if (i->kind == NOTEITEM_MORE && noteitem_more(i) > UINT32_MAX)
        return err_set(e, HC_EPARSE, "note: how many ends more is out of range");
    if (i->kind == NOTEITEM_SENT && noteitem_sent(i).number > NOTEITEM_NUMBER_MAX)
        return err_set(e, HC_EPARSE, "note: the number of a run is out of range");
    /* Texts that become C strings. */
    if (i->kind == NOTEITEM_SEAT || i->kind == NOTEITEM_IDENTITY) {
        for (size_t at = 0; at < i->bytes.n; at++) {
            if (i->bytes.p[at] == '\0')
                return err_set(e, HC_EPARSE, "note: a NUL in a name");
        }
    }
    return 0;
}

int noteitem_next(struct view *rest, struct noteitem *ret, struct err *e)
{
    if (rest->n == 0)
        return 0;
    if (rest->n < NOTEITEM_HEAD)
        return err_set(e, HC_EPARSE, "note: an item cut short");
    size_t n = rest->p[2] | (size_t)rest->p[3] << 8;
    if (n > rest->n - NOTEITEM_HEAD)
        return err_set(e, HC_EPARSE, "note: an item cut short");
    struct noteitem i = { .kind = rest->p[0],
                          .flags = rest->p[1],
                          .bytes = { rest->p + NOTEITEM_HEAD, n } };
    int rc = check_item(&i, e);
    if (rc < 0)
        return rc;
    *rest = (struct view){ rest->p + NOTEITEM_HEAD + n, rest->n - NOTEITEM_HEAD - n };
    *ret = i;
    return 1;
}

int noteitem_check(struct view all, struct err *e)
{
    enum noteitem_kind before = NOTEITEM_KINDS_END;
    struct noteitem i;
    int rc;

    while ((rc = noteitem_next(&all, &i, e)) == 1) {
        if (before == NOTEITEM_KINDS_END && i.kind != NOTEITEM_SEAT)
            return err_set(e, HC_EPARSE, "note: an item without a seat");
        if (i.kind == NOTEITEM_CLOCK && before != NOTEITEM_RUN)
            return err_set(e, HC_EPARSE, "note: a clock without a run");
        if (i.kind == NOTEITEM_SENT && before != NOTEITEM_RUN && before != NOTEITEM_CLOCK)
            return err_set(e, HC_EPARSE, "note: sent, without a run");
        before = i.kind;
    }
    return rc;
}
