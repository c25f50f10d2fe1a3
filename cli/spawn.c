#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "err.h"
#include "walls.h"

enum { FIRST_FD = 3, ASIDE_FD = 64 };

/* The launcher needs nothing from the caller's environment; the sanitizers'
 * switches are let through for the test builds. */
static char **build_environment(void)
{
    static const char *const pass[] = { "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS" };
    size_t n = 0;
    char **env = xcalloc(4 + sizeof pass / sizeof pass[0], sizeof *env);

    env[n++] = xstrdup("PATH=/usr/sbin:/usr/bin:/sbin:/bin");
    env[n++] = xstrdup("LANG=C.UTF-8");
    for (size_t i = 0; i < sizeof pass / sizeof pass[0]; i++) {
        const char *value = getenv(pass[i]);

        if (value != NULL && asprintf(&env[n], "%s=%s", pass[i], value) >= 0)
            n++;
    }
    if (walls_environment() != NULL)
        env[n++] = xstrdup(walls_environment());
    return env;
}

static void free_environment(char **env)
{
    for (size_t i = 0; env[i] != NULL; i++)
        free(env[i]);
    free(env);
}

/* In the child. Moves all descriptors out of the way before any is placed;
 * *status_fd ends up behind them. */
static int place_fds(const int *fds, unsigned count, int *status_fd)
{
    int aside[16];

    if (count > sizeof aside / sizeof aside[0])
        return -1;
    for (unsigned i = 0; i < count; i++) {
        aside[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, ASIDE_FD);
        if (aside[i] < 0)
            return -1;
    }
    int status = fcntl(*status_fd, F_DUPFD_CLOEXEC, ASIDE_FD);
    if (status < 0)
        return -1;
    *status_fd = status;
    for (unsigned i = 0; i < count; i++) {
        if (dup2(aside[i], FIRST_FD + (int)i) < 0)
            return -1;
    }
    if (dup3(status, FIRST_FD + (int)count, O_CLOEXEC) < 0)
        return -1;
    *status_fd = FIRST_FD + (int)count;
    return (int)syscall(SYS_close_range, FIRST_FD + count + 1, ~0U, 0);
}

/* In the child; returns only on failure, with errno set. */
static void run_child(char *const *argv, char *const *env, const int *fds, unsigned count,
                      int *status_fd, pid_t parent)
{
    sigset_t hangup;
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    /* Stays blocked until the program has a place for it: it must not end by one that
     * comes a moment after its start. */
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent || setsid() < 0)
        return;
    if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(2, 1) < 0 || chdir("/") < 0)
        return;
    if (place_fds(fds, count, status_fd) < 0)
        return;
    signal(SIGPIPE, SIG_DFL); /* ignored by who started us, perhaps */
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, &hangup, NULL);
    execve(argv[0], argv, env);
}

/* The child's errno when it could not exec; 0 when it did (the pipe closes). */
static int exec_error(int fd)
{
    int code = 0;
    ssize_t n;

    do
        n = read(fd, &code, sizeof code);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof code ? code : 0;
}

int spawn_program(char *const *argv, const int *fds, unsigned count, struct err *e)
{
    int status_pipe[2];
    pid_t parent = getpid();

    if (pipe2(status_pipe, O_CLOEXEC) < 0)
        return err_sys(e, errno, "pipe");
    autoclose int read_end = status_pipe[0];
    autoclose int write_end = status_pipe[1];
    char **env = build_environment();
    pid_t pid = fork();
    if (pid == 0) {
        int status_fd = write_end;

        run_child(argv, env, fds, count, &status_fd, parent);
        int code = errno;
        _exit(write(status_fd, &code, sizeof code) < 0 ? 126 : 127);
    }
    int code = errno;
    free_environment(env);
    if (pid < 0)
        return err_sys(e, code, "fork");
    closep(&write_end);
    write_end = -1;
    code = exec_error(read_end);
    if (code != 0) {
        waitpid(pid, NULL, 0);
        return err_sys(e, code, "start '%s'", argv[0]);
    }
    return pid;
}

int spawn_wait(int pid, int timeout_ms)
{
    int status;
    int waited = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (waited >= timeout_ms)
            kill(pid, SIGKILL);
        poll(NULL, 0, 10);
        waited += 10;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
