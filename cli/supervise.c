#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
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
#include "harden.h"
#include "instance.h"
#include "keepermsg.h"
#include "launcherproc.h"
#include "launchlink.h"
#include "log.h"
#include "reload.h"
#include "spawn.h"
#include "walls.h"

enum {
    READY_MS = 60000, /* of the first start */
    STOP_MS = 10000,  /* the launcher's own patience with the gateway is 8 s */
    LEFTOVER_MS =
        3000, /* children of a dead launcher: they are killed and only have to be reaped */
    HEALTHY_MS = 60000, /* a launcher that lived so long starts again without delay */
    POLL_ORPHANS_MS = 20,
};

enum { KEEP_REQUEST = 1 }; /* those about profiles have numbers above it */

static const unsigned backoff_ms[] = { 0, 100, 500, 1000, 2000, 5000 };

struct supervisor {
    const struct supervise_plan *plan;
    int signal_fd;
    struct launcherproc launcher;
    int ready, stopping, status;
    int keeping, kept;  /* KEEP was said; KEPT was answered */
    int hangup_ignored; /* by nohup(1) */
    int hurried;        /* a signal came while it ended */
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

/* status: of wait(2). */
static void launcher_ended(struct supervisor *s, int status)
{
    int clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;

    launcherproc_ended(&s->launcher);
    reload_unanswered(s->plan->reload, "the launcher ended meanwhile; ask again");
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

/* ---- a reload that needs the launcher ---- */

static void ask_launcher(struct supervisor *s)
{
    struct reload *r = s->plan->reload;
    const struct keeper_profiles body = { .table = reload_asked(r) };

    if (s->launcher.control == NULL) {
        reload_unanswered(r, "there is no launcher at this moment; ask again");
        return;
    }
    link_post(s->launcher.control, keeper_request_spec(KEEPER_PROFILES), KEEP_REQUEST + r->question,
              0, &body, NULL, 0);
}

static void go_on(struct supervisor *s, enum reload_next next)
{
    if (next == RELOAD_PUBLISHED)
        launcherproc_signal(&s->launcher, SIGHUP); /* it passes the word on to the gateway */
    else if (next == RELOAD_ASK)
        ask_launcher(s);
    else if (next == RELOAD_RESTART)
        launcherproc_signal(&s->launcher, SIGTERM);
}

/* refusal: NULL when it has taken the table. */
static void told_profiles(struct supervisor *s, uint64_t request, const char *refusal)
{
    if (request > KEEP_REQUEST)
        go_on(s, reload_answered(s->plan->reload, request - KEEP_REQUEST, refusal));
}

/* Reaps everything: the launcher, and, as subreaper, what it left. A sandbox is
 * gone only when its kernels are reaped. */
static void reap(struct supervisor *s)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        if (pid == s->launcher.pid)
            launcher_ended(s, status);
        else
            go_on(s, reload_reaped(s->plan->reload, pid, status));
    }
}

static void say_keep(struct supervisor *s)
{
    const struct keeper_count body = { 0 };

    link_post(s->launcher.control, keeper_request_spec(KEEPER_KEEP), KEEP_REQUEST, 0, &body, NULL,
              0);
}

static void begin_stop(struct supervisor *s, int status)
{
    if (s->stopping && s->keeping && s->launcher.control != NULL) {
        say_keep(s); /* a second signal: it kills its gateway; the kernels stay */
        return;
    }
    if (s->stopping) { /* a second signal: no more patience */
        s->hurried = 1;
        s->stop_by_ms = now_ms();
        return;
    }
    s->stopping = 1;
    s->status = status;
    s->stop_by_ms = now_ms() + STOP_MS;
    /* A server that does not come up ends no kernels of an earlier one. */
    s->keeping = s->plan->keep || (s->launcher.pidfd >= 0 && !s->ready);
    if (s->keeping && s->launcher.control != NULL)
        say_keep(s);
    else
        launcherproc_signal(&s->launcher, SIGTERM);
}

/* ---- what the launcher says ---- */

static void told_kept(struct supervisor *s, const struct keeper_count *body)
{
    log_info("kernels_kept", "sessions=%u keeper=%d", body->sessions, (int)s->launcher.pid);
    if (!s->stopping && body->failed)
        log_error("gateway_does_not_start", "note=\"the kernels stay kept\"");
    if (!s->stopping)
        s->status = 1;
    s->stopping = s->kept = 1;
}

static void take_packet(struct supervisor *s, const struct link_packet *p)
{
    const struct msg_spec *spec = keeper_answer_spec(p->head.verb);
    union {
        struct keeper_count count;
        struct keeper_error error;
    } body;
    struct err e = { 0 };

    if (spec == NULL || p->head.fds != 0 || msg_decode(spec, &p->head, p->bytes, &body, &e) < 0)
        return;
    if (p->head.verb == KEEPER_KEPT)
        told_kept(s, &body.count);
    else if (p->head.verb == KEEPER_ENDED)
        s->launcher.ended_well = body.count.failed == 0;
    else if (p->head.verb == KEEPER_PROFILES)
        told_profiles(s, p->head.request, NULL);
    if (p->head.verb == KEEPER_ERROR && p->head.request > KEEP_REQUEST) {
        autofree char *text = view_dup(body.error.text);
        told_profiles(s, p->head.request, text);
        return;
    }
    if (p->head.verb != KEEPER_ERROR || !s->keeping)
        return;
    log_error("not_kept", "text=\"%.*s\"", (int)body.error.text.n, (const char *)body.error.text.p);
    s->keeping = 0;
    s->status = 1;
    launcherproc_signal(&s->launcher, SIGTERM);
}

