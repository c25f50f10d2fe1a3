#include "kernelproc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "err.h"
#include "launcher.h"
#include "log.h"
#include "sandbox.h"

/* The limit's victim is dead at once for the counters; its memory may take a
 * while to be given back before the parent can reap it. */
enum {
    OOM_TO_EXIT_MS = 2000,
    MEMORY_AGAIN_MS = 20, /* v1 tells that memory ran out a moment before the kill is counted */
    MEMORY_UNTIL_MS = 2000,
    TASKS_PAUSE_MS = 1000, /* a fork bomb is told once a second */
};

int kernelproc_signal_permitted(uint32_t signo)
{
    return signo == SIGINT || signo == SIGTERM || signo == SIGQUIT || signo == SIGKILL ||
           signo == SIGUSR1 || signo == SIGUSR2;
}

int kernelproc_signal(struct kernelproc *k, const struct launch_signal *m, struct err *e)
{
    int rc;

    /* A kernel leads its own session, so its group has its number; both stay taken
     * until it is reaped, which happens only here. */
    if (m->group)
        rc = kill(-k->pid, (int)m->signo);
    else
        rc = (int)syscall(SYS_pidfd_send_signal, k->pidfd, m->signo, NULL, 0);
    if (rc < 0 && errno == ESRCH)
        return err_set(e, HC_EGONE, "the kernel has just ended");
    return rc < 0 ? err_sys(e, errno, "signal %u", m->signo) : 0;
}

/* SIGKILL was sent to the whole process: it stays pending there until the zombie is reaped, however
 * long the memory takes to be given back. What cannot be read is not known to end. */
static int is_killed(pid_t pid)
{
    char path[32], text[4096];
    unsigned long long pending;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *at = strstr(text, "\nShdPnd:"); /* no name of a process has a raw newline there */
    return at != NULL && sscanf(at, "\nShdPnd: %llx", &pending) == 1 &&
           (pending & (1ULL << (SIGKILL - 1))) != 0;
}

/* 1 when a kernel of it is on its way out; which ones are marked. */
static uint32_t kernels_end(struct session *s)
{
    uint32_t any = 0;

    for (unsigned i = 0; i < LAUNCH_KERNELS_MAX; i++) {
        struct kernelproc *k = &s->kernels[i];
        if (k->state == KERNEL_RUNNING && is_killed(k->pid))
            k->out_of_memory = any = 1;
    }
    return any;
}

static void tell_memory(struct launcher *l, struct session *s,
                        const struct launch_status_answer *now, uint32_t kernel_ends)
{
    struct launch_out_of_memory event = {
        .sandbox = s->id,
        .kills = now->oom_kills,
        .kernel_ends = kernel_ends,
        .memory_limit_bytes = now->memory_limit_bytes,
        .memory_peak_bytes = now->memory_peak_bytes,
    };

    launcher_event(l, LAUNCH_OUT_OF_MEMORY, &event);
    log_info("out_of_memory",
             "sandbox=%016" PRIx64 " kills=%" PRIu64 " limit=%" PRIu64 " peak=%" PRIu64
             " kernel_ends=%u",
             s->id, now->oom_kills, now->memory_limit_bytes, now->memory_peak_bytes, kernel_ends);
}

/* exited: a kernel's end, which is told next, is what brings us here. */
static void check_memory(struct launcher *l, struct session *s, uint64_t now_ms, uint32_t exited)
{
    struct launch_status_answer now = { 0 };
    struct err e = { 0 };

    if (s->sandbox == NULL || s->state != SESSION_ALIVE)
        return;
    if (sandbox_status(s->sandbox, 0, &now, &e) < 0) {
        log_warn("status_failed", "sandbox=%016" PRIx64 " text=%s", s->id, LOG_QUOTED(e.msg));
        return;
    }
    s->memory_again_ms = now_ms < s->memory_until_ms ? now_ms + MEMORY_AGAIN_MS : 0;
    int risen = now.oom_kills > s->oom_kills, again = s->oom_unsure;
    if (!risen && !again)
        return;
    s->oom_unsure = 0;
    uint32_t ends = kernels_end(s) | exited;
    if (risen) {
        s->oom_kills = now.oom_kills;
        s->oom_ms = now_ms;
    }
    if (risen || ends)
        tell_memory(l, s, &now, ends);
    /* The counter rises a moment before the signal is sent. */
    s->oom_unsure = risen && !ends;
    s->memory_again_ms = s->oom_unsure ? now_ms + MEMORY_AGAIN_MS : 0;
}

