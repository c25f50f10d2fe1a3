#include "room.h"

#include <stdint.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "launchclient.h"
#include "launchmsg.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"

enum { LOOK_MS = 1000 };

struct room {
    struct launchclient *launcher; /* borrowed */
    struct loop_timer *timer;
    int asked;
    char lack[LAUNCH_NAME_MAX + 1]; /* "" : there is room */
};

static void set(enum metric m, uint64_t value)
{
    metrics_set(m, 0, value != UINT64_MAX ? value : 0);
}

static void on_answer(void *arg, uint64_t token, struct launch_answer *a)
{
    struct room *r = arg;
    const struct launch_room_answer *now = a->body;

    (void)token;
    r->asked = 0;
    if (a->error != 0) {
        log_warn("room", "error=\"%s\"", a->text);
        return;
    }
    set(METRIC_HOST_MEMORY, now->memory_available);
    set(METRIC_MEMORY_RESERVE, now->memory_reserve);
    set(METRIC_MEMORY_PROMISED, now->memory_promised);
    set(METRIC_SESSIONS_MAX, now->sessions_max);
    set(METRIC_ADMISSION, now->lack.n == 0);
    memcpy(r->lack, now->lack.p, now->lack.n);
    r->lack[now->lack.n] = '\0';
}

static void ask(void *arg)
{
    const struct launch_room body = { 0 };
    struct room *r = arg;
    struct err e = { 0 };

    if (r->asked)
        return;
    r->asked = launchclient_ask(r->launcher, LAUNCH_ROOM, &body, NULL, 0, on_answer, r, 0, &e) == 0;
}

struct room *room_new(struct loop *l, struct launchclient *c)
{
    struct room *r = xcalloc(1, sizeof *r);

    r->launcher = c;
    metrics_set(METRIC_ADMISSION, 0, 1);
    r->timer = loop_timer_start(l, LOOK_MS, LOOK_MS, ask, r);
    ask(r);
    return r;
}

struct room *room_free(struct room *r)
{
    if (r == NULL)
        return NULL;
    r->timer = loop_timer_close(r->timer);
    free(r);
    return NULL;
}

int room_check(void *room, struct err *e)
{
    const struct room *r = room;

    return r->lack[0] == '\0' ? 0 : err_set(e, HC_EFULL, "lack of %s", r->lack);
}
