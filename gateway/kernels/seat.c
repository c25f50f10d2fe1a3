#include "seat.h"

#include <string.h>

#include "err.h"
#include "jmsg.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "origin.h"
#include "random.h"

static void on_message(void *arg, const struct view *frames, size_t count)
{
    static struct log_limit limit;
    struct seat_dealer *d = arg;
    struct jmsg m;
    struct jmsg_facts facts;
    struct err e = { 0 };
    char text[200];

    struct link *l = d->seat->kernel->link;
    size_t bytes;
    d->heard = 1;
    int rc = link_take(l, frames, count, &m, &facts, &e);
    if (rc == 0) {
        kernel_on_reply(d->seat, d->channel, &m, &facts);
        return;
    }
    if (log_allowed(&limit, 20))
        log_warn("message_dropped", "on=%s why=%s", jmsg_channel_name(d->channel),
                 log_escape(e.msg, strlen(e.msg), text, sizeof text));
    if (rc == -HC_ELIMIT && link_salvage(l, frames, count, &m, &facts, &bytes) == 0)
        kernel_on_oversized_reply(d->seat, d->channel, &facts, bytes, e.msg);
}

static void on_writable(void *arg)
{
    struct seat_dealer *d = arg;

    seat_resume(d->seat);
}

int seat_open_dealer(struct seat_dealer *d, const char *identity, struct err *e)
{
    static const struct zsocket_ops plain = { .message = on_message, .writable = on_writable };
    static const struct zsocket_ops asked = { .message = on_message,
                                              .writable = on_writable,
                                              .joined = seat_stdin_joined,
                                              .gone = seat_stdin_gone };
    static const unsigned endpoints[SEAT_DEALERS] = {
        [JMSG_SHELL] = ENDPOINT_SHELL,
        [JMSG_CONTROL] = ENDPOINT_CONTROL,
        [JMSG_STDIN] = ENDPOINT_STDIN,
    };
    struct link *l = d->seat->kernel->link;

    if (d->socket != NULL || l == NULL)
        return 0;
    d->heard = 0;
    /* Not an heir's: nothing is sent on it, so that nothing waits for it. */
    const struct zsocket_ops *ops = d == &d->seat->dealers[JMSG_STDIN] ? &asked : &plain;
    return link_dealer(l, endpoints[d->channel], identity, ops, d, &d->socket, e);
}

int seat_open_own(struct seat *s, enum jmsg_channel channel, struct err *e)
{
    /* One identity for shell and stdin: the kernel asks for input under the
     * routing frames of the request. Random, so that no other socket ever had it
     * (a kernel without ROUTER_HANDOVER would ignore the second one). */
    if (s->identity[0] == '\0' && s->kernel->link != NULL)
        random_text(s->identity, sizeof s->identity - 1);
    return seat_open_dealer(&s->dealers[channel], s->identity, e);
}

/* The stdin socket is there before the first request that may ask for input: the
 * kernel's question goes to whoever is connected. */
static void open_first(struct seat *s)
{
    struct err e = { 0 };

    if (seat_open_own(s, JMSG_SHELL, &e) < 0 || seat_open_own(s, JMSG_STDIN, &e) < 0)
        log_error("seat_socket", "kernel=%s error=\"%s\"", s->kernel->id, e.msg);
}

void seat_close_dealers(struct seat *s)
{
    for (unsigned i = 0; i < SEAT_DEALERS; i++)
        s->dealers[i].socket = zsocket_close(s->dealers[i].socket);
    s->identity[0] = '\0';
    seat_stdin_forget(s);
}

struct seat *seat_new(struct kernel *k, const char *sid, int returns)
{
    struct seat *s = xcalloc(1, sizeof *s);
    char made[33];

    random_text(made, sizeof made - 1);
    s->kernel = k;
    s->number = ++k->next_seat;
    s->returns = returns;
    s->sid = xstrdup(*sid != '\0' ? sid : made);
    s->unseen_last = &s->unseen;
    s->cursor = eventlog_end(k->log);
    s->held_last = &s->held;
    for (unsigned i = 0; i < SEAT_DEALERS; i++)
        s->dealers[i] = (struct seat_dealer){ .seat = s, .channel = (enum jmsg_channel)i };
    s->next = k->seats;
    if (s->next != NULL)
        s->next->prev = s;
    k->seats = s;
    return s;
}

static struct seat *find(const struct kernel *k, const char *sid)
{
    struct seat *s = k->seats;

    while (s != NULL && (*sid == '\0' || !s->returns || strcmp(s->sid, sid) != 0))
        s = s->next;
    return s;
}

int seat_has_room(const struct kernel *k, const char *sid)
{
    const struct seat *own = find(k, sid);
    unsigned taken = 0;

    for (const struct seat *s = k->seats; s != NULL; s = s->next)
        taken += s->client != NULL && !s->reads_only;
    return taken < SEATS_TAKEN_MAX || (own != NULL && own->client != NULL);
}

struct seat *seat_take_reader(struct kernel *k)
{
    struct seat *s = seat_new(k, "", 0);

    s->reads_only = 1;
    return s;
}

struct seat *seat_take(struct kernel *k, const char *sid)
{
    struct seat *s = find(k, sid);

    if (s == NULL) {
        s = seat_new(k, sid, *sid != '\0');
        seat_tell_lost_place(s);
    }
    s->inherited = s->cut_off = 0;
    kernel_note_later(k);
    if (k->phase == KERNEL_ALIVE)
        open_first(s);
    return s;
}

void seat_end(struct seat *s)
{
    if (s->client != NULL)
        client_orphan(s->client);
    seat_close_dealers(s);
    seat_forget_held(s);
    queries_leave(s->kernel->queries, s->number, loop_now_ms(sessions_loop(s->kernel->all)));
    seat_free_kept(s);
    if (s->prev != NULL)
        s->prev->next = s->next;
    else
        s->kernel->seats = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    if (!s->reads_only && s->cursor.seq < eventlog_end(s->kernel->log).seq)
        eventlog_reader_left(s->kernel->log);
    s->origin = origin_drop(s->origin);
    free(s->sid);
    free(s);
}

void seats_end_all(struct kernel *k)
{
    while (k->seats != NULL)
        seat_end(k->seats);
}

void seats_open(struct kernel *k)
{
    for (struct seat *s = k->seats; s != NULL; s = s->next) {
        if (s->client != NULL && !s->reads_only)
            open_first(s);
    }
}

void seats_close(struct kernel *k)
{
    seats_close_heirs(k);
    for (struct seat *s = k->seats; s != NULL; s = s->next)
        seat_close_dealers(s);
}

void seat_reopen(struct seat *s, enum jmsg_channel channel)
{
    struct seat_dealer *d = &s->dealers[channel];
    struct err e = { 0 };

    if (d->socket == NULL)
        return;
    log_info("seat_reopened", "kernel=%s on=%s", s->kernel->id, jmsg_channel_name(channel));
    d->socket = zsocket_close(d->socket);
    if (seat_open_own(s, channel, &e) < 0)
        log_error("seat_socket", "kernel=%s error=\"%s\"", s->kernel->id, e.msg);
}
