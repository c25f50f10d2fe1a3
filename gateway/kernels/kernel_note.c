/* The note that the launcher keeps for the next gateway: what a kernel is, and what
 * its clients have there. Written before a run goes to the kernel, and a while after
 * whatever else changes it; never more than a few on their way. */
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "jmsg.h"
#include "jsonwrite.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "note.h"
#include "noteitem.h"
#include "recipe.h"
#include "seat.h"
#include "tail.h"

enum {
    NOTES_OPEN_MAX = 2,         /* without the launcher's answer */
    LATER_MS = 50,              /* what is over may be noted so late */
    HEADER_MAX = 1024,          /* a longer header of a run is noted by its ids */
    SCARCE = 16 * 1024,         /* likewise when no more than this is left */
    HEADER_IDS_MAX = 16 * 1024, /* room while making one of ids */
};

static unsigned note_fds(const struct kernel *k, int fds[NOTE_FDS], unsigned *bits)
{
    const struct endpoints *ep = k->link != NULL ? link_endpoints(k->link) : &k->endpoints;
    int all[NOTE_FDS] = {
        [NOTE_RECIPE] = k->recipe_fd,
        [NOTE_INIT] = k->session->init_fd,
        [NOTE_SESSION_DIR] = k->session->dir_fd,
        [NOTE_TAIL] = tail_fd(k->tail),
        [NOTE_RUN_DIR] = k->run_dir_fd,
    };
    unsigned count = 0;

    memcpy(&all[NOTE_SOCKET], ep->fds, sizeof ep->fds);
    *bits = 0;
    for (unsigned i = 0; i < NOTE_FDS; i++) {
        if (all[i] < 0)
            continue;
        fds[count++] = all[i];
        *bits |= 1u << i;
    }
    return count;
}

/* ---- seats ---- */

static int put(struct buf *out, enum noteitem_kind kind, unsigned flags, struct view bytes)
{
    const struct noteitem i = { kind, flags, bytes };

    return noteitem_put(out, &i);
}

static struct view text_of(struct jsonscan_value v, char *out, size_t n)
{
    return jsonscan_string_copy(v, out, n, NULL) < 0 ? VIEW_STR("") : view_cstr(out);
}

/* A header that is too long to be kept: what is told about the run names it still. */
static int put_ids(struct buf *out, unsigned flags, struct view header)
{
    char id[QUERY_ID_MAX], session[QUERY_ID_MAX];
    autobuf struct buf made = { 0 };
    struct jmsg_header h;

    if (jmsg_header_scan(header, &jmsg_limits_default, &h, NULL) < 0)
        return 0;
    const struct jmsg_own own = { .msg_id = text_of(h.msg_id, id, sizeof id),
                                  .msg_type = VIEW_STR("execute_request"),
                                  .session = text_of(h.session, session, sizeof session) };
    buf_init(&made, HEADER_IDS_MAX);
    if (jmsg_header_write(&own, &made, NULL) < 0)
        return 0;
    return put(out, NOTEITEM_RUN, flags, buf_view(&made));
}

static int put_clock(struct buf *out, const struct query *q)
{
    uint8_t bytes[RUNCLOCK_BYTES];

    runclock_pack(&q->clock, bytes);
    return put(out, NOTEITEM_CLOCK, 0, (struct view){ bytes, sizeof bytes });
}

static int put_run(struct buf *out, unsigned flags, struct view header)
{
    if (header.n > HEADER_MAX || out->max - buf_len(out) < SCARCE)
        return put_ids(out, flags, header);
    return put(out, NOTEITEM_RUN, flags, header);
}

/* One that is with the kernel, and what of it the next gateway goes on with. */
static int put_sent_run(const struct kernel *k, struct buf *out, const struct query *q)
{
    unsigned flags = (q->busy ? NOTEITEM_BUSY : 0) | (q->allow_stdin ? NOTEITEM_STDIN : 0);
    int rc = put_run(out, flags, q->header);

    if (rc == 0 && kernel_has_clock(k, q))
        rc = put_clock(out, q);
    return rc < 0 ? rc : noteitem_put_sent(out, &(struct noteitem_sent){ q->number, q->sent_us });
}

static int put_runs(const struct seat *s, struct buf *out)
{
    const struct queries *all = s->kernel->queries;
    unsigned older = s->unseen_count > SEAT_UNSEEN_NOTED ? s->unseen_count - SEAT_UNSEEN_NOTED : 0;
    int rc = 0;

    for (const struct unseen *u = s->unseen; rc == 0 && u != NULL; u = u->next) {
        if (older > 0)
            older--;
        else if (u->seq > s->cursor.seq)
            rc = put_run(out, NOTEITEM_UNDELIVERED, (struct view){ u->header, u->n });
    }
    for (struct query *q = queries_first(all); rc == 0 && q != NULL; q = queries_next(all, q)) {
        if (q->seat == s->number && q->is_run && !run_ended(&q->run))
            rc = put_sent_run(s->kernel, out, q);
    }
    for (const struct held *h = s->held; rc == 0 && h != NULL; h = h->next) {
        if (h->is_run)
            rc = put_run(out, NOTEITEM_STDIN, h->parts[0]);
    }
    return rc;
}

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

