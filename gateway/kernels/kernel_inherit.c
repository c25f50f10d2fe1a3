/* Taking over what clients of the gateway before this one had at a kernel: seats,
 * runs under way, a question; and finding out which of those runs are over. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "jmsg.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "noteitem.h"
#include "seat.h"

enum {
    SILENT_MS = 1000
}; /* then clients of silent runs are told that they may have missed something */

static const char restarted[] =
    "\n[holdcell] the gateway was restarted: what it had not delivered or not sent is lost\n";
static const char gap[] = "\n[holdcell] the gateway was restarted while this cell was under way: "
                          "output from meanwhile may be missing\n";
static const char no_question[] = "[holdcell] if it asked for input meanwhile, the question is "
                                  "lost: an interrupt ends the cell\n";
const char kernel_lost_text[] =
    "the gateway was restarted while this cell was under way, and its end was not seen";

/* ---- from the note ---- */

struct reader {
    struct kernel *kernel;
    struct seat *seat;
    struct query *run; /* the one that the item before was about; NULL: of one that is over */
    struct view ask[EVENT_PARTS];
    unsigned ask_parts, ask_given;
};

static void copy(struct jsonscan_value v, char *out, size_t n)
{
    if (jsonscan_string_copy(v, out, n, NULL) < 0)
        out[0] = '\0';
}

static void fill_query(struct query *q, const struct seat *s, const struct noteitem *i)
{
    struct jmsg_header h;

    *q = (struct query){ .seat = s->number,
                         .channel = JMSG_SHELL,
                         .type = "execute_request",
                         .header = i->bytes,
                         .allow_stdin = (i->flags & NOTEITEM_STDIN) != 0,
                         .is_run = 1,
                         .inherited = 1,
                         .unheard = 1 };
    if (jmsg_header_scan(i->bytes, &jmsg_limits_default, &h, NULL) < 0)
        return;
    copy(h.msg_id, q->id, sizeof q->id);
    copy(h.session, q->session, sizeof q->session);
    copy(h.subshell_id, q->subshell, sizeof q->subshell);
}

static void take_run(struct reader *r, const struct noteitem *i)
{
    struct kernel *k = r->kernel;
    struct query q;

    r->run = NULL;
    fill_query(&q, r->seat, i);
    /* What has no name that we keep cannot be followed. */
    int is_over = (i->flags & NOTEITEM_UNDELIVERED) || q.id[0] == '\0';
    struct query *added = is_over ? NULL : queries_add(k->queries, &q);
    if (added == NULL) { /* or it waited behind so many that it cannot have been sent */
        kernel_tell_gap(k, &q);
        kernel_tell_reply(k, &q, "RunLost", kernel_lost_text);
        kernel_tell_idle(k, q.seat, q.header);
        seat_run_ended(r->seat, q.header); /* this gateway may go before the client comes, too */
        return;
    }
    r->run = added;
    k->inherited++;
    if (i->flags & NOTEITEM_BUSY) {
        added->busy = 1;
        run_busy(&added->run);
        kernel_tell_gap(k, added);
    }
}

static void take_more(struct seat *s, const struct noteitem *i)
{
    char text[160];

    snprintf(text, sizeof text, "[holdcell] and the ends of %" PRIu64 " cells before are lost\n",
             noteitem_more(i));
    kernel_tell_seat(s, text);
    s->unseen_forgotten = (unsigned)noteitem_more(i);
}

static void take_sent(struct kernel *k, struct query *q, const struct noteitem *i)
{
    const struct noteitem_sent sent = noteitem_sent(i);

    queries_renumber(k->queries, q, sent.number);
    q->sent_us = sent.sent_us <= clock_monotonic_us() ? sent.sent_us : 0;
}

static void take_identity(struct seat *s, struct view text)
{
    if (s->heir_count >= SEAT_HEIRS_MAX)
        return;
    if (s->heirs == NULL)
        s->heirs = xcalloc(SEAT_HEIRS_MAX, sizeof *s->heirs);
    struct heir *h = &s->heirs[s->heir_count++];
    memcpy(h->identity, text.p, text.n);
    h->shell = (struct seat_dealer){ .seat = s, .channel = JMSG_SHELL };
    h->input = (struct seat_dealer){ .seat = s, .channel = JMSG_STDIN };
}

/* A question that its client had not been given is asked again. */
static void end_seat(struct reader *r)
{
    struct seat *s = r->seat;

    if (s != NULL && r->ask_parts == EVENT_PARTS) {
        seat_keep_ask(s, r->ask);
        if (s->ask != NULL)
            s->ask->given = r->ask_given != 0;
        if (!r->ask_given)
            kernel_log_ask(s, r->ask);
    }
    r->seat = NULL;
    r->ask_parts = 0;
}

static void take_seat(struct reader *r, const struct noteitem *i)
{
    struct kernel *k = r->kernel;
    autofree char *sid = view_dup(i->bytes);

    end_seat(r);
    r->seat = seat_new(k, sid, (i->flags & NOTEITEM_RETURNS) != 0);
    r->seat->cursor.seq = 1; /* all that is told below */
    r->seat->inherited = r->seat->returns;
    r->seat->parked_ms = loop_now_ms(sessions_loop(k->all));
    if (r->seat->returns)
        kernel_tell_seat(r->seat, restarted);
}