void kernelproc_check_memory(struct launcher *l, struct session *s, uint64_t now_ms)
{
    check_memory(l, s, now_ms, 0);
}

void kernelproc_memory_event(struct launcher *l, struct session *s, uint64_t now_ms)
{
    s->memory_until_ms = now_ms + MEMORY_UNTIL_MS;
    kernelproc_check_memory(l, s, now_ms); /* asking re-arms the descriptor */
}

void kernelproc_tasks_event(struct launcher *l, struct session *s, uint64_t now_ms)
{
    struct launch_tasks_refused event = { .sandbox = s->id, .pids_limit = s->limits.pids };
    int rc = sandbox_tasks_refused(s->sandbox, &event.refused);

    s->tasks_again_ms = now_ms + TASKS_PAUSE_MS;
    if (rc < 0) {
        log_warn("status_failed", "sandbox=%016" PRIx64 " text=\"pids.events: %s\"", s->id,
                 strerror(-rc));
        return;
    }
    if (event.refused <= s->tasks_refused)
        return;
    if (s->tasks_refused == 0)
        log_info("tasks_refused", "sandbox=%016" PRIx64 " refused=%" PRIu64 " limit=%" PRIu64,
                 s->id, event.refused, event.pids_limit);
    s->tasks_refused = event.refused;
    launcher_event(l, LAUNCH_TASKS_REFUSED, &event);
}

/* The session's counters, zero when they cannot be read (any more). */
static struct launch_status_answer read_status(struct session *s)
{
    struct launch_status_answer status = { 0 };

    if (s->sandbox == NULL || sandbox_status(s->sandbox, 0, &status, NULL) < 0)
        status.memory_limit_bytes = s->limits.memory_bytes;
    return status;
}

static uint32_t killed_by_limit(const struct session *s, const struct kernelproc *k,
                                uint64_t now_ms)
{
    return k->signo == SIGKILL && !k->requested && s->oom_ms != 0 &&
           (k->out_of_memory || now_ms - s->oom_ms <= OOM_TO_EXIT_MS);
}

void kernelproc_exited(struct launcher *l, struct session *s, struct kernelproc *k, int status,
                       uint64_t now_ms)
{
    uint32_t number = (uint32_t)(k - s->kernels) + 1;

    k->state = k->quiet ? KERNEL_NONE : KERNEL_EXITED;
    k->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    k->signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    k->pid = 0;
    closep(&k->pidfd);
    k->pidfd = -1;

    check_memory(l, s, now_ms, 1);
    struct launch_status_answer use = read_status(s);
    struct launch_kernel_exited event = {
        .sandbox = s->id,
        .kernel = number,
        .generation = k->generation,
        .exit_code = k->exit_code,
        .signo = k->signo,
        .out_of_memory = killed_by_limit(s, k, now_ms),
        .requested = k->requested != 0,
        .sandbox_ends = s->sandbox != NULL && sandbox_is_ending(s->sandbox),
        .memory_limit_bytes = use.memory_limit_bytes,
        .memory_peak_bytes = use.memory_peak_bytes,
    };
    if (!k->quiet)
        launcher_event(l, LAUNCH_KERNEL_EXITED, &event);
    log_info("kernel_exited",
             "sandbox=%016" PRIx64
             " kernel=%u generation=%u exit=%d signal=%d out_of_memory=%u requested=%u",
             s->id, number, k->generation, k->exit_code, k->signo, event.out_of_memory,
             event.requested);
    /* What it left running belongs to nobody any more. */
    if (s->state == SESSION_ALIVE && session_leaf_add(s, number, k->generation, now_ms) == NULL)
        log_warn("leaves_full", "sandbox=%016" PRIx64, s->id);
}
