#include "kernelstart.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/wait.h>

#include "clock.h"
#include "ending.h"
#include "err.h"
#include "kernelproc.h"
#include "launcher.h"
#include "log.h"
#include "sandbox.h"

enum { KILL_AGAIN_MS = 500, EXIT_NOT_STARTED = 127 }; /* as shells say it */

static uint32_t number_of(const struct session *s, const struct kernelproc *k)
{
    return (uint32_t)(k - s->kernels) + 1;
}

int kernelstart_begin(struct launcher *l, struct session *s, const struct sandbox_start *start,
                      uint64_t request, struct err *e)
{
    struct kernelproc *k = &s->kernels[start->kernel - 1];
    struct sandbox_kernel made;
    int rc = sandbox_start_begin(s->sandbox, start, &made, e);

    if (rc < 0)
        return rc;
    *k = (struct kernelproc){
        .state = KERNEL_STARTING,
        .generation = start->generation,
        .previous = k->generation,
        .flags = start->flags,
        .pid = made.pid,
        .pidfd = made.pidfd,
        .status_fd = made.status_fd,
        .run_fd = made.run_fd,
        .spec_index = made.spec_index,
        .start_request = request,
        .start_by_ms = clock_ms() + l->config->start_max_ms,
    };
    return 0;
}

void kernelstart_give_up(struct kernelproc *k, int code, const char *why)
{
    if (k->state != KERNEL_STARTING || k->give_up_code != 0)
        return;
    k->give_up_code = code;
    k->give_up_text = why;
    k->requested = 1;
}

/* The child is gone and reaped. A gateway that waits gets its error and the number
 * back; one that came later took the kernel for running and is told of an exit. */
static void failed(struct launcher *l, struct session *s, struct kernelproc *k, int code,
                   const char *why, uint64_t now_ms)
{
    uint64_t request = k->start_request;

    log_info("kernel_not_started", "sandbox=%016" PRIx64 " kernel=%u generation=%u text=%s", s->id,
             number_of(s, k), k->generation, LOG_QUOTED(why));
    k->start_request = 0;
    if (request == 0) {
        kernelproc_exited(l, s, k, W_EXITCODE(EXIT_NOT_STARTED, 0), now_ms);
        return;
    }
    k->state = KERNEL_NONE;
    k->generation = k->give_up_code != 0 ? k->generation : k->previous;
    k->pid = 0;
    k->pidfd = -1;
    launcher_answer_error(l, LAUNCH_START_KERNEL, request, code, why);
}

/* Killed on its way, or a moment too late: in any case it dies now. The answer
 * says so, and its end is no event. */
static void given_up(struct launcher *l, struct session *s, struct kernelproc *k, uint64_t now_ms)
{
    k->quiet = k->start_request != 0;
    if (k->quiet)
        launcher_answer_error(l, LAUNCH_START_KERNEL, k->start_request, k->give_up_code,
                              k->give_up_text);
    k->start_request = 0;
    if (s->state == SESSION_ALIVE &&
        ending_begin_kernel(s, number_of(s, k), k->generation, 0, now_ms, NULL) < 0)
        log_warn("leaves_full", "sandbox=%016" PRIx64, s->id);
}

static void started(struct launcher *l, struct session *s, struct kernelproc *k, int run_fd)
{
    struct launch_started body = { s->id, number_of(s, k), k->generation };
    uint64_t request = k->start_request;

    log_info("kernel_started", "sandbox=%016" PRIx64 " kernel=%u generation=%u pid=%d", s->id,
             body.kernel, body.generation, (int)k->pid);
    k->start_request = 0;
    if (request != 0)
        launcher_answer(l, LAUNCH_START_KERNEL, request, &body, &run_fd, run_fd >= 0);
}

/* Its time is up: killed, again and again until the pipe of its status says so. */
static void check_time(struct session *s, struct kernelproc *k, uint64_t now_ms)
{
    struct err e = { 0 };

    if (now_ms < k->start_by_ms)
        return;
    if (k->failure.code == 0) /* else it is known what became of it */
        kernelstart_give_up(k, ETIMEDOUT, "the kernel did not get as far as exec in time");
    k->start_by_ms = now_ms + KILL_AGAIN_MS;
    if (sandbox_kill_kernel(s->sandbox, number_of(s, k), k->generation, &e) < 0)
        log_warn("kill_failed", "sandbox=%016" PRIx64 " text=%s", s->id, LOG_QUOTED(e.msg));
}

void kernelstart_step(struct launcher *l, struct session *s, struct kernelproc *k, uint64_t now_ms)
{
    struct sandbox_kernel made = { k->pid,       k->pidfd,      k->run_fd,
                                   k->status_fd, k->spec_index, k->failure };
    struct err e = { 0 };
    int rc = sandbox_start_end(s->sandbox, number_of(s, k), k->generation, &made, &e);

    if (rc == -EAGAIN) {
        k->status_fd = made.status_fd;
        k->failure = made.failure;
        check_time(s, k, now_ms);
        return;
    }
    k->status_fd = k->run_fd = -1;
    if (rc < 0) {
        k->pidfd = -1;
        failed(l, s, k, k->give_up_code != 0 ? k->give_up_code : -rc,
               k->give_up_code != 0 ? k->give_up_text : e.msg, now_ms);
        return;
    }
    autoclose int run_fd = made.run_fd;
    k->state = KERNEL_RUNNING;
    if (k->give_up_code != 0)
        given_up(l, s, k, now_ms);
    else
        started(l, s, k, run_fd);
}

uint64_t kernelstart_step_all(struct launcher *l, uint64_t now_ms)
{
    uint64_t next = 0;

    for (unsigned i = 0; i < l->sessions.max; i++) {
        struct session *s = l->sessions.slot[i];

        for (unsigned n = 0; s != NULL && n < LAUNCH_KERNELS_MAX; n++) {
            struct kernelproc *k = &s->kernels[n];

            if (k->state == KERNEL_STARTING)
                kernelstart_step(l, s, k, now_ms);
            if (k->state == KERNEL_STARTING && (next == 0 || k->start_by_ms < next))
                next = k->start_by_ms;
        }
    }
    return next;
}