void kernel_inherit(struct kernel *k, struct view items)
{
    struct reader r = { .kernel = k };
    struct noteitem i;

    /* Checked when the note was read. */
    while (noteitem_next(&items, &i, NULL) == 1) {
        if (i.kind == NOTEITEM_SEAT) {
            take_seat(&r, &i);
        } else if (i.kind == NOTEITEM_IDENTITY) {
            take_identity(r.seat, i.bytes);
        } else if (i.kind == NOTEITEM_RUN) {
            take_run(&r, &i);
        } else if (i.kind == NOTEITEM_CLOCK) {
            if (r.run != NULL)
                runclock_adopt(&r.run->clock, i.bytes.p, loop_now_ms(sessions_loop(k->all)));
        } else if (i.kind == NOTEITEM_SENT) {
            if (r.run != NULL)
                take_sent(k, r.run, &i);
        } else if (i.kind == NOTEITEM_MORE) {
            take_more(r.seat, &i);
        } else if ((i.flags & NOTEITEM_PART) == r.ask_parts) {
            r.ask[r.ask_parts++] = i.bytes;
            r.ask_given = i.flags & NOTEITEM_GIVEN;
        }
    }
    end_seat(&r);
    /* A kernel takes requests from its connections in turns: an answer to one
     * question does not tell that all that was sent before it is done. One more
     * question than there are runs does. */
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q))
        q->probes = k->inherited + 1;
    if (k->inherited > 0)
        log_info("runs_inherited", "kernel=%s count=%u", k->id, k->inherited);
    else
        seats_close_heirs(k);
    kernel_watch_runs(k);
}

/* ---- afterwards ---- */

void kernel_tell_gap(struct kernel *k, struct query *q)
{
    if (q->gap_told)
        return;
    q->gap_told = 1;
    kernel_tell_stream(k, q->header, gap);
}

/* What is silent still may have begun, and asked while nobody could be asked. */
static void tell_silent(struct kernel *k, struct query *q)
{
    const struct seat *s = seat_by_number(k, q->seat);

    kernel_tell_gap(k, q);
    if (q->allow_stdin && (s == NULL || s->ask == NULL))
        kernel_tell_stream(k, q->header, no_question);
}

void kernel_heard_of(struct kernel *k, struct query *q, int begins)
{
    if (!q->unheard)
        return;
    q->unheard = 0; /* from here on it is seen like any other */
    q->busy = 1;
    run_busy(&q->run);
    if (!begins)
        kernel_tell_gap(k, q);
}

static void probe(struct kernel *k, const char *subshell)
{
    struct err e = { 0 };

    if (k->link != NULL && link_probe(k->link, subshell, &e) < 0)
        log_warn("probe", "kernel=%s error=\"%s\"", k->id, e.msg);
}

static int is_first_of_subshell(const struct kernel *k, const struct query *q)
{
    for (const struct query *o = queries_first(k->queries); o != q;
         o = queries_next(k->queries, o)) {
        if (o->unheard && strcmp(o->subshell, q->subshell) == 0)
            return 0;
    }
    return 1;
}

/* The link asks the main shell by itself. */
void kernel_probe_subshells(struct kernel *k)
{
    if (k->inherited == 0)
        return;
    for (const struct query *q = queries_first(k->queries); q != NULL;
         q = queries_next(k->queries, q)) {
        if (q->unheard && q->subshell[0] != '\0' && is_first_of_subshell(k, q))
            probe(k, q->subshell);
    }
}

void kernel_shell_answered(struct kernel *k, const char *subshell)
{
    int again = 0;

    if (k->inherited == 0)
        return;
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (!q->inherited || q->probes == 0 || strcmp(q->subshell, subshell) != 0)
            continue;
        if (--q->probes == 0)
            q->probed_ms = loop_now_ms(sessions_loop(k->all));
        else
            again = 1;
    }
    if (again)
        probe(k, subshell);
}

int kernel_run_is_lost(const struct query *q, uint64_t now)
{
    uint64_t since = q->run.first_end_ms > q->probed_ms ? q->run.first_end_ms : q->probed_ms;

    return q->inherited && (q->unheard || q->replied) && q->probed_ms != 0 &&
           now >= since + RUN_IDLE_GRACE_MS;
}

/* Whether q may be what its (sub)shell works on: no other run is known to be. */
static int may_run(const struct kernel *k, const struct query *q)
{
    for (const struct query *o = queries_first(k->queries); o != NULL;
         o = queries_next(k->queries, o)) {
        if (o != q && o->is_run && o->busy && !run_ended(&o->run) &&
            strcmp(o->subshell, q->subshell) == 0)
            return 0;
    }
    return q->busy || is_first_of_subshell(k, q);
}

void kernel_watch_inherited(struct kernel *k, uint64_t now)
{
    /* Quiet, so that it is not just between two runs. */
    if (k->inherited == 0 || now - k->adopted_ms < SILENT_MS || now - k->iopub_ms < SILENT_MS)
        return;
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (q->unheard && !q->silence_told && may_run(k, q)) {
            q->silence_told = 1;
            tell_silent(k, q);
        }
    }
}

void kernel_end_lost(struct kernel *k, struct query *q)
{
    kernel_tell_gap(k, q);
    kernel_tell_dropped(k, q);
    run_end(&q->run, q->replied ? q->run.verdict : RUN_LOST);
    if (!q->replied)
        kernel_tell_reply(k, q, "RunLost", kernel_lost_text);
    if (!q->idle)
        kernel_tell_idle(k, q->seat, q->header);
    q->replied = q->idle = 1;
    kernel_run_ended(k, q);
    queries_settle(k->queries, q);
}

void kernel_inheritance_done(struct kernel *k)
{
    if (k->inherited == 0)
        return;
    for (const struct query *q = queries_first(k->queries); q != NULL;
         q = queries_next(k->queries, q)) {
        if (q->inherited && !run_ended(&q->run))
            return;
    }
    k->inherited = 0;
    seats_close_heirs(k);
}
