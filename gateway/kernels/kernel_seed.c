/* A kernel runs the cells of the seed notebook, in the gateway's own name, after its
 * first answer and before anything of a client is let through. What the cells print
 * is nobody's; what goes wrong in one of them ends the kernel. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "err.h"
#include "jmsg.h"
#include "jsonwrite.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "ownmsg.h"
#include "seat.h"
#include "seed.h"

enum { TICK_MS = 200 };

struct seeding {
    struct seed *seed; /* a use of it */
    size_t at;         /* the cell that runs */
    int begun, failed;
    char id[OWNMSG_ID]; /* of its execute_request */
    struct run run;
    struct loop_timer *timer;
    uint64_t late_ms;
};

static const struct jsonscan_rules loose = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, 512 };

static void copy(struct jsonscan_value v, char *out, size_t n)
{
    if (jsonscan_string_copy(v, out, n, NULL) < 0)
        out[0] = '\0';
}

/* As much of a text as there is room for, never half a character. */
static void cut(struct jsonscan_value v, char *out, size_t n)
{
    autobuf struct buf text = { 0 };

    out[0] = '\0';
    buf_init(&text, 4 * v.text.n + 16);
    if (v.kind != JSONSCAN_STRING || jsonscan_string_decode(v, &text, NULL) < 0)
        return;
    const uint8_t *p = buf_view(&text).p;
    size_t have = buf_len(&text);
    if (have >= n) {
        have = n - 1;
        while (have > 0 && (p[have] & 0xc0) == 0x80)
            have--;
    }
    memcpy(out, p, have);
    out[have] = '\0';
}

void kernel_seed_plan(struct kernel *k)
{
    struct seed *seed = sessions_seed(k->all);

    k->seeding = kernel_seed_end(k);
    if (seed == NULL || seed->count == 0 ||
        strcasecmp(k->recipe.spec_name, sessions_seed_kernel(k->all)) != 0)
        return;
    k->seeding = xcalloc(1, sizeof *k->seeding);
    k->seeding->seed = seed_use(seed);
}

struct seeding *kernel_seed_end(struct kernel *k)
{
    struct seeding *g = k->seeding;

    if (g == NULL)
        return NULL;
    g->timer = loop_timer_close(g->timer);
    g->seed = seed_drop(g->seed);
    free(g);
    k->seeding = NULL;
    return NULL;
}

int kernel_seed_runs(const struct kernel *k)
{
    return k->seeding != NULL && k->seeding->begun;
}

/* ---- the end ---- */

static void done(struct kernel *k)
{
    log_info("kernel_seeded", "kernel=%s cells=%zu", k->id, k->seeding->seed->count);
    k->seeding = kernel_seed_end(k);
    kernel_note(k); /* who adopts it now need not seed it again */
    kernel_is_ready_now(k);
    kernel_started(k);
    seats_release(k);
}

static void on_failed(void *arg)
{
    struct kernel *k = arg;

    k->seeding = kernel_seed_end(k);
    kernel_stillborn(k);
}

/* Closing the link from inside its own callback would be too early. */
static void fail(struct kernel *k, const char *what)
{
    struct seeding *g = k->seeding;
    g->failed = 1;
    if (g->begun)
        snprintf(k->reason, sizeof k->reason, "seed notebook: cell %u: %s",
                 g->seed->cells[g->at].number, what);
    else
        snprintf(k->reason, sizeof k->reason, "seed notebook: %s", what);
    log_error("seed_failed", "kernel=%s reason=%s", k->id, LOG_QUOTED(k->reason));
    g->timer = loop_timer_close(g->timer);
    g->timer = loop_timer_start(sessions_loop(k->all), 0, 0, on_failed, k);
}

void kernel_seed_died(struct kernel *k)
{
    char how[sizeof k->reason];

    if (!kernel_seed_runs(k))
        return;
    memcpy(how, k->reason, sizeof how);
    snprintf(k->reason, sizeof k->reason, "seed notebook: cell %u: the kernel died: %.180s",
             k->seeding->seed->cells[k->seeding->at].number, how);
}

/* ---- the cells ---- */

