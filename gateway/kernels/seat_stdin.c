/* A kernel's stdin socket drops a question to an identity that it does not know yet, and
 * the cell waits for ever. So a run that may ask waits until the handshake of its seat's
 * stdin socket is over. That takes well under a millisecond once the kernel serves its
 * sockets; one that leaves it out for good gets no such run. */
#include "err.h"
#include "jmsg.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "seat.h"
#include "zsocket.h"

enum { LOOK_MS = 200 };

static const char unreachable[] =
    "the kernel does not take the connection that it would ask for input on; cells that may "
    "not ask (allow_stdin false) run";

void seat_stdin_forget(struct seat *s)
{
    s->stdin_timer = loop_timer_close(s->stdin_timer);
    s->stdin_ms = 0;
    s->stdin_given_up = 0;
}

/* While the kernel starts, or works on something else, the run would wait in any case. */
static void on_look(void *arg)
{
    struct seat *s = arg;
    struct kernel *k = s->kernel;
    uint64_t now = loop_now_ms(sessions_loop(k->all));

    if (s->held == NULL || k->phase != KERNEL_ALIVE) {
        s->stdin_timer = loop_timer_close(s->stdin_timer);
        return;
    }
    if (!link_is_ready(k->link) || kernel_works(k))
        s->stdin_ms = now;
    else if (now - s->stdin_ms >= KERNEL_GIVE_UP_MS)
        s->stdin_given_up = 1;
    seat_resume(s); /* also opens a socket that broke */
    if (s->client == NULL && s->held == NULL) {
        s->stdin_timer = loop_timer_close(s->stdin_timer);
        seats_sweep(k);
    }
}

static enum seat_stdin wait_for_it(struct seat *s)
{
    struct loop *l = sessions_loop(s->kernel->all);

    if (s->stdin_given_up)
        return SEAT_STDIN_REFUSE;
    if (s->stdin_timer == NULL) {
        s->stdin_ms = loop_now_ms(l);
        s->stdin_timer = loop_timer_start(l, LOOK_MS, LOOK_MS, on_look, s);
    }
    return SEAT_STDIN_WAIT;
}

enum seat_stdin seat_stdin_for(struct seat *s, const struct jmsg *m)
{
    struct seat_dealer *d = &s->dealers[JMSG_STDIN];
    struct link *l = s->kernel->link;
    struct err e = { 0 };

    if (!kernel_run_asks(m))
        return SEAT_STDIN_GO;
    /* A question above the limit of zsocket.c ended the connection. */
    if (d->socket != NULL && zsocket_is_stuck(d->socket))
        seat_reopen(s, JMSG_STDIN);
    if (seat_open_own(s, JMSG_STDIN, &e) < 0)
        log_error("seat_socket", "kernel=%s error=\"%s\"", s->kernel->id, e.msg);
    if (!link_never_joins(l) && (d->socket == NULL || !zsocket_is_joined(d->socket)))
        return wait_for_it(s);
    seat_stdin_forget(s);
    return SEAT_STDIN_GO;
}

void seat_stdin_refuse(struct seat *s, const struct jmsg *m)
{
    log_warn("stdin_unreachable", "kernel=%s", s->kernel->id);
    kernel_refuse_run(s, m, "StdinUnreachable", unreachable);
}

void seat_stdin_joined(void *dealer)
{
    struct seat_dealer *d = dealer;

    seat_resume(d->seat);
}

/* What waits is looked at again by the timer, which opens another one. */
void seat_stdin_gone(void *dealer)
{
    static struct log_limit limit;
    struct seat_dealer *d = dealer;

    if (log_allowed(&limit, 10))
        log_warn("stdin_broke", "kernel=%s", d->seat->kernel->id);
    d->socket = zsocket_close(d->socket);
}
