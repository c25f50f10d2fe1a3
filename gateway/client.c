#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "kernel_own.h"
#include "log.h"
#include "metrics.h"
#include "origin.h"
#include "ownmsg.h"
#include "seat.h"

struct client {
    struct kernel *kernel;     /* borrowed; NULL once another socket took the seat */
    struct seat *seat;         /* likewise */
    struct deferred *deferred; /* borrowed */
    struct client_ops ops;
    void *arg; /* borrowed */
    struct deferred_node node;
    int told;     /* readable() was called, client_next() did not return 0 yet */
    int writable; /* owed */
    int ending, end_now, ended;
    enum client_end why;
    int in_call, detached;
    struct buf header, content; /* owned: of a marker */
};

const char *channel_name(enum channel c)
{
    static const char *const names[CHANNEL_COUNT] = { "shell", "control", "stdin", "iopub" };

    return c < CHANNEL_COUNT ? names[c] : "unknown";
}

static void free_client(struct client *c)
{
    deferred_remove(c->deferred, DEFERRED_WORK, &c->node);
    buf_free(&c->header);
    buf_free(&c->content);
    free(c);
}

/* Whether an entry waits that is for this client, or an end of the log. */
static int has_more(struct client *c)
{
    struct event ev;
    struct eventlog_cursor at = c->seat->cursor;
    int rc;

    while ((rc = eventlog_read(c->kernel->log, &at, &ev)) == 1) {
        if (ev.addressee == 0 || ev.addressee == c->seat->number)
            return 1;
        c->seat->cursor = at; /* nothing of ours before it */
    }
    return rc < 0;
}

/* All calls out of this module start here, at the end of a turn: whoever adds to
 * the log or ends a client is never called back in the middle of it. */
static void on_turn(void *arg)
{
    struct client *c = arg;

    c->in_call = 1;
    if (c->writable && !c->ended) {
        c->writable = 0;
        c->ops.writable(c->arg);
    }
    if (!c->detached && !c->ended && !c->end_now && c->seat != NULL && !c->told && has_more(c)) {
        c->told = 1;
        c->ops.readable(c->arg);
    }
    if (!c->detached && !c->ended && c->ending &&
        (c->end_now || c->seat == NULL || (!c->told && !has_more(c)))) {
        c->ended = 1;
        c->ops.ended(c->arg, c->why);
    }
    c->in_call = 0;
    if (c->detached)
        free_client(c);
}

static void call_later(struct client *c)
{
    if (!c->detached)
        deferred_add(c->deferred, DEFERRED_WORK, &c->node);
}

void client_writable_later(struct client *c)
{
    c->writable = 1;
    call_later(c);
}

void client_end_later(struct client *c, enum client_end why, int now)
{
    if (!c->ending) {
        c->ending = 1;
        c->why = why;
    }
    c->end_now |= now;
    call_later(c);
}

void client_orphan(struct client *c)
{
    c->seat = NULL;
    c->kernel = NULL;
}

void kernel_end_clients(struct kernel *k, enum client_end why, int now)
{
    for (struct seat *s = k->seats; s != NULL; s = s->next) {
        if (s->client != NULL)
            client_end_later(s->client, why, now);
    }
}

void kernel_wake_clients(struct kernel *k)
{
    for (struct seat *s = k->seats; s != NULL; s = s->next) {
        if (s->client != NULL && !s->client->told)
            call_later(s->client);
    }
}

int client_attach(struct kernel *k, const char *session_id, const struct client_ops *ops, void *arg,
                  struct client **ret, struct err *e)
{
    if (strlen(session_id) > SEAT_SID_MAX)
        return err_set(e, EINVAL, "session_id is longer than %d bytes", SEAT_SID_MAX);
    if (k->phase == KERNEL_GONE)
        return err_set(e, HC_EGONE, "the kernel is gone");
    struct seat *s = seat_take(k, session_id);
    if (s->client != NULL) {
        struct client *old = s->client;
        old->seat = NULL;
        old->kernel = NULL;
        k->connections--;
        client_end_later(old, CLIENT_REPLACED, 1);
    }
    struct client *c = xcalloc(1, sizeof *c);
    *c = (struct client){
        .kernel = k, .seat = s, .deferred = sessions_deferred(k->all), .ops = *ops, .arg = arg
    };
    c->node = (struct deferred_node){ .fn = on_turn, .arg = c };
    buf_init(&c->header, OWNMSG_MAX);
    buf_init(&c->content, OWNMSG_MAX);
    s->client = c;
    s->origin = origin_drop(s->origin);
    s->origin = origin_hold(origin_now());
    k->connections++;
    call_later(c); /* what it missed */
    *ret = c;
    return 0;
}

void client_detach(struct client *c)
{
    struct kernel *k = c->kernel;

    if (c->seat != NULL) {
        k->connections--;
        seat_leave(c->seat);
    }
    c->seat = NULL;
    c->kernel = NULL;
    c->detached = 1;
    if (!c->in_call)
        free_client(c);
    if (k != NULL)
        kernel_client_left(k);
}

int client_send(struct client *c, const struct client_message *m, struct err *e)
{
    if (c->seat == NULL || c->ended)
        return 0;
    return seat_send(c->seat, m, e);
}

/* Text that the log gave up is told where it was. */
static void give_marker(struct client *c, const struct event *ev, struct client_event *ret)
{
    char text[200];

    buf_clear(&c->header);
    buf_clear(&c->content);
    ownmsg_header(&c->header, "stream", c->seat->sid, NULL);
    snprintf(text, sizeof text,
             "\n[holdcell] %llu messages with %llu bytes of output were dropped here: "
             "nobody read them in time\n",
             (unsigned long long)ev->dropped, (unsigned long long)ev->dropped_bytes);
    ownmsg_stream(&c->content, "stderr", text);
    *ret = (struct client_event){
        .seq = ev->seq,
        .channel = CHANNEL_IOPUB,
        .header = buf_view(&c->header),
        .parent_header = ev->parts[1].n > 0 ? ev->parts[1] : VIEW_STR("{}"),
        .metadata = VIEW_STR(OWNMSG_METADATA),
        .content = buf_view(&c->content),
    };
}

static void give(const struct event *ev, struct client_event *ret)
{
    *ret = (struct client_event){
        .seq = ev->seq,
        .channel = ev->channel,
        .header = ev->parts[0],
        .parent_header = ev->parts[1],
        .metadata = ev->parts[2],
        .content = ev->parts[3],
        .buffers = ev->buffers,
        .buffer_count = ev->buffer_count,
    };
}

int client_next(struct client *c, struct client_event *ret)
{
    struct event ev;
    int rc = 0;

    while (c->seat != NULL && !c->ended && !c->end_now &&
           (rc = eventlog_read(c->kernel->log, &c->seat->cursor, &ev)) == 1) {
        if (ev.addressee != 0 && ev.addressee != c->seat->number)
            continue;
        if (c->seat->unseen != NULL || c->seat->ask != NULL)
            seat_delivered(c->seat);
        if (ev.kind == EVENT_MARKER)
            give_marker(c, &ev, ret);
        else
            give(&ev, ret);
        return 1;
    }
    c->told = 0;
    if (rc < 0) {
        metrics_count(METRIC_CLIENTS_LAGGED, 0);
        log_warn("client_lagged", "kernel=%s", c->kernel->id);
        c->seat->cursor = eventlog_end(c->kernel->log);
        client_end_later(c, CLIENT_LAGGED, 1);
    } else if (c->ending) {
        call_later(c);
    }
    return 0;
}
