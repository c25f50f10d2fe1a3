#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "err.h"
#include "gateway.h"
#include "rlimits.h"
#include "sessionprofile.h"

enum { RESULT_FD = 3, TRIAL_S = 20, OPEN_FILES = 16 };

/* No file that others cannot read, no process, no privilege by exec. */
static int drop_power(uid_t uid, struct err *e)
{
    struct rlimit none = { 0, 0 }, files = { OPEN_FILES, OPEN_FILES };

    if (rlimits_forbid_core(e) < 0)
        return -1;
    if (setrlimit(RLIMIT_FSIZE, &none) < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_sys(e, errno, "trial of the settings: rlimits");
    if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
        return err_sys(e, errno, "trial of the settings: change of user");
    if (setrlimit(RLIMIT_NPROC, &none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(e, errno, "trial of the settings: drop of privileges");
    return 0;
}

/* Tells its error whole, then ends. */
static void run_child(const struct trial *t, struct view blob, uid_t uid, int result_fd,
                      pid_t parent)
{
    struct err e;
    sigset_t none;

    memset(&e, 0, sizeof e);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int signo = 1; signo < NSIG; signo++)
        signal(signo, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(126);
    alarm(TRIAL_S);
    if (dup2(result_fd, RESULT_FD) < 0 || syscall(SYS_close_range, RESULT_FD + 1, ~0U, 0) < 0)
        _exit(126);
    int rc = drop_power(uid, &e);
    if (rc == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) /* the change of user took it away */
        _exit(126);
    struct buf table;
    buf_init(&table, PROFILES_TEXT);
    if (rc == 0)
        rc = gateway_try_settings(blob, t->starting, &table, &e);
    const struct view text = buf_view(&table);
    if (rc == 0) /* it has room in the pipe, whose other end is read when we have ended */
        _exit(text.n == 0 || write(RESULT_FD, text.p, text.n) == (ssize_t)text.n ? 0 : 126);
    _exit(write(RESULT_FD, &e, sizeof e) == (ssize_t)sizeof e ? 1 : 126);
}

int trial_start(struct trial *t, struct view blob, uid_t uid, struct err *e)
{
    int result[2];
    pid_t self = getpid();

    if (pipe2(result, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(e, errno, "pipe");
    autoclose int read_end = result[0];
    autoclose int write_end = result[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(e, errno, "fork");
    if (pid == 0)
        run_child(t, blob, uid, write_end, self);
    t->pid = pid;
    t->result_fd = take_fd(&read_end);
    return 0;
}

/* What a process without power wrote is looked at before it counts. */
static int take_table(int fd, struct buf *table, struct err *e)
{
    struct profiles *checked = NULL;
    ssize_t n = 1;

    while (n > 0) {
        if (buf_reserve(table, 4096) < 0)
            return err_set(e, EINVAL, "trial of the settings: it says too much");
        n = read(fd, buf_tail(table), 4096);
        if (n < 0)
            return err_sys(e, errno, "trial of the settings");
        buf_commit(table, (size_t)n);
    }
    int rc = profiles_read(buf_view(table), &checked, e);
    free(checked);
    return rc < 0 ? err_wrap(e, "option --profiles") : 0;
}

int trial_end(struct trial *t, int status, struct buf *table, struct err *e)
{
    autoclose int fd = take_fd(&t->result_fd);
    struct err told;

    t->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return take_table(fd, table, e);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1 ||
        read(fd, &told, sizeof told) != (ssize_t)sizeof told)
        return err_set(e, EIO, "trial of the settings: its process ended with %s %d",
                       WIFSIGNALED(status) ? "signal" : "status",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    told.msg[sizeof told.msg - 1] = '\0';
    return err_set(e, EINVAL, "%s", told.msg);
}

int trial_run(struct view blob, uid_t uid, struct buf *table, struct err *e)
{
    struct trial t = TRIAL_NONE;
    int status = 0;

    t.starting = 1;
    int rc = trial_start(&t, blob, uid, e);

    if (rc < 0)
        return rc;
    while (waitpid(t.pid, &status, 0) < 0 && errno == EINTR)
        ;
    return trial_end(&t, status, table, e);
}
