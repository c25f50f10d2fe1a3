/* Interrupts of a kernel: what there is to interrupt is told to the rules (interrupt.h), and what
 * they say is sent. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "err.h"
#include "jmsg.h"
#include "jsonwrite.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "seat.h"

void kernel_send_interrupt(struct kernel *k)
{
    struct err e = { 0 };

    /* While the kernel starts no cell of anybody runs, and SIGINT would end it. An
     * adopted one started long ago: what it runs keeps it from answering. */
    if (!k->process || (!k->ready && !k->adopted && !kernel_seed_runs(k)))
        return;
    if (!k->recipe.interrupt_by_message) {
        kernel_signal(k, SIGINT);
        return;
    }
    if (k->link != NULL &&
        link_ask(k->link, LINK_CONTROL, "interrupt_request", VIEW_STR("{}"), &e) < 0)
        log_warn("interrupt_failed", "kernel=%s error=\"%s\"", k->id, e.msg);
}

/* ---- the moment ---- */

/* Code of the user that is no run: the callback of a widget. Kernels answer other requests in
 * a moment, and who interrupts does not mean them while there is a run. */
static int works_besides(const struct kernel *k, int comms_only)
{
    uint64_t now = loop_now_ms(sessions_loop(k->all));

    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (!q->is_run && q->channel == JMSG_SHELL && query_works(q, now) &&
            q->subshell[0] == '\0' && (!comms_only || strncmp(q->type, "comm_", 5) == 0))
            return 1;
    }
    return 0;
}

static enum interrupt_way way_of(const struct kernel *k)
{
    if (k->recipe.interrupt_by_message)
        return INTERRUPT_BY_MESSAGE;
    return k->recipe.sockets_fd ? INTERRUPT_BY_NAME : INTERRUPT_BY_SIGNAL;
}

/* For any run: it looks at all that is under way. */
static struct interrupt_moment moment_now(struct kernel *k)
{
    struct interrupt_moment m = {
        .way = way_of(k),
        .can_take = k->phase == KERNEL_ALIVE && k->process && (k->ready || k->adopted),
        .output_ms = k->iopub_ms,
        .now_ms = loop_now_ms(sessions_loop(k->all)),
    };

    /* One that was taken over, with nothing noted, may do something that began just then. */
    m.works = works_besides(k, 0) || (k->adopted && (k->recipe.sockets_fd || k->adopted_busy));
    queries_mark_next(k->queries, m.now_ms);
    return m;
}

static struct interrupt_moment moment_for(struct interrupt_moment now, const struct query *target)
{
    now.target = target;
    now.may_run = target != NULL && query_may_run(target);
    return now;
}

static struct interrupt_moment moment_of(struct kernel *k, const struct query *target)
{
    return moment_for(moment_now(k), target);
}

/* ---- what is sent ---- */

static int send_named(struct kernel *k, struct query *q)
{
    autobuf struct buf content = { 0 };
    struct jsonwrite w;
    struct err e = { 0 };
    char id[OWNMSG_ID];

    buf_init(&content, OWNMSG_MAX);
    w = jsonwrite_to(&content);
    jsonwrite_object(&w);
    jsonwrite_key(&w, "msg_id");
    jsonwrite_str(&w, q->id);
    jsonwrite_key(&w, "until_us");
    jsonwrite_uint(&w, clock_monotonic_us() + INTERRUPT_TAKE_MS * 1000u);
    jsonwrite_end(&w);
    int rc = jsonwrite_finish(&w, &e);
    if (rc == 0 && k->link == NULL)
        rc = err_set(&e, ENOTCONN, "there is no connection");
    if (rc == 0)
        rc = link_request(k->link, LINK_CONTROL, "interrupt_request", buf_view(&content), id, &e);
    if (rc < 0) {
        log_info("interrupt_not_named", "kernel=%s error=%s", k->id, LOG_QUOTED(e.msg));
        return -1;
    }
    interrupt_named(&q->interrupt, id);
    return 0;
}

static void act(struct kernel *k, struct query *q, enum interrupt_act what)
{
    if (q != NULL && (what == INTERRUPT_NAME || what == INTERRUPT_SEND))
        run_interrupt_sent(&q->run, loop_now_ms(sessions_loop(k->all)));
    if (what == INTERRUPT_NAME && send_named(k, q) < 0)
        return; /* interrupt_check() sends the signal instead, at its time */
    if (what == INTERRUPT_SEND)
        kernel_send_interrupt(k);
}

void kernel_interrupt_run(struct kernel *k, struct query *q)
{
    const struct interrupt_moment m = moment_of(k, q);

    if (q->run.interrupts == 0)
        run_interrupt(&q->run, m.now_ms);
    act(k, q, interrupt_ask(&q->interrupt, &m));
}

/* by_client: its own message is on its way to the kernel. */
static void interrupt_now(struct kernel *k, int by_client)
{
    struct query *q = queries_target(k->queries);
    struct interrupt_moment m = moment_of(k, q);

    m.sent_by_client = by_client;
    if (q == NULL && seats_interrupt_held(k))
        return;
    if (q == NULL || !interrupt_waits(&q->interrupt))
        queries_interrupt(k->queries, m.now_ms);
    if (q != NULL && !q->busy && !q->inherited && works_besides(k, 1))
        kernel_send_interrupt(k);
    act(k, q, interrupt_ask(q != NULL ? &q->interrupt : NULL, &m));
}

int kernel_interrupt(struct kernel *k, struct err *e)
{
    if (k->goal == KERNEL_DELETE)
        return err_set(e, HC_ESTATE, "the kernel is being deleted");
    kernel_audit(k, "kernel_interrupt", "by", "request");
    /* What the process runs that ends, or that runs the seed, is no cell of anybody who waits
     * for the next one. */
    if ((k->phase != KERNEL_ALIVE && k->phase != KERNEL_OPENING) || k->seeding != NULL)
        (void)seats_interrupt_held(k);
    else
        interrupt_now(k, 0);
    return 0;
}

void kernel_interrupt_asked(struct kernel *k)
{
    interrupt_now(k, 1);
}

/* ---- later ---- */

void kernel_interrupt_busy(struct kernel *k, struct query *q)
{
    if (!interrupt_awaits_busy(&q->interrupt))
        return;
    const struct interrupt_moment m = moment_of(k, q);
    act(k, q, interrupt_busy(&q->interrupt, &m));
}

void kernel_check_interrupt(struct kernel *k)
{
    struct interrupt_moment now;
    int looked = 0;

    if (k->phase != KERNEL_ALIVE)
        return;
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (!interrupt_is_pending(&q->interrupt))
            continue;
        if (!looked)
            now = moment_now(k);
        looked = 1;
        int over = run_ended(&q->run) || q->run.replied || q->run.idle;
        const struct interrupt_moment m = moment_for(now, over ? NULL : q);
        act(k, q, interrupt_check(&q->interrupt, &m));
    }
}

int kernel_interrupt_answered(struct kernel *k, const struct jmsg *m, const struct jmsg_facts *f)
{
    static const struct jsonscan_rules loose = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, 64 };
    const char *const keys[] = { "status" };
    struct jsonscan_value v;
    char id[OWNMSG_ID];

    if (!jsonscan_string_equals(f->header.msg_type, "interrupt_reply"))
        return 0;
    if (jsonscan_string_copy(f->parent.msg_id, id, sizeof id, NULL) < 0)
        return 1;
    int taken = jsonscan_object(m->content, &loose, keys, 1, &v, NULL, NULL) == 0 &&
                jsonscan_string_equals(v, "ok");
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q))
        interrupt_answered(&q->interrupt, id, taken);
    return 1;
}
