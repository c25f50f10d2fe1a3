/* seat_send - what a client sends: passed on to its kernel, or held until the kernel takes it. */
#include <errno.h>
#include <string.h>

#include "err.h"
#include "jmsg.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "metrics.h"
#include "seat.h"
#include "zsocket.h"

static int check_sizes(const struct jmsg *m, struct err *e)
{
    const struct jmsg_limits *max = &jmsg_limits_default;
    size_t total = 0;

    if (m->buffer_count + JMSG_FRAMES_FIXED > max->frames)
        return err_set(e, HC_ELIMIT, "more than %u frames", max->frames);
    for (unsigned i = 0; i < JMSG_PARTS + m->buffer_count; i++) {
        size_t n = i < JMSG_PARTS ? m->parts[i].n : m->buffers[i - JMSG_PARTS].n;
        total += n;
        if (n > max->frame || total > max->message)
            return err_set(e, HC_ELIMIT, "a message of more than %zu bytes", total);
    }
    return 0;
}

/* Some kernels end over a message that says not what it is, and throw away without a word what has no
 * version that they can read, or what they cannot name as the parent of an answer. Fields of other
 * types they take, each in its way. */
static int check_header(const struct jmsg_facts *f, struct err *e)
{
    const struct jmsg_header *h = &f->header;

    if (h->msg_type.kind != JSONSCAN_STRING || h->msg_id.kind != JSONSCAN_STRING)
        return err_set(e, HC_EPARSE, "header without msg_type or msg_id");
    if (jsonscan_given(h->version) && h->version.kind != JSONSCAN_STRING)
        return err_set(e, HC_EPARSE, "header.version is %s, not a string",
                       jsonscan_kind_name(h->version.kind));
    if (f->notes[0].lone_surrogates > 0)
        return err_set(e, HC_EPARSE, "a string of the header has half of a surrogate pair");
    return 0;
}

/* Whoever asked for a run gets an answer when it can tell that it is one to this. */
static void refuse(struct seat *s, const struct client_message *c, const struct jmsg *m,
                   const struct jmsg_facts *f, const struct err *e)
{
    struct kernel *k = s->kernel;

    if (f->header.msg_id.kind == JSONSCAN_STRING && kernel_is_run(c->channel, f) &&
        k->goal != KERNEL_DELETE && k->phase != KERNEL_GONE)
        kernel_refuse_run(s, m, "MalformedMessage", e->msg);
}

/* Takes the message to the kernel now. interrupted: its run is to be, from its start. */
static int forward(struct seat *s, enum jmsg_channel channel, const struct jmsg *m,
                   const struct jmsg_facts *f, int interrupted, struct err *e)
{
    struct kernel *k = s->kernel;
    struct seat_dealer *d = &s->dealers[channel];
    if (channel != JMSG_STDIN && !kernel_may_query(s, channel)) {
        s->blocked = 1;
        return err_set(e, EAGAIN, "too many requests without an answer");
    }
    int rc = seat_open_own(s, channel, e);
    if (rc == 0 && channel == JMSG_SHELL)
        rc = seat_open_own(s, JMSG_STDIN, e);
    if (rc < 0)
        return rc;
    int is_run = kernel_is_run(channel, f);
    /* Before all that takes time, and the line that a run begins: who waits for room comes again and again. */
    if (!zsocket_takes(d->socket, jmsg_bytes(m))) {
        s->blocked = 1;
        return err_set(e, EAGAIN, "the kernel does not take messages now");
    }
    if (is_run && kernel_audit_run(s, m, e) < 0) {
        kernel_refuse_run(s, m, "NotAudited", e->msg);
        return 0;
    }
    rc = link_send(k->link, d->socket, m, e);
    if (rc == -EAGAIN)
        s->blocked = 1;
    if (rc < 0 && is_run)
        kernel_audit_run_unsent(s, "not_sent");
    if (rc < 0)
        return rc;
    kernel_count_message(channel, m, METRIC_TO);
    if (channel == JMSG_STDIN) {
        kernel_input_answered(s);
        seat_answered(s);
    } else {
        struct query *q = kernel_note_query(s, channel, m, f);
        if (is_run) /* it has its number and its time now, which the note before it had not */
            kernel_note_later(k);
        if (interrupted)
            kernel_interrupt_run(k, q);
    }
    return 0;
}

static int is_named(struct jsonscan_value v)
{
    return jsonscan_given(v) && !jsonscan_string_equals(v, "");
}

static unsigned runs_of_all(const struct kernel *k)
{
    return queries_runs(k->queries) + k->held_runs;
}

static int has_nothing_here(const struct seat *s)
{
    return s->held == NULL && queries_count(s->kernel->queries, s->number) == 0;
}

/* Whoever has nothing here is let in: the end of what it has is what it is woken by. */
static int has_room_for_run(const struct seat *s)
{
    return runs_of_all(s->kernel) < SEATS_RUNS_MAX || has_nothing_here(s);
}

