#include "heartbeat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "endpoints.h"
#include "err.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "random.h"
#include "zsocket.h"

enum { BEAT_TEXT = 24 };

struct heartbeat {
    struct heartbeat_config c;
    struct liveness liveness;
    struct zsocket *socket;   /* owned */
    struct loop_timer *timer; /* owned */
    enum liveness_loss told;  /* to the log */
};

/* ROUTER kernels return all frames; REP kernels need the empty one and return it too. */
static void on_beat(void *arg, const struct view *frames, size_t count)
{
    struct heartbeat *h = arg;
    char text[BEAT_TEXT];
    struct view last = frames[count - 1];

    if (last.n == 0 || last.n >= sizeof text)
        return;
    memcpy(text, last.p, last.n);
    text[last.n] = '\0';
    liveness_beat(&h->liveness, strtoull(text, NULL, 10));
}

/* A peer that closed the channel takes nothing: that is silence, and told as such. */
static void send_beat(struct heartbeat *h)
{
    char text[BEAT_TEXT];

    snprintf(text, sizeof text, "%llu", (unsigned long long)h->liveness.heart.sent);
    const struct view frames[] = { VIEW_STR(""), view_cstr(text) };
    if (zsocket_send(h->socket, frames, 2, NULL) < 0)
        return;
}

static void ask(struct heartbeat *h)
{
    if (link_ask(h->c.link, LINK_CONTROL, "kernel_info_request", VIEW_STR("{}"), NULL) < 0)
        return;
}

static void on_tick(void *arg)
{
    struct heartbeat *h = arg;
    unsigned due = liveness_tick(&h->liveness, h->c.busy(h->c.arg));
    enum liveness_loss loss = heartbeat_loss(h);

    if (loss != LIVENESS_WELL && h->told == LIVENESS_WELL)
        log_warn("kernel_unresponsive", "kernel=%s reason=\"%s\"", h->c.kernel,
                 liveness_text(loss));
    else if (loss == LIVENESS_WELL && h->told != LIVENESS_WELL)
        log_info("kernel_responsive", "kernel=%s", h->c.kernel);
    h->told = loss;
    if (due & LIVENESS_BEAT)
        send_beat(h);
    if (due & LIVENESS_ASK)
        ask(h);
}

struct heartbeat *heartbeat_start(const struct heartbeat_config *c)
{
    static const struct zsocket_ops ops = { .message = on_beat };
    struct heartbeat *h = xcalloc(1, sizeof *h);
    char identity[33];
    struct err e = { 0 };

    h->c = *c;
    liveness_start(&h->liveness, c->owes_heartbeat);
    random_text(identity, 32);
    if (link_dealer(c->link, ENDPOINT_HB, identity, &ops, h, &h->socket, &e) < 0) {
        log_warn("heartbeat_failed", "kernel=%s error=\"%s\"", c->kernel, e.msg);
        return heartbeat_stop(h);
    }
    h->timer = loop_timer_start(c->loop, 0, LIVENESS_TICK_MS, on_tick, h);
    return h;
}

struct heartbeat *heartbeat_stop(struct heartbeat *h)
{
    if (h == NULL)
        return NULL;
    h->timer = loop_timer_close(h->timer);
    h->socket = zsocket_close(h->socket);
    free(h);
    return NULL;
}

void heartbeat_answer(struct heartbeat *h)
{
    if (h != NULL)
        liveness_answer(&h->liveness);
}

enum liveness_loss heartbeat_loss(const struct heartbeat *h)
{
    return h != NULL ? liveness_loss(&h->liveness, h->c.busy(h->c.arg)) : LIVENESS_WELL;
}
