/* The clock of a start: from the order to the first answer of the process, on the loop's CLOCK_MONOTONIC and outside
 * of the session. Who is too late cannot be used, and no second try is made: it would take as long. */
#include <stdio.h>

#include "err.h"
#include "kernel_own.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"

enum {
    GRACE_MS = 500, /* a gateway that was stopped meanwhile reads first what came */
    LOOK_MS = 100,
};

static void arm(struct kernel *k, uint64_t ms);

void kernel_create_late(struct kernel *k)
{
    char why[160], time[TIME_TEXT];

    snprintf(why, sizeof why, "time-out: the kernel %s within %s, the server's create timeout",
             k->phase == KERNEL_OPENING ? "made no sockets" : "answered nothing",
             time_text(sessions_policy(k->all)->create_ms, time));
    log_warn("kernel_not_ready", "kernel=%s generation=%u principal=%s reason=%s", k->id,
             k->generation, kernel_owner(k), LOG_QUOTED(why));
    metrics_count(METRIC_KERNEL_DEATHS, METRIC_TIMEOUT);
    kernel_audit(k, "kernel_died", "reason", "timeout");
    kernel_refuse(k, why);
}

static void on_over(void *arg)
{
    struct kernel *k = arg;

    k->create_timer = loop_timer_close(k->create_timer);
    if (!k->create_over) {
        k->create_over = 1;
        arm(k, GRACE_MS);
        return;
    }
    if (k->phase == KERNEL_CREATING || k->phase == KERNEL_STARTING)
        arm(k, LOOK_MS); /* the launcher has a clock of its own there, and always answers */
    else if (k->phase == KERNEL_OPENING || k->phase == KERNEL_ALIVE)
        kernel_create_late(k);
}

static void arm(struct kernel *k, uint64_t ms)
{
    k->create_timer = loop_timer_start(sessions_loop(k->all), ms, 0, on_over, k);
}

void kernel_create_begins(struct kernel *k)
{
    const uint64_t ms = sessions_policy(k->all)->create_ms;

    kernel_create_ends(k);
    if (ms != 0)
        arm(k, ms);
}

void kernel_create_ends(struct kernel *k)
{
    k->create_timer = loop_timer_close(k->create_timer);
    k->create_over = 0;
}
