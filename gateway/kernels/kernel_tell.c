/* What the gateway itself tells the clients of a kernel, always marked as its own
 * in the metadata. */
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "jmsg.h"
#include "kernel_own.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "ownmsg.h"
#include "seat.h"

/* JupyterLab takes a new header.session as a new kernel and drops what it had not
 * handled yet: what is said about a process is said in that process's session. */
static const char *session_of(const struct kernel *k)
{
    return k->sid[0] != '\0' ? k->sid : sessions_own_sid(k->all);
}

struct telling {
    const char *session;
    enum jmsg_channel channel;
    uint64_t addressee, owner; /* as of an event */
};

/* What the gateway says is short and rare, and said for a reason: not bulk. */
static void tell(struct kernel *k, const struct telling *t, const char *type, struct view parent,
                 struct view content)
{
    autobuf struct buf header = { 0 };

    buf_init(&header, OWNMSG_MAX);
    ownmsg_header(&header, type, t->session, NULL);
    struct event ev = {
        .kind = t->owner != 0 ? EVENT_END : EVENT_KEEP,
        .channel = t->channel,
        .addressee = t->addressee,
        .owner = t->owner,
        .parts = { buf_view(&header), parent, VIEW_STR(OWNMSG_METADATA), content },
    };
    eventlog_add(k->log, &ev);
    kernel_wake_clients(k);
}

void kernel_tell_status(struct kernel *k, const char *execution_state)
{
    autobuf struct buf content = { 0 };

    buf_init(&content, OWNMSG_MAX);
    ownmsg_status(&content, execution_state);
    for (struct seat *s = k->seats; s != NULL; s = s->next) {
        const struct telling t = { .session = s->sid,
                                   .channel = JMSG_IOPUB,
                                   .addressee = s->number };
        tell(k, &t, "status", VIEW_STR("{}"), buf_view(&content));
    }
}

static void tell_stream(struct kernel *k, uint64_t addressee, struct view parent, const char *text)
{
    const struct telling t = { .session = session_of(k),
                               .channel = JMSG_IOPUB,
                               .addressee = addressee };
    autobuf struct buf content = { 0 };

    buf_init(&content, OWNMSG_MAX);
    ownmsg_stream(&content, "stderr", text);
    tell(k, &t, "stream", parent, buf_view(&content));
}

void kernel_tell_stream(struct kernel *k, struct view parent, const char *text)
{
    tell_stream(k, 0, parent, text);
}

void kernel_tell_seat(const struct seat *s, const char *text)
{
    tell_stream(s->kernel, s->number, VIEW_STR("{}"), text);
}

static void tell_idle(struct kernel *k, uint64_t addressee, uint64_t owner, struct view parent)
{
    const struct telling t = { session_of(k), JMSG_IOPUB, addressee, owner };
    autobuf struct buf content = { 0 };

    buf_init(&content, OWNMSG_MAX);
    ownmsg_status(&content, "idle");
    tell(k, &t, "status", parent, buf_view(&content));
}

void kernel_tell_idle(struct kernel *k, uint64_t owner, struct view parent)
{
    tell_idle(k, 0, owner, parent);
}

void kernel_tell_lost(const struct seat *s, struct view header, const char *text)
{
    const struct query q = {
        .seat = s->number, .channel = JMSG_SHELL, .type = "execute_request", .header = header
    };
    char line[320];

    snprintf(line, sizeof line, "\n[holdcell] %s\n", text);
    tell_stream(s->kernel, s->number, header, line);
    kernel_tell_reply(s->kernel, &q, "RunLost", text);
    tell_idle(s->kernel, s->number, s->number, header);
}

void kernel_tell_reply(struct kernel *k, const struct query *q, const char *ename,
                       const char *evalue)
{
    autobuf struct buf content = { 0 };
    char type[QUERY_TYPE_MAX + 8];

    /* Only asked for of a query whose type ends in _request. */
    snprintf(type, sizeof type, "%.*s_reply", (int)(strlen(q->type) - strlen("_request")), q->type);
    buf_init(&content, OWNMSG_MAX);
    ownmsg_error(&content, 1, ename, evalue, NULL);
    const struct telling t = { session_of(k), q->channel, q->seat, q->seat };
    tell(k, &t, type, q->header, buf_view(&content));
}

