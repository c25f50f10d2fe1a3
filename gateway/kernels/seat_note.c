/* What the note of a kernel says of its seats (noteitem.h): runs without an end, ends that were
 * not given, questions. All of it: what would be too much was not taken before. */
#include "err.h"
#include "jmsg.h"
#include "kernel_own.h"
#include "noteitem.h"
#include "seat.h"

enum {
    HEADER_MAX = 1024,       /* of a longer one the names alone are noted, lest a note takes long */
    HEADER_NAMES_MAX = 4096, /* bytes of one with three names of QUERY_ID_MAX, with all escapes */
    UNSEEN_BYTES =
        2 * 1024 * 1024, /* of a kernel's ends that were not given; of more the newest ... */
    UNSEEN_SEAT_BYTES =
        HEADER_NAMES_MAX, /* ... of each seat, so much at least; the others are counted */
};

static int put(struct buf *out, enum noteitem_kind kind, unsigned flags, struct view bytes)
{
    const struct noteitem i = { kind, flags, bytes };

    return noteitem_put(out, &i);
}

static struct view text_of(struct jsonscan_value v, char *out, size_t n)
{
    return jsonscan_string_copy(v, out, n, NULL) < 0 ? VIEW_STR("") : view_cstr(out);
}

static int write_names(struct view id, struct view session, struct view subshell, struct buf *out)
{
    const struct jmsg_own own = { .msg_id = id,
                                  .msg_type = VIEW_STR("execute_request"),
                                  .session = session,
                                  .subshell_id = subshell };

    buf_init(out, HEADER_NAMES_MAX);
    return jmsg_header_write(&own, out, NULL);
}

struct view seat_noted_header(struct view header, struct buf *room)
{
    char id[QUERY_ID_MAX], session[QUERY_ID_MAX], subshell[QUERY_ID_MAX];
    struct jmsg_header h;

    if (header.n <= HEADER_MAX)
        return header;
    if (jmsg_header_scan(header, &jmsg_limits_default, &h, NULL) < 0 ||
        write_names(text_of(h.msg_id, id, sizeof id), text_of(h.session, session, sizeof session),
                    text_of(h.subshell_id, subshell, sizeof subshell), room) < 0)
        return VIEW_STR("{}");
    return buf_view(room);
}

/* ---- runs without an end ---- */

static int put_clock(struct buf *out, const struct query *q)
{
    uint8_t bytes[RUNCLOCK_BYTES];

    runclock_pack(&q->clock, bytes);
    return put(out, NOTEITEM_CLOCK, 0, (struct view){ bytes, sizeof bytes });
}

/* One that is with the kernel, and what of it the next gateway goes on with. */
static int put_sent_run(const struct kernel *k, struct buf *out, const struct query *q)
{
    unsigned flags = (q->busy ? NOTEITEM_BUSY : 0) | (q->allow_stdin ? NOTEITEM_STDIN : 0);
    autobuf struct buf names = { 0 };
    struct view header = q->header;

    if (header.n > HEADER_MAX) {
        (void)write_names(view_cstr(q->id), view_cstr(q->session), view_cstr(q->subshell), &names);
        header = buf_view(&names);
    }
    int rc = put(out, NOTEITEM_RUN, flags, header);
    if (rc == 0 && kernel_has_clock(k, q))
        rc = put_clock(out, q);
    return rc < 0 ? rc : noteitem_put_sent(out, &(struct noteitem_sent){ q->number, q->sent_us });
}

static int put_runs(const struct seat *s, struct buf *out)
{
    int rc = 0;

    for (const struct query *q = queries_first_of(s->kernel->queries, s->number);
         rc == 0 && q != NULL; q = q->seat_next) {
        if (q->is_run && !run_ended(&q->run))
            rc = put_sent_run(s->kernel, out, q);
    }
    for (const struct held *h = s->held; rc == 0 && h != NULL; h = h->next) {
        if (h->is_run)
            rc = put(out, NOTEITEM_RUN, NOTEITEM_STDIN, h->noted);
    }
    return rc;
}

/* ---- ends that were not given ---- */

static size_t cost(const struct unseen *u)
{
    return NOTEITEM_HEAD + u->n;
}

static int put_unseen(const struct seat *s, size_t room, struct buf *out)
{
    uint64_t more = s->unseen_forgotten;
    size_t bytes = 0;
    int rc = 0;

    for (const struct unseen *u = s->unseen; u != NULL; u = u->next)
        bytes += u->seq > s->cursor.seq ? cost(u) : 0;
    for (const struct unseen *u = s->unseen; rc == 0 && u != NULL; u = u->next) {
        if (u->seq <= s->cursor.seq)
            continue;
        if (bytes <= room)
            rc = put(out, NOTEITEM_RUN, NOTEITEM_UNDELIVERED, (struct view){ u->header, u->n });
        else
            more++;
        bytes -= bytes > room ? cost(u) : 0;
    }
    return rc == 0 && more > 0 ? noteitem_put_more(out, more) : rc;
}

/* ---- seats ---- */

static int put_ask(const struct seat *s, struct buf *out)
{
    unsigned given = s->ask->given ? NOTEITEM_GIVEN : 0;
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < EVENT_PARTS; i++)
        rc = put(out, NOTEITEM_ASK, i | given, s->ask->parts[i]);
    return rc;
}

static int put_identity(struct buf *out, const char *identity)
{
    return identity[0] != '\0' ? put(out, NOTEITEM_IDENTITY, 0, view_cstr(identity)) : 0;
}

static int put_seat(const struct seat *s, size_t unseen_room, struct buf *out)
{
    int rc = put(out, NOTEITEM_SEAT, s->returns ? NOTEITEM_RETURNS : 0, view_cstr(s->sid));

    if (rc == 0)
        rc = put_identity(out, s->identity);
    for (unsigned i = 0; rc == 0 && i < s->heir_count; i++)
        rc = put_identity(out, s->heirs[i].identity);
    if (rc == 0)
        rc = put_unseen(s, unseen_room, out);
    if (rc == 0)
        rc = put_runs(s, out);
    return rc == 0 && s->ask != NULL ? put_ask(s, out) : rc;
}

static int has_runs(const struct seat *s)
{
    return s->held != NULL || s->unseen != NULL || queries_count(s->kernel->queries, s->number) > 0;
}

int seats_put(const struct kernel *k, struct buf *out)
{
    size_t unseen = 0;
    int rc = 0;

    for (const struct seat *s = k->seats; s != NULL; s = s->next)
        unseen += s->unseen != NULL;
    size_t room = UNSEEN_BYTES / (unseen > 0 ? unseen : 1);
    if (room < UNSEEN_SEAT_BYTES)
        room = UNSEEN_SEAT_BYTES;
    for (const struct seat *s = k->seats; rc == 0 && s != NULL; s = s->next) {
        if (s->returns || has_runs(s))
            rc = put_seat(s, room, out);
    }
    return rc;
}
