#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "children.h"
#include "err.h"
#include "log.h"
#include "reload.h"
#include "spawn.h"

enum {
    READY_MS = 60000, /* of the first start */
    STOP_MS = 10000,  /* the launcher's own patience with the gateway is 8 s */
    LEFTOVER_MS =
        3000, /* children of a dead launcher: they are killed and only have to be reaped */
    HEALTHY_MS = 60000, /* a launcher that lived so long starts again without delay */
    POLL_ORPHANS_MS = 20,
};

static const unsigned backoff_ms[] = { 0, 100, 500, 1000, 2000, 5000 };

struct supervisor {
    const struct supervise_plan *plan;
    int signal_fd;
    pid_t launcher; /* 0 while none runs */
    int ready, stopping, status;
    int hangup_ignored; /* by nohup(1) */
    int dirty;          /* a launcher did not end by itself: its sandboxes and groups may remain */
    unsigned deaths;    /* in a row */
    uint64_t started_ms, ended_ms, stop_by_ms;
};

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int start_launcher(struct supervisor *s)
{
    struct err e = { 0 };
    int pid = spawn_program(s->plan->argv, s->plan->fds, s->plan->fd_count, &e);

    s->started_ms = now_ms();
    if (pid < 0) {
        log_error("launcher_not_started", "text=\"%s\"", e.msg);
        return pid;
    }
    s->launcher = pid;
    log_info("launcher_started", "pid=%d", pid);
    return 0;
}

static void launcher_ended(struct supervisor *s, int status)
{
    int clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;

    s->launcher = 0;
    s->ended_ms = now_ms();
    if (s->ended_ms - s->started_ms >= HEALTHY_MS)
        s->deaths = 0;
    s->deaths++;
    s->dirty = !clean;
    if (s->stopping && clean)
        log_info("launcher_ended", "exit=0");
    else
        log_error("launcher_ended", "exit=%d signal=%d",
                  WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                  WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    if (!s->ready && !s->stopping) {
        s->status = 1;
        s->stopping = 1;
    }
}

/* Reaps everything: the launcher, and, as subreaper, what it left. A sandbox is
 * gone only when its kernels are reaped. */
static void reap(struct supervisor *s)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        if (pid == s->launcher)
            launcher_ended(s, status);
        else if (reload_reaped(s->plan->reload, pid, status) && s->launcher > 0)
            kill(s->launcher, SIGHUP); /* it passes the word on to the gateway */
    }
}

static void begin_stop(struct supervisor *s, int status)
{
    if (s->stopping) { /* a second signal: no more patience */
        s->stop_by_ms = now_ms();
        return;
    }
    s->stopping = 1;
    s->status = status;
    s->stop_by_ms = now_ms() + STOP_MS;
    if (s->launcher > 0)
        kill(s->launcher, SIGTERM);
}

static void read_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        log_info("signal", "signo=%u", info.ssi_signo);
        if (info.ssi_signo == SIGHUP && info.ssi_code != SI_KERNEL) {
            if (!s->stopping)
                reload_begin(s->plan->reload);
            /* A file was rotated: the gateway asks the launcher for the new one. */
            if (!s->stopping && s->plan->pass_hangup && s->launcher > 0)
                kill(s->launcher, SIGHUP);
        } else if (info.ssi_signo != SIGHUP || !s->hangup_ignored) {
            begin_stop(s, 0); /* SIGHUP of the kernel: the terminal is gone */
        }
    }
    reap(s);
}

static void read_ready(struct supervisor *s)
{
    char bytes[16];

    if (read(s->plan->ready_fd, bytes, sizeof bytes) <= 0 || s->ready)
        return;
    s->ready = 1;
    /* Whoever waits for the line may have gone; the server stays. */
    if (fputs(s->plan->announce, stdout) == EOF || fflush(stdout) == EOF)
        log_warn("stdout_closed", "%s", "");
}

/* Children of a dead launcher die by their parent-death signal; killing them
 * again costs nothing and covers one that had not set it yet. Returns 1 when none
 * is left, or when waiting longer is of no use. */
static int leftovers_gone(struct supervisor *s)
{
    if (children_kill_all() == 0)
        return 1;
    reap(s);
    return now_ms() - s->ended_ms > LEFTOVER_MS;
}

/* Starts the launcher again when that is due. Returns the time to wait. */
static int restart(struct supervisor *s)
{
    unsigned last = sizeof backoff_ms / sizeof backoff_ms[0] - 1;
    uint64_t due = s->ended_ms + backoff_ms[s->deaths - 1 < last ? s->deaths - 1 : last];
    uint64_t now = now_ms();

    if (!leftovers_gone(s))
        return POLL_ORPHANS_MS;
    if (now < due)
        return (int)(due - now);
    if (start_launcher(s) < 0) {
        s->ended_ms = now;
        s->deaths++;
    }
    return 0;
}

/* What has to happen now; returns how long to sleep, -1 for ever. */
static int step(struct supervisor *s)
{
    uint64_t now = now_ms();

    if (s->launcher == 0)
        return restart(s);
    if (s->stopping) {
        if (now < s->stop_by_ms)
            return (int)(s->stop_by_ms - now);
        log_error("launcher_killed", "pid=%d reason=\"did not end in time\"", (int)s->launcher);
        kill(s->launcher, SIGKILL);
        s->stop_by_ms = now + STOP_MS;
        return STOP_MS;
    }
    if (s->ready)
        return -1;
    if (now - s->started_ms < READY_MS)
        return (int)(READY_MS - (now - s->started_ms));
    log_error("not_ready", "seconds=%d", READY_MS / 1000);
    begin_stop(s, 1);
    return 0;
}

static void finish(struct supervisor *s)
{
    struct err e = { 0 };

    while (!leftovers_gone(s))
        poll(NULL, 0, POLL_ORPHANS_MS);
    if (!s->dirty)
        return;
    int pid = spawn_program(s->plan->sweep_argv, s->plan->fds, s->plan->fd_count, &e);
    if (pid < 0) {
        log_error("sweep_failed", "text=\"%s\"", e.msg);
        return;
    }
    if (spawn_wait(pid, STOP_MS) != 0)
        log_error("sweep_failed", "pid=%d", pid);
    s->ended_ms = now_ms();
    while (!leftovers_gone(s))
        poll(NULL, 0, POLL_ORPHANS_MS);
}

static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Without the supervisor everything dies, so it goes last when memory runs out.
 * The launcher inherits it and says so when the host does not allow it. */
static void protect_from_oom(void)
{
    autoclose int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, "-900", 4) != 4)
        return;
}

int supervise(const struct supervise_plan *plan)
{
    struct supervisor s = { .plan = plan };
    struct sigaction hangup;
    autoclose int signal_fd = open_signals();

    s.signal_fd = signal_fd;
    s.hangup_ignored = sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
    protect_from_oom();
    signal(SIGPIPE, SIG_IGN);
    if (signal_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
        log_error("supervisor", "text=\"%s\"", strerror(errno));
        return 1;
    }
    if (start_launcher(&s) < 0)
        return 1;
    while (s.launcher != 0 || !s.stopping) {
        struct pollfd p[] = { { .fd = signal_fd, .events = POLLIN },
                              { .fd = plan->ready_fd, .events = POLLIN } };
        int timeout = step(&s);

        if (poll(p, 2, timeout) < 0 && errno != EINTR) {
            log_error("supervisor", "poll=\"%s\"", strerror(errno));
            return 1;
        }
        if (p[1].revents & POLLIN)
            read_ready(&s);
        if (p[0].revents & POLLIN)
            read_signals(&s);
    }
    finish(&s);
    return s.status;
}