static int put_seat(const struct seat *s, struct buf *out)
{
    size_t before = buf_len(out);

    int rc = put(out, NOTEITEM_SEAT, s->returns ? NOTEITEM_RETURNS : 0, view_cstr(s->sid));
    if (rc == 0)
        rc = put_identity(out, s->identity);
    for (unsigned i = 0; rc == 0 && i < s->heir_count; i++)
        rc = put_identity(out, s->heirs[i].identity);
    if (rc < 0) {
        buf_truncate(out, before);
        return rc;
    }
    rc = put_runs(s, out);
    return rc == 0 && s->ask != NULL ? put_ask(s, out) : rc;
}

static int has_runs(const struct seat *s)
{
    return s->held != NULL || s->unseen != NULL || queries_count(s->kernel->queries, s->number) > 0;
}

/* Those with runs first: the others lose only their place when there is no room. */
static void put_seats(const struct kernel *k, struct buf *out)
{
    static struct log_limit limit;
    int rc = 0;

    for (int with_runs = 1; with_runs >= 0; with_runs--) {
        for (const struct seat *s = k->seats; rc == 0 && s != NULL; s = s->next) {
            if (has_runs(s) == with_runs && (with_runs || s->returns))
                rc = put_seat(s, out);
        }
    }
    if (rc < 0 && log_allowed(&limit, 10))
        log_warn("note_short", "kernel=%s bytes=%zu", k->id, buf_len(out));
}

/* ---- the whole ---- */

static int write_note(struct kernel *k, struct err *e)
{
    const struct endpoints *ep = k->link != NULL ? link_endpoints(k->link) : &k->endpoints;
    struct note n = {
        .spec_dir = k->recipe.spec_dir,
        .sockets_fd = k->recipe.sockets_fd,
        .interrupt_by_message = k->recipe.interrupt_by_message,
        .generation = k->generation,
        .cull_ms = k->recipe.cull_ms,
        .last_us = k->activity.last_us,
        .last_ms = k->activity.last_ms,
        .busy = kernel_works(k),
        .seeding = k->seeding != NULL,
        .ending = k->goal == KERNEL_DELETE,
        .times = k->session->times,
        .born_ms = k->session->born_ms,
        .numbered = queries_next_number(k->queries) - 1,
        .workspace_bytes = k->session->principal.workspace_bytes,
        .overdue = k->overdue,
    };
    autobuf struct buf out = { 0 }, seats = { 0 };
    int fds[NOTE_FDS];

    snprintf(n.principal, sizeof n.principal, "%s", k->session->principal.name);
    memcpy(n.id, k->id, sizeof n.id);
    snprintf(n.spec_name, sizeof n.spec_name, "%s", k->recipe.spec_name);
    memcpy(n.key, k->key, sizeof n.key);
    memcpy(n.base, ep->base, sizeof n.base);
    memcpy(n.kept, k->kept, sizeof n.kept);
    snprintf(n.session, sizeof n.session, "%s", k->sid);
    if (k->recipe_fd < 0) {
        int rc = recipe_memfd(&k->recipe, &k->recipe_fd, e);
        if (rc < 0)
            return rc;
    }
    unsigned count = note_fds(k, fds, &n.fds);
    buf_init(&seats, LAUNCH_NOTE_MAX - NOTE_TEXT_MAX);
    put_seats(k, &seats);
    n.seats = buf_view(&seats);
    buf_init(&out, LAUNCH_NOTE_MAX);
    int rc = note_encode(&n, &out, e);
    return rc < 0 ? rc : session_note(k->session, buf_view(&out), fds, count, e);
}

/* A kernel that cannot be noted runs all the same; it would not outlive this gateway. */
void kernel_note(struct kernel *k)
{
    struct err e = { 0 };

    k->notes++;
    k->note_stale = 0;
    k->noted_ms = k->activity.last_ms;
    k->noted_busy = kernel_works(k);
    if (k->session->sandbox == 0)
        return;
    if (write_note(k, &e) < 0)
        log_warn("note_failed", "kernel=%s error=\"%s\"", k->id, e.msg);
    else
        k->notes_open++;
}

int kernel_note_now(struct kernel *k)
{
    if (k->notes_open >= NOTES_OPEN_MAX) {
        k->note_awaited = 1; /* one note then tells of all that wait */
        return 0;
    }
    kernel_note(k);
    return 1;
}

static void on_later(void *arg)
{
    struct kernel *k = arg;

    if (k->note_stale && k->notes_open > 0)
        return; /* the next time */
    k->note_timer = loop_timer_close(k->note_timer);
    if (k->note_stale && k->phase < KERNEL_STOPPING)
        kernel_note(k);
}

void kernel_note_later(struct kernel *k)
{
    k->note_stale = 1;
    if (k->note_timer == NULL && k->phase < KERNEL_STOPPING)
        k->note_timer = loop_timer_start(sessions_loop(k->all), LATER_MS, LATER_MS, on_later, k);
}

void kernel_noted(struct kernel *k)
{
    if (k->notes_open > 0)
        k->notes_open--;
    if (!k->note_awaited)
        return;
    k->note_awaited = 0;
    seats_release(k);
}

void sessions_note(struct sessions *s)
{
    for (struct kernel *k = sessions_first_kernel(s); k != NULL; k = sessions_next_kernel(k)) {
        if (k->phase < KERNEL_STOPPING)
            kernel_note(k);
    }
}