static void read_control(struct supervisor *s)
{
    struct link_packet p;

    while (s->launcher.control != NULL && link_receive(s->launcher.control, &p) > 0) {
        take_packet(s, &p);
        link_packet_close(&p);
    }
    if (s->launcher.control != NULL && link_broken(s->launcher.control) != NULL)
        s->launcher.control = link_free(s->launcher.control); /* its end is told by its process */
}

/* A launcher that is no child cannot be reaped: what it said last is all we know. */
static void keeper_ended(struct supervisor *s)
{
    read_control(s);
    launcher_ended(s, s->launcher.ended_well ? 0 : SIGKILL);
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
            if (!s->stopping && s->plan->pass_hangup)
                launcherproc_signal(&s->launcher, SIGHUP);
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

/* The trial of a reload is no leftover of a launcher: the settings that it finds right are
 * those of the next one. It ends by itself. */
static pid_t spared(const struct supervisor *s)
{
    return s->stopping ? 0 : s->plan->reload->trial.pid;
}

/* Children of a dead launcher die by their parent-death signal; killing them
 * again costs nothing and covers one that had not set it yet. Returns 1 when none
 * is left, or when waiting longer is of no use. */
static int leftovers_gone(struct supervisor *s)
{
    if (children_kill_all(spared(s)) == 0)
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
    s->started_ms = now;
    if (launcherproc_start(&s->launcher, s->plan) < 0) {
        s->ended_ms = now;
        s->deaths++;
    }
    return 0;
}

/* What it leaves is killed and swept (finish()). */
static void kill_launcher(const struct supervisor *s)
{
    if (s->hurried)
        log_warn("launcher_killed", "pid=%d reason=\"another signal came while it ended\"",
                 (int)s->launcher.pid);
    else
        log_error("launcher_killed", "pid=%d reason=\"did not end in time\"", (int)s->launcher.pid);
    launcherproc_signal(&s->launcher, SIGKILL);
}

/* What has to happen now; returns how long to sleep, -1 for ever. */
static int step(struct supervisor *s)
{
    uint64_t now = now_ms();

    if (s->launcher.pid == 0)
        return restart(s);
    if (s->stopping) {
        if (now < s->stop_by_ms)
            return (int)(s->stop_by_ms - now);
        kill_launcher(s);
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
    int pid = spawn_program(s->plan->sweep_argv, s->plan->fds, SUPERVISE_STATE + 1, &e);
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

/* Real-time is inherited, and no quota of processor time holds it: a loop in a cell would stop the host.
 * Batch and idle scheduling are the operator's wish for all that we start. */
static void leave_real_time(void)
{
    const struct sched_param none = { 0 };
    int policy = sched_getscheduler(0);

    if (policy < 0 || (policy & ~SCHED_RESET_ON_FORK) == SCHED_OTHER ||
        (policy & ~SCHED_RESET_ON_FORK) == SCHED_BATCH ||
        (policy & ~SCHED_RESET_ON_FORK) == SCHED_IDLE)
        return;
    if (sched_setscheduler(0, SCHED_OTHER, &none) < 0)
        log_error("scheduling", "policy=%d error=\"%s\"", policy, strerror(errno));
    else
        log_warn("scheduling", "policy=%d note=\"real-time is for no session: given up\"", policy);
}

static int turn(struct supervisor *s)
{
    struct pollfd p[] = {
        { .fd = s->signal_fd, .events = POLLIN },
        { .fd = s->plan->ready_fd, .events = POLLIN },
        { .fd = s->launcher.pidfd, .events = POLLIN },
        { .fd = s->launcher.control != NULL ? link_fd(s->launcher.control) : -1,
          .events = s->launcher.control != NULL ? link_events(s->launcher.control) : 0 },
    };
    int timeout = step(s);

    if (s->launcher.pidfd != p[2].fd || (s->launcher.control == NULL) != (p[3].fd < 0))
        return 0; /* another launcher */
    if (poll(p, 4, timeout) < 0 && errno != EINTR) {
        log_error("supervisor", "poll=\"%s\"", strerror(errno));
        return -1;
    }
    if (p[1].revents & POLLIN)
        read_ready(s);
    if (p[3].revents & POLLOUT)
        link_flush(s->launcher.control);
    if (p[3].revents & ~POLLOUT)
        read_control(s);
    if (p[2].revents & POLLIN)
        keeper_ended(s);
    if (p[0].revents & POLLIN)
        read_signals(s);
    return 0;
}

int supervise(const struct supervise_plan *plan)
{
    struct supervisor s = { .plan = plan, .launcher = LAUNCHERPROC_NONE };
    struct sigaction hangup;
    struct err e = { 0 };
    autoclose int signal_fd = open_signals();

    s.signal_fd = signal_fd;
    s.hangup_ignored = sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
    walls_tell("holdcell");
    protect_from_oom();
    leave_real_time();
    if (signal_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
        log_error("supervisor", "text=\"%s\"", strerror(errno));
        return 1;
    }
    if (harden_daemon(SECCOMP_SUPERVISOR, &e) < 0) {
        log_error("supervisor", "text=\"%s\"", e.msg);
        return 1;
    }
    s.started_ms = now_ms();
    if ((plan->instance->keeper.link != NULL ? launcherproc_adopt(&s.launcher, plan)
                                             : launcherproc_start(&s.launcher, plan)) < 0)
        return 1;
    while (!s.kept && (s.launcher.pid != 0 || !s.stopping)) {
        if (turn(&s) < 0)
            return 1;
    }
    if (!s.kept)
        finish(&s);
    launcherproc_close(&s.launcher);
    return s.status;
}
