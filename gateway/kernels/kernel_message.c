/* What a kernel says and what its clients ask: which messages are believed, what
 * they mean for state and runs, and their way into the event log. */
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "jmsg.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "ownmsg.h"
#include "seat.h"

static const struct jsonscan_rules loose = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, 512 };

static void copy(struct jsonscan_value v, char *out, size_t n)
{
    if (jsonscan_string_copy(v, out, n, NULL) < 0)
        out[0] = '\0';
}

/* The names that decide about a message; "" for what is absent or too long. */
struct names {
    char type[QUERY_TYPE_MAX], parent_type[QUERY_TYPE_MAX];
    char parent_id[QUERY_ID_MAX], parent_session[QUERY_ID_MAX];
};

static void read_names(const struct jmsg_facts *f, struct names *n)
{
    copy(f->header.msg_type, n->type, sizeof n->type);
    copy(f->parent.msg_type, n->parent_type, sizeof n->parent_type);
    copy(f->parent.msg_id, n->parent_id, sizeof n->parent_id);
    copy(f->parent.session, n->parent_session, sizeof n->parent_session);
}

void kernel_count_message(enum jmsg_channel channel, const struct jmsg *m, unsigned direction)
{
    metrics_add(METRIC_KERNEL_MESSAGES, channel, direction, 0, 1);
    metrics_add(METRIC_KERNEL_BYTES, channel, direction, 0, jmsg_bytes(m));
}

/* ---- into the log ---- */

/* Errors without what they say, as jupyter_server words it. */
static void hide_error(struct event *ev, const char *type, struct buf *out)
{
    static const char line[] =
        "An exception occurred at runtime, which is not shown due to security reasons.";
    char status[16] = "";

    if (strcmp(type, "error") != 0) {
        const char *const keys[] = { "status" };
        struct jsonscan_value v;
        if (strcmp(type, "execute_reply") != 0 ||
            jsonscan_object(ev->parts[3], &loose, keys, 1, &v, NULL, NULL) < 0)
            return;
        copy(v, status, sizeof status);
        if (strcmp(status, "error") != 0)
            return;
    }
    ownmsg_error(out, status[0] != '\0', "ExecutionError", "Execution error", line);
    ev->parts[3] = buf_view(out);
}

/* Whose request an idle or a reply ends, gets it whatever else is given up. */
struct shelf {
    enum event_kind kind;
    uint64_t addressee, owner;
};

static struct shelf shelf_of_iopub(const struct query *q, const char *type, const char *state,
                                   size_t bytes)
{
    enum { RESULT_SMALL = 64 * 1024 }; /* of a cell there is one */

    if (strcmp(type, "stream") == 0)
        return (struct shelf){ .kind = EVENT_STREAM };
    if (strcmp(type, "display_data") == 0 || strcmp(type, "update_display_data") == 0 ||
        (strcmp(type, "execute_result") == 0 && bytes > RESULT_SMALL))
        return (struct shelf){ .kind = EVENT_DISPLAY };
    if (q != NULL && strcmp(state, "idle") == 0) /* one of each: the next finds no query */
        return (struct shelf){ .kind = EVENT_END, .owner = q->seat };
    return (struct shelf){ .kind = EVENT_KEEP };
}

static void log_message(struct kernel *k, enum jmsg_channel channel, struct shelf shelf,
                        const struct jmsg *m, const char *type)
{
    autobuf struct buf hidden = { 0 };
    struct event ev = {
        .kind = shelf.kind,
        .channel = channel,
        .addressee = shelf.addressee,
        .owner = shelf.owner,
        .buffers = m->buffers,
        .buffer_count = m->buffer_count,
    };

    kernel_count_message(channel, m, METRIC_FROM);
    memcpy(ev.parts, m->parts, sizeof ev.parts);
    if (sessions_policy(k->all)->no_tracebacks) {
        buf_init(&hidden, OWNMSG_MAX);
        hide_error(&ev, type, &hidden);
    }
    eventlog_add(k->log, &ev);
    kernel_wake_clients(k);
}

