/* Clients that are away: their places are kept within bounds, and what had to be given
 * up is told to who comes back. */
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "kernel_own.h"
#include "log.h"
#include "loop.h"
#include "seat.h"
#include "seat_park.h"

static const char cut_off[] =
    "\n[holdcell] too many clients are away from this kernel: replies to what this one had "
    "sent, and questions of input(), are not waited for any more\n";
static const char not_sent[] = "the cell was not run: too many clients were away from the kernel";
static const char place_lost[] =
    "\n[holdcell] too many clients were away from this kernel, and this one's place was given "
    "up: what the kernel said since is lost, and the end of this client's cells\n";
static const char end_lost[] =
    "too many clients were away from the kernel: the end of this cell was not kept for this one";

struct away {
    struct seat *seat;
    struct park_place place;
    int unanswered; /* requests without a reply */
};

/* ---- what each waits for ---- */

static size_t list_away(struct kernel *k, struct away **ret)
{
    size_t n = 0, i = 0;

    for (struct seat *s = k->seats; s != NULL; s = s->next)
        n += s->client == NULL;
    struct away *all = calloc(n + 1, sizeof *all);
    if (all == NULL)
        return 0;
    for (struct seat *s = k->seats; s != NULL; s = s->next) {
        if (s->client == NULL)
            all[i++] = (struct away){ .seat = s,
                                      .place = { .since_ms = s->parked_ms,
                                                 .returns = s->returns,
                                                 .runs = s->held != NULL,
                                                 .unread = s->unseen != NULL,
                                                 .held = s->held_bytes } };
    }
    *ret = all;
    return n;
}

/* Newer seats stand first: their numbers fall. */
static int by_number(const void *key, const void *element)
{
    const uint64_t wanted = *(const uint64_t *)key,
                   number = ((const struct away *)element)->seat->number;

    return wanted > number ? -1 : wanted < number;
}

static void look_at_queries(struct kernel *k, struct away *all, size_t n)
{
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        struct away *a = bsearch(&q->seat, all, n, sizeof *all, by_number);
        if (a == NULL)
            continue;
        a->place.runs |= q->is_run && !run_ended(&q->run);
        a->unanswered |= !q->replied;
    }
}

/* ---- what is given up ---- */

static void give_up_sockets(struct seat *s)
{
    log_warn("seat_cut_off", "kernel=%s", s->kernel->id);
    kernel_tell_seat(s, cut_off);
    for (const struct held *h = s->held; h != NULL; h = h->next) {
        if (!h->is_run)
            continue;
        kernel_tell_lost(s, h->parts[0], not_sent);
        seat_run_ended(s, h->parts[0]);
    }
    seat_forget_held(s);
    seat_close_dealers(s);
    s->cut_off = 1;
}

static void give_up_place(struct seat *s)
{
    struct kernel *k = s->kernel;

    if (s->returns) {
        log_warn("seat_given_up", "kernel=%s", k->id);
        if (k->graves == NULL)
            k->graves = graves_new();
        graves_add(k->graves, s->sid);
        for (const struct unseen *u = s->unseen; u != NULL; u = u->next)
            graves_add_run(k->graves, (struct view){ u->header, u->n });
        for (struct query *q = queries_first(k->queries); q != NULL;
             q = queries_next(k->queries, q)) {
            if (q->seat == s->number && q->is_run && !run_ended(&q->run))
                graves_add_run(k->graves, q->header);
        }
        for (const struct held *h = s->held; h != NULL; h = h->next) {
            if (h->is_run)
                graves_add_run(k->graves, h->parts[0]);
        }
    }
    seat_end(s);
}

static int is_sweepable(const struct kernel *k, const struct seat *s)
{
    /* All of them come back at once. */
    return !s->inherited || loop_now_ms(sessions_loop(k->all)) - s->parked_ms >= SEAT_INHERITED_MS;
}

/* Those that may be swept, less those that nobody comes back for and who wait for nothing. */
static size_t sweep_plainly(struct kernel *k, struct away *all, size_t n)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++) {
        struct seat *s = all[i].seat;
        int waits = all[i].place.runs || all[i].unanswered || s->stdin_timer != NULL;
        all[i].place.runs |= s->stdin_timer != NULL;
        if (!s->returns && !all[i].place.runs) {
            seat_end(s);
            continue;
        }
        if (!is_sweepable(k, s))
            continue;
        /* Sockets cost descriptors; who comes back gets new ones. */
        if (!waits)
            seat_close_dealers(s);
        all[i].place.sockets = waits && !s->cut_off;
        all[left++] = all[i];
    }
    return left;
}

void seats_sweep_now(void *kernel)
{
    struct kernel *k = kernel;
    struct away *all = NULL;
    size_t n = list_away(k, &all), who = 0;

    if (all == NULL)
        return; /* no memory: the next time */
    look_at_queries(k, all, n);
    n = sweep_plainly(k, all, n);
    struct park_place *places = calloc(n + 1, sizeof *places);
    for (size_t i = 0; places != NULL && i < n; i++)
        places[i] = all[i].place;
    for (enum park_loss loss; places != NULL;) {
        loss = park_choose(places, n, &park_limits_default, &who);
        if (loss == PARK_NONE)
            break;
        if (loss == PARK_SOCKETS) {
            give_up_sockets(all[who].seat);
            places[who].sockets = 0;
            places[who].held = 0;
            continue;
        }
        give_up_place(all[who].seat);
        n--;
        all[who] = all[n];
        places[who] = places[n];
    }
    free(places);
    free(all);
}

/* It looks at all that is outstanding, and a kernel may end a thousand requests in one turn. */
void seats_sweep(struct kernel *k)
{
    deferred_add(sessions_deferred(k->all), DEFERRED_WORK, &k->sweep);
}

void seat_leave(struct seat *s)
{
    struct kernel *k = s->kernel;

    s->client = NULL;
    s->blocked = 0;
    s->parked_ms = loop_now_ms(sessions_loop(k->all));
    kernel_note_later(k);
    seats_sweep(k);
}

/* ---- who comes back ---- */

void seat_tell_lost_place(struct seat *s)
{
    struct kernel *k = s->kernel;
    struct grave *r = s->returns && k->graves != NULL ? graves_take(k->graves, s->sid) : NULL;
    char text[160];

    if (r == NULL)
        return;
    kernel_tell_seat(s, place_lost);
    for (const struct grave_run *run = r->runs; run != NULL; run = run->next)
        kernel_tell_lost(s, (struct view){ run->header, run->n }, end_lost);
    if (r->unnamed > 0) {
        snprintf(text, sizeof text, "\n[holdcell] and the ends of %u more cells\n", r->unnamed);
        kernel_tell_seat(s, text);
    }
    grave_free(r);
}