void kernel_run_ended(struct kernel *k, struct query *q)
{
    int usual =
        (q->run.state == RUN_OK || q->run.state == RUN_ERROR || q->run.state == RUN_ABORTED) &&
        q->short_of == 0;
    enum logline_level level = usual ? LOGLINE_DEBUG : LOGLINE_INFO;
    uint64_t took_us = q->sent_us != 0 ? clock_monotonic_us() - q->sent_us : 0; /* 0: unknown */
    struct seat *s = seat_by_number(k, q->seat);
    char short_of[KERNEL_SHORT_TEXT];
    struct logline l;

    k->run_ended_ms = loop_now_ms(sessions_loop(k->all));
    if (q->run.state == RUN_TIMED_OUT)
        kernel_tell_stop(k, q, 1);
    if (s != NULL)
        seat_run_ended(s, q->header);
    activity_touch(&k->activity, kernel_now(k));
    metrics_count(METRIC_RUNS, (unsigned)(q->run.state - RUN_OK));
    if (took_us != 0)
        metrics_observe(METRIC_RUN_TIME, 0, took_us);
    kernel_audit_run_end(k, q, took_us);
    if (!log_enabled(level))
        return;
    log_begin(&l, level, "run_ended");
    logline_string(&l, "kernel", view_cstr(k->id));
    logline_uint(&l, "generation", k->generation);
    logline_string(&l, "principal", view_cstr(kernel_owner(k)));
    logline_uint(&l, "run", q->number);
    logline_string(&l, "state", view_cstr(run_state_name(q->run.state)));
    if (q->short_of != 0)
        logline_string(&l, "short_of", view_cstr(kernel_short_text(q, short_of)));
    logline_uint(&l, "interrupts", q->run.interrupts);
    if (took_us != 0)
        logline_uint(&l, "duration_us", took_us);
    origin_child_fields(q->origin, q->span_id, &l);
    log_end(&l);
}

/* An execution that the end of its process leaves without an answer. */
static int unanswered(const struct query *q)
{
    return q->is_run && !run_ended(&q->run);
}

void kernel_end_runs(struct kernel *k, enum run_state how, const char *ename, const char *text,
                     const char *status)
{
    char line[400];

    snprintf(line, sizeof line, "\n[holdcell] %s\n", text);
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (!unanswered(q))
            continue;
        kernel_tell_dropped(k, q);
        if (!q->replied)
            kernel_tell_stream(k, q->header, line);
    }
    /* Before the replies: a client that sees the reply first sends its next cell
     * and takes this status for the death of that one. */
    if (status != NULL)
        kernel_tell_status(k, status);
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (!unanswered(q))
            continue;
        /* The reply had come, only its idle not: the run was over. */
        run_end(&q->run, q->replied                      ? q->run.verdict
                         : q->clock.rung == RUNCLOCK_END ? RUN_TIMED_OUT
                                                         : how);
        q->stop_told = 1;
        if (!q->replied)
            kernel_tell_reply(k, q, kernel_overdue_ename(q, ename), text);
        if (!q->idle)
            kernel_tell_idle(k, q->seat, q->header);
        kernel_run_ended(k, q);
    }
    /* Nothing of this process is awaited any more. */
    queries_clear(k->queries);
    kernel_inheritance_done(k);
}

/* The asker gets an answer, or it would wait for ever. */
void kernel_refuse_run(struct seat *s, const struct jmsg *m, const char *ename, const char *why)
{
    struct query q = {
        .seat = s->number, .channel = JMSG_SHELL, .type = "execute_request", .header = m->header
    };
    char line[320];

    snprintf(line, sizeof line, "\n[holdcell] the cell was not run: %s\n", why);
    kernel_tell_stream(s->kernel, m->header, line);
    kernel_tell_reply(s->kernel, &q, ename, why);
    kernel_tell_idle(s->kernel, s->number, m->header);
    seat_run_ended(s, m->header);
}