static void drop(struct kernel *k, uint64_t *counter, enum metric_drop reason, const char *why,
                 const char *type)
{
    static struct log_limit limit;
    char text[QUERY_TYPE_MAX * 2];

    ++*counter;
    metrics_count(METRIC_DROPPED, reason);
    if (log_allowed(&limit, 20))
        log_warn("message_dropped", "kernel=%s why=%s type=%s", k->id, why,
                 log_escape(type, strlen(type), text, sizeof text));
}

/* What may have ended the run of q: tells the log, forgets what is done. 1: q is gone. Nothing
 * is sent for it, so that no other query comes or goes. */
static int finish(struct kernel *k, struct query *q)
{
    if (q->is_run && run_ended(&q->run) && !q->counted_out)
        kernel_run_ended(k, q);
    int inherited = q->inherited;
    int gone = queries_settle(k->queries, q);
    if (inherited)
        kernel_inheritance_done(k);
    return gone;
}

/* Likewise, and goes on with what had waited for its end: any query may be gone then, so this
 * comes last. */
static void settle(struct kernel *k, struct query *q)
{
    uint64_t owner = q->seat;

    if (!finish(k, q))
        return;
    struct seat *s = seat_by_number(k, owner);
    if (s != NULL && s->client == NULL)
        seats_sweep(k); /* perhaps it was the last thing that a parked seat waited for */
    if (s != NULL && (s->blocked || s->held != NULL))
        seat_resume(s);
}

void kernel_end_ignored(struct kernel *k, struct query *q)
{
    run_end(&q->run, RUN_LOST);
    q->replied = q->idle = 1;
    kernel_tell_reply(k, q, "RunLost", "the kernel ignored the request");
    kernel_tell_idle(k, q->seat, q->header);
    (void)finish(k, q);
}

/* A kernel takes the requests of one (sub)shell in order. One that is before an
 * executed one of the same client and of which nothing was heard was ignored: a
 * byte-identical repetition, or a message that the kernel could not read. */
static void end_ignored(struct kernel *k, const struct query *done)
{
    for (struct query *q = queries_first(k->queries), *next; q != NULL && q != done; q = next) {
        next = queries_next(k->queries, q);
        if (!q->is_run || q->inherited || q->busy || q->idle || q->replied || run_ended(&q->run) ||
            q->seat != done->seat || q->channel != done->channel ||
            strcmp(q->subshell, done->subshell) != 0)
            continue;
        kernel_end_ignored(k, q); /* done is settled later, and is of the same seat */
    }
}

/* Which runs a message of the kernel is about, before it goes to clients. */
static void look_ahead(struct kernel *k, struct query *q, const struct names *n,
                       const struct jmsg *m, const char *state)
{
    if (q == NULL)
        return;
    q->heard = 1;
    if (strcmp(state, "idle") == 0 && n->parent_type[0] != '\0') {
        session_tell_memory(k->session);
        kernel_tell_dropped(k, q);
    }
    if (k->inherited > 0)
        kernel_heard_of(k, q, strcmp(state, "busy") == 0);
    if (!q->run.overdue)
        return;
    kernel_see_stop(q, m, n->type);
    if (strcmp(state, "idle") == 0)
        kernel_tell_stop(k, q, q->replied ? q->run.verdict == RUN_TIMED_OUT : q->interrupt_seen);
}

static void on_status(struct kernel *k, const struct names *n, const char *state)
{
    struct query *q = queries_match_status(k->queries, n->parent_id, n->parent_session);

    if (q == NULL || n->parent_type[0] == '\0')
        return;
    if (strcmp(state, "busy") == 0) {
        if (!q->busy) {
            q->busy_ms = loop_now_ms(sessions_loop(k->all));
            if (q->is_run)
                k->late_output = (struct output_use){ 0 };
        }
        q->busy = 1;
        run_busy(&q->run);
        kernel_is_ready_now(k);
        kernel_interrupt_busy(k, q);
    } else if (strcmp(state, "idle") == 0) {
        q->idle = 1;
        q->idle_ms = loop_now_ms(sessions_loop(k->all));
        if (q->is_run)
            run_idle(&q->run, q->idle_ms);
        if (q->is_run && q->replied)
            end_ignored(k, q);
        if (query_lacks_answer(q))
            kernel_watch(k);
        settle(k, q);
    }
}

