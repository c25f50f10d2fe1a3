#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "kernel_own.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "origin.h"
#include "ownmsg.h"
#include "ratelimit.h"
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
    struct buf header, content; /* owned: of a marker, or of what the rate limit says */
    struct ratelimit *limit;    /* owned; NULL: none */
};

static void free_client(struct client *c)
{
    deferred_remove(c->deferred, DEFERRED_WORK, &c->node);
    buf_free(&c->header);
    buf_free(&c->content);
    free(c->limit);
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
    if (session_id != NULL && strlen(session_id) > SEAT_SID_MAX)
        return err_set(e, EINVAL, "session_id is longer than %d bytes", SEAT_SID_MAX);
    if (k->phase == KERNEL_GONE)
        return err_set(e, HC_EGONE, "the kernel is gone");
    if (session_id != NULL && !seat_has_room(k, session_id))
        return err_set(e, HC_ELIMIT, "the kernel has %d clients already", SEATS_TAKEN_MAX);
    struct seat *s = session_id != NULL ? seat_take(k, session_id) : seat_take_reader(k);
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
    if (ratelimit_is_set(&sessions_policy(k->all)->iopub_rate)) {
        c->limit = xcalloc(1, sizeof *c->limit);
        ratelimit_init(c->limit, &sessions_policy(k->all)->iopub_rate);
    }
    s->client = c;
    seat_catch_up(s);
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

static const struct jsonscan_rules loose = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, 512 };

static void text_in(struct view object, const char *key, char *out, size_t n)
{
    const char *const keys[] = { key };
    struct jsonscan_value v;

    if (jsonscan_object(object, &loose, keys, 1, &v, NULL, NULL) < 0 ||
        jsonscan_string_copy(v, out, n, NULL) < 0)
        out[0] = '\0';
}

/* A message of ours in the place of an entry. */
static void give_own(struct client *c, const struct event *ev, const char *type,
                     struct client_event *ret)
{
    ownmsg_header(&c->header, type, c->seat->sid, NULL);
    *ret = (struct client_event){
        .seq = ev->seq,
        .channel = ev->channel,
        .header = buf_view(&c->header),
        .parent_header = ev->parts[1].n > 0 ? ev->parts[1] : VIEW_STR("{}"),
        .metadata = VIEW_STR(OWNMSG_METADATA),
        .content = buf_view(&c->content),
    };
}

static void clear_own(struct client *c)
{
    buf_clear(&c->header);
    buf_clear(&c->content);
}

static void give_words(struct client *c, const struct event *ev, const char *text,
                       struct client_event *ret)
{
    clear_own(c);
    ownmsg_stream(&c->content, "stderr", text);
    give_own(c, ev, "stream", ret);
}

/* What the log gave up is told where it was. */
static void give_marker(struct client *c, const struct event *ev, struct client_event *ret)
{
    const uint64_t *n = ev->lost.count;
    uint64_t all = n[LOST_STREAM] + n[LOST_DISPLAY] + n[LOST_OTHER];
    char text[320], kinds[120] = "";

    if (all > n[LOST_STREAM])
        snprintf(kinds, sizeof kinds,
                 " (%" PRIu64 " of text, %" PRIu64 " displays and results, %" PRIu64 " others)",
                 n[LOST_STREAM], n[LOST_DISPLAY], n[LOST_OTHER]);
    snprintf(text, sizeof text,
             "\n[holdcell] %" PRIu64 " messages with %" PRIu64
             " bytes of output were dropped here%s: nobody read them in time\n",
             all, ev->lost.bytes, kinds);
    give_words(c, ev, text, ret);
}

/* The reply came and was too long to be kept: what it said is not known any more. */
static void give_cut(struct client *c, const struct event *ev, struct client_event *ret)
{
    char text[160], type[64];

    text_in(ev->parts[0], "msg_type", type, sizeof type);
    snprintf(text, sizeof text,
             "the kernel's reply of %" PRIu64 " bytes was given up: nobody read it in time",
             ev->lost.bytes);
    clear_own(c);
    ownmsg_error(&c->content, 1, "ReplyLost", text, NULL);
    give_own(c, ev, type, ret);
}

/* ---- the rate limit ---- */

static uint64_t bytes_of(const struct event *ev)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < EVENT_PARTS; i++)
        n += ev->parts[i].n;
    for (size_t i = 0; i < ev->buffer_count; i++)
        n += ev->buffers[i].n;
    return n;
}

static enum ratelimit_verdict ask_limit(struct client *c, const struct event *ev)
{
    char type[64], state[16];

    text_in(ev->parts[0], "msg_type", type, sizeof type);
    if (strcmp(type, "status") == 0) {
        text_in(ev->parts[3], "execution_state", state, sizeof state);
        if (strcmp(state, "idle") == 0)
            ratelimit_idle(c->limit);
    }
    /* What the gateway says itself is rare, and told for a reason. */
    if (ratelimit_exempts(type) || view_equals(ev->parts[2], OWNMSG_METADATA))
        return RATELIMIT_PASS;
    return ratelimit_ask(c->limit, ev->kind == EVENT_STREAM ? bytes_of(ev) : 0,
                         loop_now_ms(sessions_loop(c->kernel->all)));
}

static void give_excess(struct client *c, const struct event *ev, enum ratelimit_verdict v,
                        struct client_event *ret)
{
    const struct ratelimit_config *f = &c->limit->config;
    int data = v == RATELIMIT_DROP_BYTES;
    char text[400];

    snprintf(text, sizeof text,
             "IOPub %s rate exceeded.\n"
             "The server temporarily stops sending output to this client, so as not to crash it.\n"
             "The limit is set by the server's option --iopub-%s-rate.\n\n"
             "Current values:\n--iopub-%s-rate=%llu (%s/sec)\n--iopub-rate-window=%.3g (secs)\n",
             data ? "data" : "message", data ? "data" : "msg", data ? "data" : "msg",
             (unsigned long long)(data ? f->bytes : f->messages), data ? "bytes" : "msgs",
             (double)f->window_ms / 1000);
    give_words(c, ev, text, ret);
}

/* -1: the event passes; 0: it is dropped; 1: likewise, and *ret says so. */
static int give_limited(struct client *c, const struct event *ev, struct client_event *ret)
{
    enum ratelimit_verdict v = ask_limit(c, ev);

    if (v == RATELIMIT_PASS)
        return -1;
    metrics_count(METRIC_DROPPED, METRIC_RATE_LIMIT);
    if (v == RATELIMIT_DROP)
        return 0;
    give_excess(c, ev, v, ret);
    return 1;
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

/* 0: the rate limit dropped it. */
static int give_any(struct client *c, const struct event *ev, struct client_event *ret)
{
    if (ev->kind == EVENT_MARKER) {
        give_marker(c, ev, ret);
        return 1;
    }
    if (ev->kind == EVENT_CUT) {
        give_cut(c, ev, ret);
        return 1;
    }
    int limited = c->limit != NULL && ev->channel == JMSG_IOPUB ? give_limited(c, ev, ret) : -1;
    if (limited < 0)
        give(ev, ret);
    return limited != 0;
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
        if (give_any(c, &ev, ret))
            return 1;
    }
    c->told = 0;
    if (rc < 0) {
        metrics_count(METRIC_CLIENTS_LAGGED, 0);
        log_warn("client_lagged", "kernel=%s", c->kernel->id);
        seat_fell_behind(c->seat);
        client_end_later(c, CLIENT_LAGGED, 1);
    } else if (c->ending) {
        call_later(c);
    }
    return 0;
}
