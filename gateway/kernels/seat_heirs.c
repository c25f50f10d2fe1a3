/* What of a seat outlives a gateway: sockets with the old identities, ends that the
 * client was not given, a question that waits for its answer. */
#include <string.h>

#include "err.h"
#include "kernel_own.h"
#include "log.h"
#include "seat.h"
#include "zsocket.h"

struct seat *seat_by_number(struct kernel *k, uint64_t number)
{
    struct seat *s = k->seats;

    while (s != NULL && s->number != number)
        s = s->next;
    return s;
}

/* ---- sockets ---- */

static void open_heir(struct heir *h, const char *kernel)
{
    struct err e = { 0 };

    if (seat_open_dealer(&h->shell, h->identity, &e) < 0 ||
        seat_open_dealer(&h->input, h->identity, &e) < 0)
        log_error("seat_socket", "kernel=%s error=\"%s\"", kernel, e.msg);
}

void seats_open_heirs(struct kernel *k)
{
    for (struct seat *s = k->seats; s != NULL; s = s->next) {
        for (unsigned i = 0; i < s->heir_count; i++)
            open_heir(&s->heirs[i], k->id);
    }
}

static void close_heirs(struct seat *s)
{
    for (unsigned i = 0; i < s->heir_count; i++) {
        s->heirs[i].shell.socket = zsocket_close(s->heirs[i].shell.socket);
        s->heirs[i].input.socket = zsocket_close(s->heirs[i].input.socket);
    }
    free(s->heirs);
    s->heirs = NULL;
    s->heir_count = 0;
}

void seats_close_heirs(struct kernel *k)
{
    for (struct seat *s = k->seats; s != NULL; s = s->next)
        close_heirs(s);
}

/* ---- questions ---- */

void seat_answered(struct seat *s)
{
    if (s->ask == NULL)
        return;
    free(s->ask);
    s->ask = NULL;
    kernel_note_later(s->kernel);
}

void seat_keep_ask(struct seat *s, const struct view parts[EVENT_PARTS])
{
    size_t n = 0;

    seat_answered(s);
    kernel_note_later(s->kernel);
    for (unsigned i = 0; i < EVENT_PARTS; i++)
        n += parts[i].n;
    struct ask *a = n <= SEAT_ASK_MAX ? malloc(sizeof *a + n) : NULL;
    if (a == NULL)
        return;
    *a = (struct ask){ .seq = eventlog_end(s->kernel->log).seq };
    uint8_t *at = a->data;
    for (unsigned i = 0; i < EVENT_PARTS; i++) {
        a->parts[i] = (struct view){ at, parts[i].n };
        if (parts[i].n > 0)
            memcpy(at, parts[i].p, parts[i].n);
        at += parts[i].n;
    }
    s->ask = a;
}

void seat_asked(struct seat *s, const struct view parts[EVENT_PARTS])
{
    seat_keep_ask(s, parts);
    if (s->ask != NULL)
        (void)kernel_note_now(s->kernel); /* before the client has it; else soon */
}

/* ---- ends ---- */

static void forget_first(struct seat *s)
{
    struct unseen *u = s->unseen;

    s->unseen = u->next;
    if (s->unseen == NULL)
        s->unseen_last = &s->unseen;
    s->unseen_count--;
    s->unseen_bytes -= u->n;
    free(u);
}

void seat_run_ended(struct seat *s, struct view request)
{
    autobuf struct buf names = { 0 };
    const struct view header = seat_noted_header(request, &names);
    struct unseen *u = malloc(sizeof *u + header.n);

    kernel_note_later(s->kernel);
    if (u == NULL)
        return;
    *u = (struct unseen){ .seq = eventlog_end(s->kernel->log).seq, .n = header.n };
    if (header.n > 0)
        memcpy(u->header, header.p, header.n);
    *s->unseen_last = u;
    s->unseen_last = &u->next;
    s->unseen_count++;
    s->unseen_bytes += header.n;
    while (s->unseen_count > SEAT_UNSEEN_MAX || s->unseen_bytes > SEAT_UNSEEN_BYTES) {
        forget_first(s);
        s->unseen_forgotten++;
    }
}

void seat_delivered(struct seat *s)
{
    int changed = 0;

    while (s->unseen != NULL && s->unseen->seq <= s->cursor.seq) {
        forget_first(s);
        changed = 1;
    }
    if (s->unseen == NULL)
        s->unseen_forgotten = 0;
    if (s->ask != NULL && !s->ask->given && s->ask->seq < s->cursor.seq)
        s->ask->given = changed = 1;
    if (changed)
        kernel_note_later(s->kernel);
}

void seat_free_kept(struct seat *s)
{
    close_heirs(s);
    while (s->unseen != NULL)
        forget_first(s);
    free(s->ask);
    s->ask = NULL;
}