/* Other servers let a client in when the kernel has answered, so that nobody sees what
 * it said before, without a parent, and some clients read parent_header.msg_id of
 * whatever comes. After a restart the sockets are there, and get it. The status may be
 * read later than the answer: that came by another socket. */
static int is_from_the_start(const struct kernel *k, const char *type, const char *state)
{
    return k->generation == 1 && (kernel_is_starting(k) || strcmp(state, "starting") == 0 ||
                                  strcmp(type, "iopub_welcome") == 0);
}

void kernel_on_iopub(void *arg, const struct jmsg *m, const struct jmsg_facts *f)
{
    struct kernel *k = arg;
    struct names n;
    char state[32] = "";

    read_names(f, &n);
    k->iopub_ms = loop_now_ms(sessions_loop(k->all));
    copy(f->header.session, k->sid, sizeof k->sid);
    int is_status = strcmp(n.type, "status") == 0;
    if (is_status) {
        const char *const keys[] = { "execution_state" };
        struct jsonscan_value v;
        if (jsonscan_object(m->content, &loose, keys, 1, &v, NULL, NULL) == 0)
            copy(v, state, sizeof state);
        /* Life and death are the launcher's to tell. */
        if (strcmp(state, "dead") == 0 || strcmp(state, "restarting") == 0) {
            drop(k, &k->dropped.state_claims, METRIC_STATE_CLAIM, "state_claim", n.type);
            return;
        }
    }
    activity_message(&k->activity, n.type, n.parent_type, state, kernel_now(k));
    /* The gateway's own question for the state is no client's affair: some count idles (T18).
     * Nor is an interrupt by message of a kernel that is interrupted by signals, as far as its
     * kernelspec says. Other interrupt and shutdown requests are. */
    if (is_status && strcmp(n.parent_session, sessions_own_sid(k->all)) == 0 &&
        (strcmp(n.parent_type, "kernel_info_request") == 0 ||
         (k->recipe.sockets_fd && strcmp(n.parent_type, "interrupt_request") == 0)))
        return;
    if (n.parent_type[0] == '\0' && is_from_the_start(k, n.type, state))
        return;
    /* Nor is what the seed notebook says. */
    if (strcmp(n.parent_type, "execute_request") == 0 &&
        strcmp(n.parent_session, sessions_own_sid(k->all)) == 0) {
        kernel_seed_status(k, f->parent.msg_id, state);
        return;
    }
    struct query *q = queries_match_status(k->queries, n.parent_id, n.parent_session);
    if (q != NULL)
        activity_answer(&k->activity, q->type, kernel_now(k));
    look_ahead(k, q, &n, m, state);
    if (!kernel_takes_output(k, q, m->parent_header, n.type, jmsg_bytes(m)))
        return;
    log_message(k, JMSG_IOPUB, shelf_of_iopub(q, n.type, state, jmsg_bytes(m)), m, n.type);
    if (q != NULL && q->is_run && strcmp(n.type, "error") == 0)
        kernel_see_shortage(k, q, m);
    if (is_status)
        on_status(k, &n, state);
}

static const char *describe_oversized(size_t bytes, const char *why, char *out, size_t n)
{
    if (bytes > jmsg_limits_default.frame)
        snprintf(out, n, "an output of %zu bytes was dropped: the limit is %zu", bytes,
                 jmsg_limits_default.frame);
    else
        snprintf(out, n, "an output of %zu bytes was dropped: %s", bytes, why);
    return out;
}

/* What is dropped by a ceiling leaves a mark where it would have stood. */
void kernel_on_oversized(void *arg, const struct jmsg *m, const struct jmsg_facts *f, size_t bytes,
                         const char *why)
{
    struct kernel *k = arg;
    char text[320], line[340];
    struct names n;

    read_names(f, &n);
    k->dropped.oversized++;
    k->iopub_ms = loop_now_ms(sessions_loop(k->all));
    /* Its mark is output too, and the message may name a large parent. */
    struct query *q = queries_match_status(k->queries, n.parent_id, n.parent_session);
    if (!kernel_takes_output(k, q, m->parent_header, "stream", sizeof line + m->parent_header.n))
        return;
    snprintf(line, sizeof line, "\n[holdcell] %s\n",
             describe_oversized(bytes, why, text, sizeof text));
    kernel_tell_stream(k, m->parent_header, line);
}

