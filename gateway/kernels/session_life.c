/* The lifetime of a session: whatever its kernels do, and whoever is connected, they are
 * deleted when it is over. A restart does not move it, nor does another gateway. The
 * launcher knows the time too (sessions_deadline.c). */
#include <stdio.h>

#include "err.h"
#include "kernel_own.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "seat.h"
#include "session.h"
#include "sessions_own.h"

uint64_t session_life_end(const struct session *s)
{
    return s->times.life_ms != 0 ? s->born_ms + s->times.life_ms : 0;
}

static void on_ended(void *arg, uint64_t token, struct kernel *k, const struct err *e)
{
    (void)arg;
    (void)token;
    (void)k;
    (void)e; /* its end is in the log */
}

static void end_kernel(struct kernel *k)
{
    char text[240], time[TIME_TEXT];

    if (k->goal == KERNEL_DELETE || k->phase == KERNEL_GONE)
        return;
    snprintf(k->farewell, sizeof k->farewell, "the session's lifetime of %s is over",
             time_text(k->session->times.life_ms, time));
    log_info("kernel_expired", "kernel=%s principal=%s limit=%s", k->id, kernel_owner(k),
             LOG_QUOTED(time_text(k->session->times.life_ms, time)));
    kernel_audit(k, "kernel_expire", NULL, NULL);
    snprintf(text, sizeof text, "\n[holdcell] %s: the kernel is deleted, its variables are lost\n",
             k->farewell);
    for (struct seat *s = k->seats; s != NULL; s = s->next)
        kernel_tell_seat(s, text);
    kernel_delete(k, on_ended, NULL, 0);
}

static void on_over(void *arg)
{
    struct session *s = arg;

    s->life_timer = loop_timer_close(s->life_timer);
    metrics_count(METRIC_SESSIONS_EXPIRED, 0);
    /* No delete frees its kernel, and with it the session, inside the call. */
    for (struct kernel *k = s->kernels; k != NULL; k = k->next)
        end_kernel(k);
}

void session_watch_life(struct session *s)
{
    uint64_t now = loop_now_ms(s->all->loop), end = session_life_end(s);

    s->life_timer = loop_timer_close(s->life_timer);
    if (end != 0)
        s->life_timer = loop_timer_start(s->all->loop, end > now ? end - now : 0, 0, on_over, s);
}
