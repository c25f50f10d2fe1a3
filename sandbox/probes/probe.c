#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "err.h"
#include "proc.h"

enum { SWEEP_ROUNDS = 500, NAP_NS = 10000000 };

void probe_say(struct probe_result *r, enum hostwall_state state, const char *fmt, ...)
{
    va_list ap;

    r->state = state;
    va_start(ap, fmt);
    vsnprintf(r->detail, sizeof r->detail, fmt, ap);
    va_end(ap);
}

int probe_begin(struct err *e)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? err_sys(e, errno, "become a subreaper") : 0;
}

void probe_end(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static uint64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* A child that is not reaped keeps its number, and only this thread reaps. */
static void kill_children(void)
{
    char path[64];
    int pid;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "re");
    while (f != NULL && fscanf(f, "%d", &pid) == 1)
        (void)kill(pid, SIGKILL);
    if (f != NULL)
        fclose(f);
}

void probe_sweep(void)
{
    const struct timespec nap = { .tv_nsec = NAP_NS };

    /* Each death may hand us further orphans. */
    for (int i = 0; i < SWEEP_ROUNDS; i++) {
        pid_t pid;

        while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
            ;
        if (pid < 0 && errno == ECHILD)
            return;
        kill_children();
        nanosleep(&nap, NULL);
    }
}

/* In the child. Everything that the text came from is the kernel's or ours, but a path may
 * hold anything. */
static void tidy(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

_Noreturn static void run_child(probe_fn *fn, const struct probe_env *env, int fd)
{
    struct probe_result result = { .state = HOSTWALL_PRESENT };
    struct err e = { 0 };

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    proc_reset_signals();
    int r = fn(env, &result, &e);
    if (r < 0)
        probe_say(&result, HOSTWALL_MISSING, "%s", e.msg[0] != '\0' ? e.msg : strerror(-r));
    tidy(result.detail);
    _exit(write(fd, &result, sizeof result) == (ssize_t)sizeof result ? 0 : 1);
}

/* 1 when the whole answer came. */
static int hear(int fd, unsigned deadline_ms, struct probe_result *ret)
{
    uint64_t end = now_us() + (uint64_t)deadline_ms * 1000;

    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        uint64_t now = now_us();
        int n = poll(&p, 1, now < end ? (int)((end - now + 999) / 1000) : 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            probe_say(ret, HOSTWALL_MISSING, "no answer within %u ms", deadline_ms);
        return n > 0 && read(fd, ret, sizeof *ret) == (ssize_t)sizeof *ret;
    }
}

static void describe_death(int status, struct probe_result *ret)
{
    if (WIFSIGNALED(status))
        probe_say(ret, HOSTWALL_MISSING, "the process that tried it was killed by signal %d",
                  WTERMSIG(status));
    else
        probe_say(ret, HOSTWALL_MISSING, "the process that tried it said nothing (status %d)",
                  WEXITSTATUS(status));
}

/* By the number where there are no pidfds: what is not reaped keeps it. */
static void end_child(pid_t pid, int pidfd, int *ret_status)
{
    if (pidfd < 0 || syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0)
        (void)kill(pid, SIGKILL);
    if (proc_reap(pid, ret_status) < 0)
        *ret_status = SIGKILL;
}

void probe_run(probe_fn *fn, const struct probe_env *env, unsigned deadline_ms,
               struct probe_result *ret)
{
    struct probe_result result = { .state = HOSTWALL_MISSING };
    uint64_t began = now_us();
    int p[2], status = 0, heard;

    if (pipe2(p, O_CLOEXEC) < 0) {
        probe_say(ret, HOSTWALL_MISSING, "no pipe: %s", strerror(errno));
        return;
    }
    fflush(NULL); /* or the child's copy of what waits would be written twice */
    pid_t pid = fork();
    if (pid == 0) {
        close(p[0]);
        run_child(fn, env, p[1]);
    }
    close(p[1]);
    if (pid < 0) {
        probe_say(&result, HOSTWALL_MISSING, "no process: %s", strerror(errno));
    } else {
        autoclose int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

        heard = hear(p[0], deadline_ms, &result);
        if (heard)
            result.detail[sizeof result.detail - 1] = '\0';
        end_child(pid, pidfd, &status);
        if (!heard && result.detail[0] == '\0')
            describe_death(status, &result);
    }
    close(p[0]);
    probe_sweep();
    result.us = (uint32_t)(now_us() - began);
    *ret = result;
}
