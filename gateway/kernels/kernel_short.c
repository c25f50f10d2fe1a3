/* What a run is told when it has used up a limit, and what log and audit file call it. Memory
 * that ends is in session_memory.c and kernel_death.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "jmsg.h"
#include "kernel_own.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"

#define MIB(bytes) ((unsigned long long)((bytes) >> 20))

static const char *const names[] = {
    [SHORT_MEMORY] = "memory", [SHORT_TASKS] = "tasks",   [SHORT_DISK] = "disk",
    [SHORT_FILES] = "files",   [SHORT_OUTPUT] = "output",
};

static uint64_t now_of(const struct kernel *k)
{
    return loop_now_ms(sessions_loop(k->all));
}

int kernel_short_of(struct query *q, enum query_short what)
{
    if (q->short_of & (1U << what))
        return 0;
    q->short_of |= 1U << what;
    metrics_count(METRIC_SHORTAGES, what);
    return 1;
}

/* A cell that takes the interpreter lock at once never says busy. */
static int is_at_work(const struct query *q)
{
    return q->is_run && !q->idle && !run_ended(&q->run) && (q->busy || q->is_next);
}

void kernel_runs_short_of(struct kernel *k, enum query_short what)
{
    queries_mark_next(k->queries, now_of(k));
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (is_at_work(q))
            (void)kernel_short_of(q, what);
    }
}

const char *kernel_short_text(const struct query *q, char out[KERNEL_SHORT_TEXT])
{
    size_t n = 0;

    out[0] = '\0';
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (q->short_of & (1U << i))
            n += (size_t)snprintf(out + n, KERNEL_SHORT_TEXT - n, "%s%s", n > 0 ? "," : "",
                                  names[i]);
    }
    return out;
}

/* ---- output ---- */

/* What belongs to no request that the kernel works on, as of a thread that prints on, has a budget of
 * its own, anew with each run: nobody uses up that of a cell which waits. */
static struct output_use *use_of(struct kernel *k, struct query *q)
{
    return q != NULL && q->busy ? &q->output : &k->late_output;
}

int kernel_takes_output(struct kernel *k, struct query *q, struct view parent, const char *type,
                        uint64_t bytes)
{
    struct output_use *u = use_of(k, q);
    uint64_t limit = k->session->limits.output_bytes;
    enum output_verdict v = output_ask(u, limit, type, bytes);
    char text[200];

    if (v == OUTPUT_PASS)
        return 1;
    metrics_count(METRIC_DROPPED, METRIC_OUTPUT_LIMIT);
    if (v == OUTPUT_DROP)
        return 0;
    if (u != &k->late_output && q->is_run)
        (void)kernel_short_of(q, SHORT_OUTPUT);
    snprintf(
        text, sizeof text,
        "\n[holdcell] output limit: %s has used up its %llu MiB of output; the rest is dropped "
        "and counted\n",
        u == &k->late_output ? "what goes on beside the cells" : "this cell", MIB(limit));
    kernel_tell_stream(k, parent, text);
    return 0;
}

int kernel_is_unwanted(void *arg, const struct jmsg *m, const struct jmsg_header *header,
                       const struct jmsg_header *parent)
{
    struct kernel *k = arg;
    char type[QUERY_TYPE_MAX], id[QUERY_ID_MAX], session[QUERY_ID_MAX];

    if (jsonscan_string_copy(header->msg_type, type, sizeof type, NULL) < 0)
        return 0;
    if (jsonscan_string_copy(parent->msg_id, id, sizeof id, NULL) < 0)
        id[0] = '\0';
    if (jsonscan_string_copy(parent->session, session, sizeof session, NULL) < 0)
        session[0] = '\0';
    if (strcmp(session, sessions_own_sid(k->all)) == 0 || strcmp(type, "iopub_welcome") == 0)
        return 0;
    struct query *q = queries_match_status(k->queries, id, session);
    uint64_t bytes = jmsg_bytes(m);
    if (!output_is_over(use_of(k, q), type, bytes))
        return 0;
    k->iopub_ms = now_of(k);
    return !kernel_takes_output(k, q, m->parent_header, type, bytes);
}

void kernel_tell_dropped(struct kernel *k, struct query *q)
{
    char text[200];

    if (q->output.dropped == 0 || q->dropped_told)
        return;
    q->dropped_told = 1;
    snprintf(text, sizeof text,
             "\n[holdcell] output limit: %" PRIu64 " messages with %" PRIu64
             " bytes were dropped (limit %llu MiB)\n",
             q->output.dropped, q->output.dropped_bytes, MIB(k->session->limits.output_bytes));
    kernel_tell_stream(k, q->header, text);
}

