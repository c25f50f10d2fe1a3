#include "sandbox_fake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "sandbox.h"

enum { KERNELS = 64, SANDBOXES = 64 };

struct sandbox {
    unsigned index;
    struct launch_limits limits;
    pid_t init_pid;
    int init_pidfd, init_fd, peer_fd, run_fd, oom_fd, tasks_fd;
    struct {
        uint32_t kernel, generation;
        pid_t pid;
    } kernels[KERNELS];
    unsigned count;
};

struct sandbox_fake fake;
static struct sandbox *all[SANDBOXES];

/* In place of libc's: a test may have hours pass. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int r = (int)syscall(SYS_clock_gettime, clock, ret);

    if (r == 0 && clock == CLOCK_MONOTONIC)
        ret->tv_sec += fake.ahead_s;
    return r;
}

void fake_oom(void)
{
    fake.kills++;
    for (unsigned i = 0; i < SANDBOXES; i++) {
        if (all[i] != NULL)
            check(eventfd_write(all[i]->oom_fd, 1) == 0);
    }
}

void sandbox_limits_default(struct launch_limits *ret)
{
    *ret = (struct launch_limits){ .memory_bytes = 2048,
                                   .home_bytes = 512,
                                   .tmp_bytes = 256,
                                   .shm_bytes = 64,
                                   .output_bytes = 1024,
                                   .inodes = 100,
                                   .pids = 256,
                                   .cpu_millis = 1000,
                                   .nofile = 4096 };
}

/* go_fd, status_fd: a kernel on its way waits for a byte, then closes its status as
 * exec would; -1 each for those that are there at once. */
