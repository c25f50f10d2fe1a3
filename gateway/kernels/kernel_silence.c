/* Asks a kernel that says nothing of a run whether it is free (silence.h). */
#include "err.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "seat.h"
#include "zsocket.h"

/* Nothing of it waits in a socket of ours: the kernel took the connection, or it is closed. Shell
 * and stdin of a seat are opened together, the kernel takes them in that order. */
static int is_reached(struct kernel *k, const struct query *q)
{
    struct seat *s = seat_by_number(k, q->seat);

    if (s == NULL || s->dealers[JMSG_SHELL].socket == NULL)
        return 1;
    return s->dealers[JMSG_SHELL].heard || link_never_joins(k->link) ||
           (s->dealers[JMSG_STDIN].socket != NULL &&
            zsocket_is_joined(s->dealers[JMSG_STDIN].socket));
}

static void ask(struct kernel *k)
{
    static struct log_limit limit;
    struct err e = { 0 };

    /* One that was not sent is tried again with the next look. */
    if (link_probe(k->link, "", &e) < 0 && log_allowed(&limit, 5))
        log_warn("probe", "kernel=%s error=\"%s\"", k->id, e.msg);
}

static int may_ask(const struct kernel *k)
{
    return k->phase == KERNEL_ALIVE && k->link != NULL && link_is_ready(k->link);
}

void kernel_watch_silence(struct kernel *k, uint64_t now)
{
    if (!may_ask(k))
        return;
    /* What the questions of a round are to tell of was reached before the first. */
    for (struct query *q = k->silence.upto == 0 ? queries_first(k->queries) : NULL; q != NULL;
         q = queries_next(k->queries, q)) {
        if (!q->reached && silence_is_due(q, now))
            q->reached = is_reached(k, q);
    }
    if (silence_look(&k->silence, k->queries, now))
        ask(k);
}

void kernel_silence_answered(struct kernel *k)
{
    if (silence_answered(&k->silence, k->queries, loop_now_ms(sessions_loop(k->all))) && may_ask(k))
        ask(k);
}