/* ---- errors that name a limit ---- */

static int begins(struct jsonscan_value v, const char *with)
{
    size_t n = strlen(with);

    return v.kind == JSONSCAN_STRING && v.text.n > n && memcmp(v.text.p + 1, with, n) == 0;
}

static void tell_disk(struct kernel *k, struct query *q)
{
    const struct launch_limits *l = &k->session->limits;
    char text[256];

    snprintf(
        text, sizeof text,
        "\n[holdcell] disk full: the limits of this session are /home/user %llu MiB, /tmp %llu "
        "MiB, /dev/shm %llu MiB, and %" PRIu32 " files in each%s\n",
        MIB(l->home_bytes), MIB(l->tmp_bytes), MIB(l->shm_bytes), l->inodes,
        sessions_policy(k->all)->workspaces ? "; /home/user/work has its own" : "");
    kernel_tell_stream(k, q->header, text);
}

static void tell_files(struct kernel *k, struct query *q)
{
    enum { SOFT = 1024 }; /* sandbox/self/rlimits.c */
    const uint32_t most = k->session->limits.nofile;
    char text[256];

    if (most > SOFT)
        snprintf(text, sizeof text,
                 "\n[holdcell] too many open files: one process may have %d, and as many as "
                 "%" PRIu32 " when it raises RLIMIT_NOFILE\n",
                 SOFT, most);
    else
        snprintf(text, sizeof text,
                 "\n[holdcell] too many open files: one process may have %" PRIu32 "\n", most);
    kernel_tell_stream(k, q->header, text);
}

static void tell_tasks(struct kernel *k, struct query *q)
{
    char text[200];

    snprintf(text, sizeof text,
             "\n[holdcell] process limit: this session may have %" PRIu32
             " processes and threads, and new ones were refused\n",
             k->session->limits.pids);
    kernel_tell_stream(k, q->header, text);
}

/* That the kernel says so is its own word: it is told to its own client, and to the log as a
 * property of its run. */
void kernel_see_shortage(struct kernel *k, struct query *q, const struct jmsg *m)
{
    static const struct jsonscan_rules loose = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, 512 };
    static const char *const keys[] = { "evalue" };
    static const char fork[] = "fork";
    struct jsonscan_value v;

    if (jsonscan_object(m->content, &loose, keys, 1, &v, NULL, NULL) < 0)
        return;
    /* ENOSPC, EDQUOT; EAGAIN, which others than fork say too; EMFILE; as Python words them. */
    if (begins(v, "[Errno 28]") || begins(v, "[Errno 122]")) {
        if (kernel_short_of(q, SHORT_DISK))
            tell_disk(k, q);
    } else if (begins(v, "can't start new thread") ||
               (begins(v, "[Errno 11]") &&
                memmem(m->content.p, m->content.n, fork, sizeof fork - 1) != NULL)) {
        if (kernel_short_of(q, SHORT_TASKS))
            tell_tasks(k, q);
    } else if (begins(v, "[Errno 24]")) {
        if (kernel_short_of(q, SHORT_FILES))
            tell_files(k, q);
    }
}

/* ---- processes and threads ---- */

/* It may have been up to a second ago: one that began since then is not blamed for what another did
 * that has ended. */
void kernel_tasks_refused(struct kernel *k, const struct launch_tasks_refused *t)
{
    enum { LOOK_MS = 1000 }; /* kernel-launcher/kernelproc.c */
    const uint64_t now = now_of(k);
    int other = k->run_ended_ms != 0 && now - k->run_ended_ms <= LOOK_MS;

    k->tasks_limit = t->pids_limit;
    k->tasks_refused_ms = now;
    queries_mark_next(k->queries, now);
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if (is_at_work(q) && !(other && now - q->busy_ms <= LOOK_MS) &&
            kernel_short_of(q, SHORT_TASKS))
            tell_tasks(k, q);
    }
}

const char *kernel_tasks_text(const struct kernel *k, char out[KERNEL_SHORT_TEXT])
{
    enum { RECENT_MS = 5000 };

    out[0] = '\0';
    if (k->tasks_refused_ms != 0 && now_of(k) - k->tasks_refused_ms <= RECENT_MS)
        snprintf(out, KERNEL_SHORT_TEXT, "; process limit: %" PRIu64 " were all in use",
                 k->tasks_limit);
    return out;
}