static pid_t child(const char *what, int go_fd, int status_fd)
{
    char byte;
    pid_t pid = fork();

    check(pid >= 0);
    if (pid > 0) {
        setpgid(pid, pid); /* both sides: whoever comes first */
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    for (int signo = 1; signo < NSIG; signo++)
        signal(signo, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (go_fd >= 0 && read(go_fd, &byte, 1) != 1)
        _exit(1);
    closep(&status_fd);
    if (strcmp(what, "exit7") == 0)
        _exit(7);
    if (strcmp(what, "segv") == 0)
        raise(SIGBUS); /* sanitizers handle SIGSEGV, not this after SIG_DFL */
    if (strcmp(what, "suicide") == 0)
        raise(SIGKILL);
    for (;;)
        pause();
}

int sandbox_host_disk(struct sandbox_host *h, int dir_fd, const struct launch_limits *usual,
                      struct err *e)
{
    (void)h;
    (void)usual;
    (void)dir_fd;
    return fake.disk_error != 0 ? err_sys(e, fake.disk_error, "fake") : 0;
}

int sandbox_host_workspaces(struct sandbox_host *h, const char *path, uint64_t reserve,
                            struct err *e)
{
    (void)h;
    (void)path;
    (void)reserve;
    (void)e;
    return 0;
}

void sandbox_host_reaped(struct sandbox_host *h, pid_t pid)
{
    (void)h;
    fake.reaped = pid;
}

/* One directory. */
int sandbox_host_data(struct sandbox_host *h, const char *list, struct err *e)
{
    (void)h;
    (void)list;
    (void)e;
    return 0;
}

int sandbox_data_bit(const struct sandbox_host *h, struct view name, uint32_t *ret)
{
    (void)h;
    *ret = 1;
    return view_equals(name, "first") ? 0 : -ENOENT;
}

uint32_t sandbox_data_all(const struct sandbox_host *h)
{
    (void)h;
    return 3;
}

uint64_t sandbox_workspace_size(uint64_t bytes)
{
    return bytes;
}

uint64_t sandbox_home_size(const struct launch_limits *limits)
{
    return limits->home_bytes;
}

int sandbox_create(struct sandbox_host *h, unsigned index, const struct launch_limits *limits,
                   const struct sandbox_files *files, struct sandbox **ret, struct err *e)
{
    int sockets[2];

    (void)h;
    if (fake.create_error != 0)
        return err_sys(e, fake.create_error, "fake");
    if (fake.no_loop_devices && files->home == SANDBOX_HOME_DISK)
        return err_sys(e, ENODEV, "fake");
    poll(NULL, 0, fake.create_ms);
    fake.ahead_s += fake.create_s;
    check(index < SANDBOXES && all[index] == NULL);
    struct sandbox *s = xcalloc(1, sizeof *s);
    check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
    s->index = index;
    s->limits = *limits;
    fake.files = *files;
    snprintf(fake.workspace, sizeof fake.workspace, "%s",
             files->workspace != NULL ? files->workspace : "");
    s->init_fd = sockets[0];
    s->peer_fd = sockets[1];
    s->run_fd = open("/", O_PATH | O_CLOEXEC);
    s->oom_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->tasks_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->init_pid = child("wait", -1, -1);
    s->init_pidfd = (int)syscall(SYS_pidfd_open, s->init_pid, 0);
    check(s->run_fd >= 0 && s->oom_fd >= 0 && s->tasks_fd >= 0 && s->init_pidfd >= 0);
    all[index] = s;
    fake.alive++;
    fake.indexes |= 1U << index;
    *ret = s;
    return 0;
}

void sandbox_host_room(const struct sandbox_host *h, struct sandbox_room *ret)
{
    (void)h;
    *ret = (struct sandbox_room){ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                  UINT64_MAX, UINT64_MAX, UINT64_MAX };
    if (fake.room != NULL)
        *ret = *fake.room;
}

int sandbox_host_share(struct sandbox_host *h, const struct sandbox_share *wanted,
                       struct sandbox_share *ret, struct err *e)
{
    (void)h;
    (void)e;
    fake.share = *ret = *wanted;
    return 0;
}

uint64_t sandbox_memory(const struct sandbox *s)
{
    (void)s;
    return fake.memory;
}

int sandbox_run_fd(const struct sandbox *s)
{
    return s->run_fd;
}

int sandbox_take_init_fd(struct sandbox *s)
{
    return take_fd(&s->init_fd);
}

int sandbox_init_pidfd(const struct sandbox *s)
{
    return s->init_pidfd;
}

pid_t sandbox_init_pid(const struct sandbox *s)
{
    return s->init_pid;
}

int sandbox_is_ending(const struct sandbox *s)
{
    (void)s;
    return fake.init_is_dying;
}

int sandbox_oom_fd(const struct sandbox *s)
{
    return s->oom_fd;
}

int sandbox_tasks_fd(const struct sandbox *s)
{
    return s->tasks_fd;
}

short sandbox_tasks_events(const struct sandbox *s)
{
    (void)s;
    return POLLIN;
}

int sandbox_tasks_refused(const struct sandbox *s, uint64_t *ret)
{
    eventfd_t count;

    (void)!eventfd_read(s->tasks_fd, &count);
    *ret = fake.tasks_refused;
    return 0;
}

void fake_refuse_task(void)
{
    fake.tasks_refused++;
    for (unsigned i = 0; i < SANDBOXES; i++) {
        if (all[i] != NULL)
            check(eventfd_write(all[i]->tasks_fd, 1) == 0);
    }
}

short sandbox_oom_events(const struct sandbox *s)
{
    (void)s;
    return POLLIN;
}

int sandbox_start_begin(struct sandbox *s, const struct sandbox_start *start,
                        struct sandbox_kernel *ret, struct err *e)
{
    int status[2], go[2];

    if (fake.start_error != 0)
        return err_sys(e, fake.start_error, "exec");
    check(s->count < KERNELS);
    snprintf(fake.spec_name, sizeof fake.spec_name, "%s", start->spec_name);
    snprintf(fake.cwd, sizeof fake.cwd, "%s", start->cwd);
    snprintf(fake.argv0, sizeof fake.argv0, "%s", start->argv[0]);
    snprintf(fake.env0, sizeof fake.env0, "%s", start->env[0] != NULL ? start->env[0] : "");
    check(pipe2(status, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
    ret->pid = child(start->argv[0], go[0], status[1]);
    ret->pidfd = (int)syscall(SYS_pidfd_open, ret->pid, 0);
    ret->run_fd = start->flags & LAUNCH_SOCKETS_FD ? -1 : open("/", O_PATH | O_CLOEXEC);
    ret->status_fd = status[0];
    ret->spec_index = 0;
    check(ret->pidfd >= 0);
    close(status[1]);
    if (fake.hold_starts && fake.held_count < SANDBOX_FAKE_HELD)
        fake.held[fake.held_count++] = fcntl(go[1], F_DUPFD_CLOEXEC, 3);
    else
        check(write(go[1], "g", 1) == 1);
    close(go[0]);
    close(go[1]);
    s->kernels[s->count].kernel = start->kernel;
    s->kernels[s->count].generation = start->generation;
    s->kernels[s->count++].pid = ret->pid;
    return 0;
}

void fake_let_go(void)
{
    fake.hold_starts = 0;
    signal(SIGPIPE, SIG_IGN); /* some were killed meanwhile */
    for (unsigned i = 0; i < fake.held_count; i++) {
        if (write(fake.held[i], "g", 1) < 0)
            continue;
    }
    fake_forget_held();
}

void fake_forget_held(void)
{
    for (unsigned i = 0; i < fake.held_count; i++)
        close(fake.held[i]);
    fake.held_count = 0;
}

int sandbox_start_end(struct sandbox *s, uint32_t kernel, uint32_t generation,
                      struct sandbox_kernel *started, struct err *e)
{
    struct pollfd p = { .fd = started->status_fd, .events = POLLIN };

    (void)s;
    (void)kernel;
    (void)generation;
    if (poll(&p, 1, 0) != 1)
        return err_set(e, EAGAIN, "fake");
    close(take_fd(&started->status_fd));
    if (fake.end_error == 0)
        return 0;
    kill(started->pid, SIGKILL);
    check(waitpid(started->pid, NULL, 0) == started->pid); /* fails if somebody reaped it before */
    close(take_fd(&started->pidfd));
    closep(&started->run_fd);
    started->run_fd = -1;
    return err_sys(e, fake.end_error, "exec");
}

int sandbox_seal(struct sandbox *s, uint32_t kernel, uint32_t generation, struct err *e)
{
    (void)s;
    (void)kernel;
    (void)generation;
    (void)e;
    fake.sealed++;
    return 0;
}

int sandbox_kill_kernel(struct sandbox *s, uint32_t kernel, uint32_t generation, struct err *e)
{
    (void)e;
    for (unsigned i = 0; i < s->count; i++) {
        /* A reaped one has no process any more; its number may be another's. */
        if (s->kernels[i].kernel == kernel && s->kernels[i].generation == generation &&
            !fake.kill_has_no_effect && getpgid(s->kernels[i].pid) == s->kernels[i].pid)
            kill(s->kernels[i].pid, SIGKILL);
    }
    return 0;
}

int sandbox_kill(struct sandbox *s, struct err *e)
{
    fake.killed++;
    for (unsigned i = 0; i < s->count; i++)
        (void)!sandbox_kill_kernel(s, s->kernels[i].kernel, s->kernels[i].generation, e);
    syscall(SYS_pidfd_send_signal, s->init_pidfd, SIGKILL, NULL, 0);
    return 0;
}

static int not_yet(void)
{
    if (fake.busy > 0) {
        fake.busy--;
        return 1;
    }
    return fake.never_empty;
}

int sandbox_kernel_empty(struct sandbox *s, uint32_t kernel, uint32_t generation)
{
    (void)s;
    (void)kernel;
    (void)generation;
    return !not_yet();
}

int sandbox_remove_kernel(struct sandbox *s, uint32_t kernel, uint32_t generation, struct err *e)
{
    (void)s;
    (void)kernel;
    (void)generation;
    return not_yet() ? err_set(e, EBUSY, "fake") : 0;
}

int sandbox_empty(struct sandbox *s)
{
    (void)s;
    return !not_yet();
}

int sandbox_status(struct sandbox *s, int reset_peak, struct launch_status_answer *ret,
                   struct err *e)
{
    eventfd_t count;

    (void)reset_peak;
    (void)e;
    (void)!eventfd_read(s->oom_fd, &count); /* re-arms, as the real one */
    *ret = (struct launch_status_answer){ .memory_bytes = 100,
                                          .memory_peak_bytes = 200,
                                          .memory_limit_bytes = s->limits.memory_bytes,
                                          .oom_kills = fake.kills,
                                          .pids = 2,
                                          .pids_limit = s->limits.pids };
    return 0;
}

int sandbox_free(struct sandbox *s, struct err *e)
{
    if (not_yet())
        return err_set(e, EBUSY, "fake");
    all[s->index] = NULL;
    fake.alive--;
    fake.indexes &= ~(1U << s->index);
    close(s->init_pidfd);
    closep(&s->init_fd);
    close(s->peer_fd);
    close(s->run_fd);
    close(s->oom_fd);
    close(s->tasks_fd);
    free(s);
    return 0;
}