static int has_room(const struct seat *s, size_t bytes)
{
    if (s->held == NULL && bytes <= SEAT_HELD_FREE)
        return 1;
    if (s->held != NULL &&
        (s->held_count >= SEAT_HELD_MAX || s->held_bytes + bytes > SEAT_HELD_BYTES))
        return 0;
    if (kernel_may_hold(s->kernel, bytes))
        return 1;
    kernel_held_awaited(s->kernel);
    return 0;
}

static void count_held(struct seat *s, const struct held *h)
{
    s->held_count++;
    s->held_bytes += h->bytes;
    kernel_held_more(s->kernel, h->bytes);
    s->kernel->held_runs += h->is_run != 0;
}

static void free_held(struct seat *s, struct held *h)
{
    s->held_count--;
    s->held_bytes -= h->bytes;
    s->kernel->held_runs -= h->is_run != 0;
    kernel_held_less(s->kernel, h->bytes);
    buf_free(&h->names);
    free(h->buffers);
    free(h);
}

static int hold(struct seat *s, const struct client_message *c, const struct jmsg_facts *f,
                int is_run, struct err *e)
{
    const struct view *parts[EVENT_PARTS] = { &c->header, &c->parent_header, &c->metadata,
                                              &c->content };
    size_t n = 0;

    for (unsigned i = 0; i < EVENT_PARTS; i++)
        n += parts[i]->n;
    for (size_t i = 0; i < c->buffer_count; i++)
        n += c->buffers[i].n;
    if ((is_run && !has_room_for_run(s)) || !has_room(s, n)) {
        s->blocked = 1;
        return err_set(e, EAGAIN, "too much waits for the kernel");
    }
    struct held *h = malloc(sizeof *h + n);
    struct view *buffers = calloc(c->buffer_count + 1, sizeof *buffers);
    if (h == NULL || buffers == NULL) {
        free(h);
        free(buffers);
        return err_set(e, ENOMEM, "no memory for a message of %zu bytes", n);
    }
    *h = (struct held){ .channel = c->channel,
                        .is_run = is_run,
                        .to_subshell = is_named(f->header.subshell_id),
                        .order = ++s->kernel->held_count,
                        .stamp = s->kernel->notes,
                        .bytes = n,
                        .buffers = buffers,
                        .buffer_count = c->buffer_count };
    uint8_t *at = h->data;
    for (size_t i = 0; i < EVENT_PARTS + c->buffer_count; i++) {
        struct view from = i < EVENT_PARTS ? *parts[i] : c->buffers[i - EVENT_PARTS];
        struct view *to = i < EVENT_PARTS ? &h->parts[i] : &buffers[i - EVENT_PARTS];
        *to = (struct view){ at, from.n };
        if (from.n > 0)
            memcpy(at, from.p, from.n);
        at += from.n;
    }
    if (is_run)
        h->noted = seat_noted_header(h->parts[0], &h->names);
    *s->held_last = h;
    s->held_last = &h->next;
    count_held(s, h);
    return 0;
}

/* Requests wait for the proof of iopub. An answer to a question does not: while the
 * kernel waits for it there may be no proof. Nor does what goes to the control channel
 * of a kernel that was taken over in the middle of a cell. */
static int accepts(const struct kernel *k, enum jmsg_channel channel)
{
    return k->phase == KERNEL_ALIVE && k->signals == 0 && k->seeding == NULL &&
           (link_is_proven(k->link) || channel == JMSG_STDIN ||
            (channel == JMSG_CONTROL && k->adopted));
}

/* list: names with commas, or NULL for all. */
static int is_allowed(const char *list, struct jsonscan_value type)
{
    char name[QUERY_TYPE_MAX];

    if (list == NULL)
        return 1;
    if (jsonscan_string_copy(type, name, sizeof name, NULL) < 0)
        return 0;
    for (size_t n; *list != '\0'; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        if (strlen(name) == n && strncmp(list, name, n) == 0)
            return 1;
    }
    return 0;
}

static int is_held(const struct seat *s, enum jmsg_channel channel)
{
    const struct held *h = s->held;

    while (h != NULL && h->channel != channel)
        h = h->next;
    return h != NULL;
}