static int send_cell(struct kernel *k, struct err *e)
{
    struct seeding *g = k->seeding;
    autobuf struct buf content = { 0 };
    struct jsonwrite w;

    buf_init(&content, 8 * (size_t)SEED_BYTES_MAX);
    w = jsonwrite_to(&content);
    jsonwrite_object(&w);
    jsonwrite_key(&w, "code");
    jsonwrite_str(&w, g->seed->cells[g->at].code);
    jsonwrite_key(&w, "silent");
    jsonwrite_bool(&w, 0);
    jsonwrite_key(&w, "store_history");
    jsonwrite_bool(&w, 1);
    jsonwrite_key(&w, "user_expressions");
    jsonwrite_raw(&w, VIEW_STR("{}"));
    jsonwrite_key(&w, "allow_stdin");
    jsonwrite_bool(&w, 0);
    jsonwrite_key(&w, "stop_on_error");
    jsonwrite_bool(&w, 1);
    jsonwrite_end(&w);
    int rc = jsonwrite_finish(&w, e);
    g->run = (struct run){ 0 };
    return rc < 0
               ? rc
               : link_request(k->link, LINK_SHELL, "execute_request", buf_view(&content), g->id, e);
}

static void run_cell(struct kernel *k)
{
    struct err e = { 0 };

    if (k->seeding->at == k->seeding->seed->count)
        done(k);
    else if (send_cell(k, &e) < 0)
        fail(k, e.msg);
}

static void settle(struct kernel *k)
{
    struct seeding *g = k->seeding;

    if (!run_ended(&g->run))
        return;
    if (g->run.state != RUN_OK) { /* a failure in the reply was told before */
        fail(k, "the kernel ended it without a reply");
        return;
    }
    g->at++;
    run_cell(k);
}

static void on_tick(void *arg)
{
    struct kernel *k = arg;
    struct seeding *g = k->seeding;
    uint64_t now = loop_now_ms(sessions_loop(k->all));
    char text[64];

    if (k->phase != KERNEL_ALIVE && k->phase != KERNEL_OPENING)
        return;
    if (now >= g->late_ms) {
        snprintf(text, sizeof text, "%s within %llu s",
                 g->begun ? "the notebook was not done" : "the kernel gave no answer",
                 (unsigned long long)(sessions_policy(k->all)->seed_ms / 1000));
        fail(k, text);
    } else if (g->begun && run_check(&g->run, now) == RUN_ENDED) {
        settle(k);
    }
}

void kernel_seed_watch(struct kernel *k)
{
    struct seeding *g = k->seeding;
    struct loop *l = sessions_loop(k->all);

    g->late_ms = loop_now_ms(l) + sessions_policy(k->all)->seed_ms;
    g->timer = loop_timer_start(l, TICK_MS, TICK_MS, on_tick, k);
}

/* Only with iopub proven is every idle seen. */
void kernel_seed_begin(struct kernel *k)
{
    struct seeding *g = k->seeding;

    if (g == NULL || g->begun || g->failed || k->phase != KERNEL_ALIVE ||
        !link_is_proven(k->link) || !link_is_ready(k->link))
        return;
    g->begun = 1;
    run_cell(k);
}

/* ---- what the kernel says ---- */

static int is_of_cell(const struct kernel *k, struct jsonscan_value parent_id)
{
    const struct seeding *g = k->seeding;

    return g != NULL && g->begun && !g->failed && jsonscan_string_equals(parent_id, g->id);
}

void kernel_seed_status(struct kernel *k, struct jsonscan_value parent_id, const char *state)
{
    if (!is_of_cell(k, parent_id))
        return;
    if (strcmp(state, "busy") == 0)
        run_busy(&k->seeding->run);
    else if (strcmp(state, "idle") == 0)
        run_idle(&k->seeding->run, loop_now_ms(sessions_loop(k->all)));
    settle(k);
}

void kernel_on_own_reply(void *arg, const struct jmsg *m, const struct jmsg_facts *f)
{
    static const char *const keys[] = { "status", "ename", "evalue" };
    struct kernel *k = arg;
    struct jsonscan_value v[3];
    char status[16] = "", ename[64] = "", evalue[128] = "", text[200];

    if (kernel_interrupt_answered(k, m, f) ||
        !jsonscan_string_equals(f->header.msg_type, "execute_reply") ||
        !is_of_cell(k, f->parent.msg_id))
        return;
    if (jsonscan_object(m->content, &loose, keys, 3, v, NULL, NULL) == 0) {
        copy(v[0], status, sizeof status);
        copy(v[1], ename, sizeof ename);
        cut(v[2], evalue, sizeof evalue);
    }
    if (strcmp(status, "ok") != 0) {
        snprintf(text, sizeof text, "%s: %s", ename[0] != '\0' ? ename : status, evalue);
        fail(k, text);
        return;
    }
    run_reply(&k->seeding->run, status, ename, loop_now_ms(sessions_loop(k->all)));
    settle(k);
}