void kernel_on_lost(void *arg)
{
    static struct log_limit limit;
    struct kernel *k = arg;

    if (k->phase > KERNEL_ALIVE) /* it was asked to end, and takes its time for that */
        return;
    if (log_allowed(&limit, 10))
        log_warn("iopub_lost", "kernel=%s", k->id);
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (q->is_run && !run_ended(&q->run))
            kernel_tell_stream(k, q->header,
                               "\n[holdcell] the connection to the kernel's output broke: "
                               "some of it may be lost\n");
    }
}

static void take_execute_reply(struct kernel *k, struct query *q, const struct jmsg *m)
{
    const char *const keys[] = { "status", "ename" };
    struct jsonscan_value v[2];
    char status[16] = "", ename[64] = "";

    if (jsonscan_object(m->content, &loose, keys, 2, v, NULL, NULL) == 0) {
        copy(v[0], status, sizeof status);
        copy(v[1], ename, sizeof ename);
    }
    run_reply(&q->run, status, ename, loop_now_ms(sessions_loop(k->all)));
    if (q->idle)
        end_ignored(k, q);
}

static void on_input_request(struct seat *s, const struct names *n, const struct jmsg *m)
{
    struct kernel *k = s->kernel;
    int second;
    struct query *q =
        queries_match_reply(k->queries, s->number, JMSG_SHELL, n->parent_id, n->type, &second);

    if (strcmp(n->type, "input_request") != 0 || q == NULL || q->replied || !q->allow_stdin) {
        drop(k, &k->dropped.input, METRIC_INPUT_NOT_ALLOWED, "input_not_allowed", n->type);
        return;
    }
    q->heard = 1;
    kernel_heard_of(k, q, 0);
    kernel_input_asked(k, q);
    seat_asked(s, m->parts);
    log_message(k, JMSG_STDIN, (struct shelf){ EVENT_KEEP, s->number, 0 }, m, n->type);
}

void kernel_log_ask(struct seat *s, const struct view parts[EVENT_PARTS])
{
    struct jmsg m = { 0 };

    memcpy(m.parts, parts, sizeof m.parts);
    log_message(s->kernel, JMSG_STDIN, (struct shelf){ EVENT_KEEP, s->number, 0 }, &m,
                "input_request");
}

void kernel_on_reply(struct seat *s, enum jmsg_channel channel, const struct jmsg *m,
                     const struct jmsg_facts *f)
{
    struct kernel *k = s->kernel;
    struct names n;
    int second;

    read_names(f, &n);
    if (channel == JMSG_STDIN) {
        on_input_request(s, &n, m);
        return;
    }
    struct query *q =
        queries_match_reply(k->queries, s->number, channel, n.parent_id, n.type, &second);
    if (q == NULL || second) {
        drop(k, q == NULL ? &k->dropped.unasked : &k->dropped.second_replies,
             q == NULL ? METRIC_UNASKED : METRIC_SECOND_REPLY,
             q == NULL ? "unasked" : "second_reply", n.type);
        return;
    }
    kernel_heard_of(k, q, 0);
    /* Without descriptors IPython cannot even say `error`. Its idle may have been read before, so
     * ahead of the reply is the last moment. */
    if (q->is_run)
        kernel_see_shortage(k, q, m);
    int is_answer = query_is_answer(q->type, n.type);
    const struct shelf shelf = { .kind = is_answer ? EVENT_END : EVENT_KEEP,
                                 .addressee = s->number,
                                 .owner = is_answer ? s->number : 0 };
    log_message(k, channel, shelf, m, n.type);
    if (!is_answer)
        return;
    q->replied = 1;
    q->replied_ms = loop_now_ms(sessions_loop(k->all));
    if (channel == JMSG_SHELL) {
        k->replied_ms = q->replied_ms;
        k->replied_idle_ms = q->idle ? q->idle_ms : q->replied_ms;
    }
    kernel_is_ready_now(k);
    if (q->allow_stdin && q->is_run)
        seat_answered(s); /* it waits for no input any more */
    if (q->is_run)
        take_execute_reply(k, q, m);
    settle(k, q);
}

