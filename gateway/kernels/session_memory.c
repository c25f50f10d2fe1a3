/* What a session is told when memory ended for one of its processes that is not the
 * kernel: that one's end is told by itself (kernel_death.c), and takes the runs along. */
#include <stdio.h>

#include "err.h"
#include "kernel_own.h"
#include "loop.h"
#include "session.h"
#include "sessions_own.h"

/* The launcher says whether a kernel ends by it, if need be by a second word that comes a moment
 * later (kernel-launcher/kernelproc.c). What comes in between is told once. */
enum { OOM_WAIT_MS = 500 };

/* Those that were at work when it happened, not what has begun since. */
static void tell_kernel(struct kernel *k, const char *text)
{
    for (struct query *q = queries_first(k->queries); q != NULL; q = queries_next(k->queries, q)) {
        if ((q->short_of & (1U << SHORT_MEMORY)) && !q->memory_told && !run_ended(&q->run))
            kernel_tell_stream(k, q->header, text);
        q->memory_told = (q->short_of & (1U << SHORT_MEMORY)) != 0;
    }
}

static void on_oom_wait(void *arg)
{
    session_tell_memory(arg);
}

void session_tell_memory(struct session *s)
{
    char text[160];

    if (s->oom_timer == NULL)
        return;
    s->oom_timer = loop_timer_close(s->oom_timer);
    snprintf(text, sizeof text,
             "\n[holdcell] a process of this session was killed: out of memory (limit %llu MiB, "
             "peak %llu MiB)\n",
             (unsigned long long)(s->oom_limit >> 20), (unsigned long long)(s->oom_peak >> 20));
    for (struct kernel *k = s->kernels; k != NULL; k = k->next) {
        if (k->process)
            tell_kernel(k, text);
    }
}

void session_out_of_memory(struct session *s, const struct launch_out_of_memory *o)
{
    s->oom_limit = o->memory_limit_bytes;
    s->oom_peak = o->memory_peak_bytes;
    for (struct kernel *k = s->kernels; k != NULL; k = k->next)
        kernel_runs_short_of(k, SHORT_MEMORY);
    if (o->kernel_ends)
        s->oom_timer = loop_timer_close(s->oom_timer); /* its death tells, whenever it comes */
    else if (s->oom_timer == NULL)
        s->oom_timer = loop_timer_start(s->all->loop, OOM_WAIT_MS, 0, on_oom_wait, s);
}
