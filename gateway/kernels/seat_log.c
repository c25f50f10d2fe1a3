/* A seat as a reader of the event log: what it still waits for, and what it is told
 * when the log could not wait. */
#include <stdio.h>

#include "err.h"
#include "kernel_own.h"
#include "log.h"
#include "seat.h"

static const char fell_behind[] =
    "\n[holdcell] this client was too far behind: what the kernel said since is lost, "
    "but for what follows\n";
static const char end_lost[] =
    "this cell has ended, and its end was given up before this client read it";

/* Nobody sits down again on a parked seat without a session_id. */
static int reads(const struct seat *s)
{
    return s->client != NULL || s->returns;
}

static int between(void *arg, uint64_t after, uint64_t to)
{
    const struct kernel *k = arg;

    for (const struct seat *s = k->seats; s != NULL; s = s->next) {
        if (reads(s) && s->cursor.seq > after && s->cursor.seq <= to)
            return 1;
    }
    return 0;
}

static int awaits(void *arg, uint64_t owner, uint64_t seq)
{
    const struct seat *s = seat_by_number(arg, owner);

    return s != NULL && reads(s) && s->cursor.seq <= seq;
}

static uint64_t lowest(void *arg)
{
    const struct kernel *k = arg;
    uint64_t seq = eventlog_end(k->log).seq;

    for (const struct seat *s = k->seats; s != NULL; s = s->next) {
        if (reads(s) && s->cursor.seq < seq)
            seq = s->cursor.seq;
    }
    return seq;
}

struct eventlog_readers seats_readers(struct kernel *k)
{
    return (struct eventlog_readers){ k, between, awaits, lowest };
}

void seat_fell_behind(struct seat *s)
{
    char text[160];

    s->cursor = eventlog_end(s->kernel->log);
    kernel_tell_seat(s, fell_behind);
    if (s->unseen_forgotten > 0) {
        snprintf(text, sizeof text,
                 "\n[holdcell] the ends of %u of its cells are among what is lost\n",
                 s->unseen_forgotten);
        kernel_tell_seat(s, text);
    }
    for (struct unseen *u = s->unseen; u != NULL; u = u->next) {
        kernel_tell_lost(s, (struct view){ u->header, u->n }, end_lost);
        u->seq = eventlog_end(s->kernel->log).seq;
    }
}

void seat_catch_up(struct seat *s)
{
    struct eventlog_cursor c = s->cursor;
    struct event ev;

    if (eventlog_read(s->kernel->log, &c, &ev) < 0) {
        log_warn("client_lagged", "kernel=%s", s->kernel->id);
        seat_fell_behind(s);
    }
}