/* The asker gets an answer, or it would wait for ever. */
void kernel_on_oversized_reply(struct seat *s, enum jmsg_channel channel,
                               const struct jmsg_facts *f, size_t bytes, const char *why)
{
    struct kernel *k = s->kernel;
    struct names n;
    char text[320];
    int second;

    read_names(f, &n);
    k->dropped.oversized++;
    struct query *q =
        queries_match_reply(k->queries, s->number, channel, n.parent_id, n.type, &second);
    if (q == NULL || q->replied || !query_is_answer(q->type, n.type))
        return;
    kernel_tell_reply(k, q, "MessageTooLarge", describe_oversized(bytes, why, text, sizeof text));
    q->replied = 1;
    q->replied_ms = loop_now_ms(sessions_loop(k->all));
    if (q->is_run)
        run_reply(&q->run, "error", "", q->replied_ms);
    settle(k, q);
}

int kernel_may_query(struct seat *s, enum jmsg_channel channel)
{
    return queries_room(s->kernel->queries, s->number, channel, jmsg_limits_default.header);
}

static void note_shutdown(struct kernel *k, const struct jmsg *m)
{
    const char *const keys[] = { "restart" };
    struct jsonscan_value v;
    int restart = 0;

    if (jsonscan_object(m->content, &loose, keys, 1, &v, NULL, NULL) == 0 &&
        jsonscan_bool(v, &restart, NULL) < 0)
        restart = 0;
    k->said_shutdown = restart ? 2 : 1;
    k->said_shutdown_ms = loop_now_ms(sessions_loop(k->all));
}

int kernel_is_run(enum jmsg_channel channel, const struct jmsg_facts *f)
{
    return channel == JMSG_SHELL && jsonscan_string_equals(f->header.msg_type, "execute_request");
}

/* Absent means allowed only where nothing of the user's says otherwise: kernels
 * take a missing allow_stdin as false. */
int kernel_run_asks(const struct jmsg *m)
{
    const char *const keys[] = { "allow_stdin" };
    struct jsonscan_value v;
    int allowed = 0;

    if (jsonscan_object(m->content, &loose, keys, 1, &v, NULL, NULL) == 0 &&
        jsonscan_bool(v, &allowed, NULL) < 0)
        allowed = 0;
    return allowed;
}

/* What a client asks of the kernel itself, over its own channel. */
static void audit_message(struct seat *s, const char *event)
{
    struct origin *before = origin_enter(s->origin);

    kernel_audit(s->kernel, event, "by", "message");
    origin_enter(before);
}

struct query *kernel_note_query(struct seat *s, enum jmsg_channel channel, const struct jmsg *m,
                                const struct jmsg_facts *f)
{
    struct kernel *k = s->kernel;
    struct query q = { .seat = s->number,
                       .channel = channel,
                       .header = m->header,
                       .sent_us = clock_monotonic_us(),
                       .bytes = jmsg_bytes(m),
                       .origin = s->origin };

    copy(f->header.msg_id, q.id, sizeof q.id);
    copy(f->header.session, q.session, sizeof q.session);
    copy(f->header.msg_type, q.type, sizeof q.type);
    copy(f->header.subshell_id, q.subshell, sizeof q.subshell);
    origin_make_span(q.span_id);
    q.is_run = kernel_is_run(channel, f);
    q.allow_stdin = q.is_run ? kernel_run_asks(m) : 1;
    if (strcmp(q.type, "shutdown_request") == 0) {
        audit_message(s, "kernel_shutdown");
        note_shutdown(k, m);
    }
    /* A client that interrupts by itself: what ends without a reply was interrupted. */
    if (channel == JMSG_CONTROL && strcmp(q.type, "interrupt_request") == 0) {
        audit_message(s, "kernel_interrupt");
        kernel_interrupt_asked(k);
    }
    struct query *added = queries_add(k->queries, &q);
    check(added != NULL); /* kernel_may_query() was asked */
    kernel_watch_runs(k);
    return added;
}