/* Dropped without an answer, as by Jupyter's servers. */
static int not_allowed(struct jsonscan_value type, struct err *e)
{
    char name[QUERY_TYPE_MAX];

    if (jsonscan_string_copy(type, name, sizeof name, NULL) < 0 ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyz_")] != '\0')
        return err_set(e, HC_EPARSE, "messages of this type are not allowed");
    return err_set(e, HC_EPARSE, "%s is none of --allowed-message-types", name);
}

int seat_send(struct seat *s, const struct client_message *c, struct err *e)
{
    struct kernel *k = s->kernel;
    struct jmsg m = { .parts = { c->header, c->parent_header, c->metadata, c->content },
                      .buffers = c->buffers,
                      .buffer_count = (unsigned)c->buffer_count };
    struct jmsg_facts facts;

    if (c->channel >= JMSG_IOPUB)
        return 0; /* nothing of a client goes there */
    int rc = check_sizes(&m, e);
    if (rc == 0)
        rc = jmsg_scan(&m, &jmsg_limits_default, &facts, e);
    if (rc < 0)
        return rc == -HC_ELIMIT ? rc : -HC_EPARSE;
    rc = check_header(&facts, e);
    if (rc < 0) {
        refuse(s, c, &m, &facts, e);
        return rc;
    }
    if (!is_allowed(sessions_policy(k->all)->message_types, facts.header.msg_type))
        return not_allowed(facts.header.msg_type, e);
    if (k->goal == KERNEL_DELETE || k->phase == KERNEL_GONE)
        return 0; /* nobody will answer; the client hears of the end */
    int is_run = kernel_is_run(c->channel, &facts);
    if (is_run && runs_of_all(k) >= SEATS_RUNS_MAX + SEATS_RUNS_SPARE && has_nothing_here(s)) {
        kernel_refuse_run(s, &m, "NotSent", "too many cells wait at this kernel");
        return 0;
    }
    int may_pass = c->channel != JMSG_SHELL && !is_held(s, c->channel);
    if (is_run || !accepts(k, c->channel) || (s->held != NULL && !may_pass)) {
        rc = hold(s, c, &facts, is_run, e);
        if (!is_run)
            return rc;
        if (rc == -ENOMEM)
            kernel_refuse_run(s, &m, "NotSent", e->msg);
        if (rc < 0)
            return rc;
        kernel_note_later(k);
        seat_resume(s);
        return 0;
    }
    rc = forward(s, c->channel, &m, &facts, 0, e);
    if (rc < 0 && rc != -EAGAIN && rc != -HC_ELIMIT) {
        log_warn("message_not_sent", "kernel=%s error=\"%s\"", k->id, e->msg);
        return 0; /* no fault of the message */
    }
    return rc;
}

/* 1: it went, or nothing more is to be done about it; 0: it has to wait. */
static int release_one(struct seat *s, struct held *h)
{
    struct jmsg m = { .buffers = h->buffers, .buffer_count = (unsigned)h->buffer_count };
    struct jmsg_facts facts;
    struct err e = { 0 };

    memcpy(m.parts, h->parts, sizeof m.parts);
    enum seat_stdin can = h->is_run ? seat_stdin_for(s, &m) : SEAT_STDIN_GO;
    if (can == SEAT_STDIN_WAIT)
        return 0;
    if (can == SEAT_STDIN_REFUSE) {
        seat_stdin_refuse(s, &m);
        return 1;
    }
    /* The next gateway knows of a run before the kernel does. */
    if (h->is_run && s->kernel->notes <= h->stamp && !kernel_note_now(s->kernel))
        return 0;
    int rc = jmsg_scan(&m, &jmsg_limits_default, &facts, &e);
    if (rc == 0)
        rc = forward(s, h->channel, &m, &facts, h->interrupted, &e);
    if (rc == -EAGAIN)
        return 0;
    if (rc == 0)
        return 1;
    log_warn("message_not_sent", "kernel=%s error=\"%s\"", s->kernel->id, e.msg);
    if (h->is_run)
        kernel_refuse_run(s, &m, "NotSent", e.msg);
    return 1;
}

static void release(struct seat *s)
{
    while (s->held != NULL) {
        struct held *h = s->held;
        if (!release_one(s, h))
            return;
        s->held = h->next;
        if (s->held == NULL)
            s->held_last = &s->held;
        free_held(s, h);
    }
}

void seat_resume(struct seat *s)
{
    if (!accepts(s->kernel, JMSG_SHELL))
        return;
    release(s);
    if (s->held == NULL && s->blocked && s->client != NULL) {
        s->blocked = 0;
        client_writable_later(s->client);
    }
}

void seats_release(struct kernel *k)
{
    for (struct seat *s = k->seats; s != NULL; s = s->next)
        seat_resume(s);
}

int seats_interrupt_held(struct kernel *k)
{
    struct held *first = NULL;

    for (struct seat *s = k->seats; s != NULL; s = s->next) {
        for (struct held *h = s->held; h != NULL; h = h->next) {
            if (h->is_run && !h->to_subshell && (first == NULL || h->order < first->order))
                first = h;
        }
    }
    if (first != NULL)
        first->interrupted = 1;
    return first != NULL;
}

void seat_forget_held(struct seat *s)
{
    while (s->held != NULL) {
        struct held *h = s->held;
        s->held = h->next;
        free_held(s, h);
    }
    s->held_last = &s->held;
}

void seats_refuse_held(struct kernel *k, const char *ename, const char *why)
{
    for (struct seat *s = k->seats; s != NULL; s = s->next) {
        for (const struct held *h = s->held; h != NULL; h = h->next) {
            struct jmsg m = { 0 };
            memcpy(m.parts, h->parts, sizeof m.parts);
            if (h->is_run)
                kernel_refuse_run(s, &m, ename, why);
        }
        seat_forget_held(s);
        if (s->blocked && s->client != NULL) {
            s->blocked = 0;
            client_writable_later(s->client);
        }
    }
}
