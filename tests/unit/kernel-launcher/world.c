#include "world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "clock.h"
#include "err.h"
#include "launchlink.h"
#include "sandbox.h"

enum { PATIENCE_MS = 20000 };

static unsigned open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static unsigned fds_before;

static void make_kernel_dir(struct world *w)
{
    char path[128];

    strcpy(w->dir, "/tmp/holdcell-unit-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(path, sizeof path, "%s/kernels", w->dir);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/kernels/python3", w->dir);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void remove_kernel_dir(struct world *w)
{
    char path[128];

    snprintf(path, sizeof path, "%s/kernels/python3", w->dir);
    rmdir(path);
    snprintf(path, sizeof path, "%s/kernels", w->dir);
    rmdir(path);
    rmdir(w->dir);
}

int world_setup(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);

    fds_before = open_descriptors();
    memset(&fake, 0, sizeof fake);
    make_kernel_dir(w);
    w->fd = -1;
    w->config = (struct launcher_config){
        .kernel_path = w->dir,
        .deadline_max_ms = 3600 * 1000,
        .sessions_max = 4,
        .note_fds_max = 40,
        .start_max_ms = 20000,
        .gateway = { .exe_fd = -1,
                     .name = "none",
                     .listen_fd = -1,
                     .settings_fd = -1,
                     .ready_fd = -1,
                     .dir_fd = -1,
                     .more_listen_fds = { -1, -1, -1 },
                     .uid = 65534 },
        .keeper = { .state_fd = -1, .slot_fd = -1, .state_dir_fd = -1, .control_fd = -1 },
    };
    sandbox_limits_default(&w->config.defaults);
    w->config.maxima = w->config.defaults;
    w->config.maxima.memory_bytes = WORLD_MEMORY_MAX;
    launcher_init(&w->launcher, &w->config, NULL);
    assert_int_equal(launcher_open(&w->launcher, NULL), 0);
    world_attach(w);
    *state = w;
    return 0;
}

void world_attach(struct world *w)
{
    struct gatewayproc *g = &w->launcher.gateway;
    int sockets[2];

    closep(&w->fd);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets),
                     0);
    g->pid = fork();
    assert_true(g->pid >= 0);
    if (g->pid == 0) {
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    g->pidfd = (int)syscall(SYS_pidfd_open, g->pid, 0);
    assert_true(g->pidfd >= 0);
    g->link = link_new(sockets[0]);
    g->started_ms = clock_ms();
    w->fd = sockets[1];
}

int world_gateway_dead(struct world *w)
{
    return w->launcher.gateway.pid == 0;
}

int world_teardown(void **state)
{
    struct world *w = *state;
    struct launcher *l = &w->launcher;
    uint64_t end = clock_ms() + PATIENCE_MS;

    fake_forget_held();
    fake.never_empty = 0;
    fake.busy = 0;
    launcher_stop(l);
    while (launcher_turn(l, 20))
        assert_true(clock_ms() < end);
    assert_int_equal(fake.alive, 0);
    launcher_free(l);
    closep(&w->fd);
    remove_kernel_dir(w);
    free(w);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, dead or alive */
    assert_int_equal(open_descriptors(), fds_before);
    return 0;
}

static void send_packet(struct world *w, const void *bytes, size_t n, const int *fds,
                        unsigned fd_count)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * MSG_FDS_MAX)];
    } control = { 0 };
    struct iovec iov = { (void *)(uintptr_t)bytes, n };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (fd_count > 0) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
    }
    assert_int_equal(sendmsg(w->fd, &m, MSG_NOSIGNAL), n);
}

void world_send_raw(struct world *w, const void *bytes, size_t n)
{
    send_packet(w, bytes, n, NULL, 0);
}

uint64_t world_ask(struct world *w, unsigned verb, const void *body, const int *fds,
                   unsigned fd_count)
{
    autobuf struct buf b;
    struct err e = { 0 };

    buf_init(&b, MSG_MAX);
    if (msg_encode(launch_request_spec(verb), ++w->asked, 0, body, fd_count, &b, &e) < 0)
        fail_msg("%s", e.msg);
    send_packet(w, buf_view(&b).p, buf_len(&b), fds, fd_count);
    return w->asked;
}

int world_poll(struct world *w, struct answer *a)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * MSG_FDS_MAX)];
    } control;
    struct iovec iov = { a->bytes, sizeof a->bytes };
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    ssize_t n = recvmsg(w->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    unsigned fd_count = 0;
    struct err e = { 0 };

    if (n <= 0)
        return 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
        fd_count = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(a->fds, CMSG_DATA(c), fd_count * sizeof(int));
    }
    struct view v = { a->bytes, (size_t)n };
    assert_int_equal(msg_head_decode(v, fd_count, &a->head, &e), 0);
    const struct msg_spec *spec =
        a->head.request == 0 ? launch_event_spec(a->head.verb) : launch_answer_spec(a->head.verb);
    assert_non_null(spec);
    if (msg_decode(spec, &a->head, v, &a->created, &e) < 0)
        fail_msg("%s", e.msg);
    return 1;
}

void world_close(int *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        close(fds[i]);
}

void world_next(struct world *w, struct answer *a)
{
    uint64_t end = clock_ms() + PATIENCE_MS;

    world_close(a->fds, a->head.fds);
    a->head.fds = 0;
    while (!world_poll(w, a)) {
        if (clock_ms() > end)
            fail_msg("no answer");
        launcher_turn(&w->launcher, 5);
    }
}

void world_call(struct world *w, unsigned verb, const void *body, const int *fds, unsigned fd_count,
                struct answer *a)
{
    uint64_t request = world_ask(w, verb, body, fds, fd_count);

    world_next(w, a);
    assert_int_equal(a->head.request, request);
}

void world_until(struct world *w, int (*cond)(struct world *w))
{
    uint64_t end = clock_ms() + PATIENCE_MS;

    while (!cond(w)) {
        if (clock_ms() > end)
            fail_msg("waited in vain");
        launcher_turn(&w->launcher, 5);
    }
}

uint64_t world_create(struct world *w)
{
    struct launch_create m = { .profile = VIEW_STR("default") };
    struct answer *a = xcalloc(1, sizeof *a);

    world_call(w, LAUNCH_CREATE, &m, NULL, 0, a);
    assert_int_equal(a->head.verb, LAUNCH_CREATE);
    assert_int_equal(a->head.fds, 2);
    world_close(a->fds, 2);
    uint64_t sandbox = a->created.sandbox;
    free(a);
    return sandbox;
}

unsigned world_start_fds(int fds[7], int with_sockets)
{
    int pipe_fds[2];
    unsigned n = 2;

    fds[0] = memfd_create("connection", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(write(fds[0], "{}", 2), 2);
    assert_int_equal(fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    close(pipe_fds[0]);
    fds[1] = pipe_fds[1];
    for (unsigned i = 0; with_sockets && i < 5; i++) {
        fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr autobound = { .sa_family = AF_UNIX };
        assert_int_equal(bind(fds[n], &autobound, sizeof autobound.sa_family), 0);
        assert_int_equal(listen(fds[n++], 1), 0);
    }
    return n;
}

void world_start(struct world *w, uint64_t sandbox, uint32_t kernel, uint32_t generation,
                 const char *argv0)
{
    struct launch_start m = {
        .sandbox = sandbox,
        .kernel = kernel,
        .generation = generation,
        .flags = LAUNCH_SOCKETS_FD,
        .spec_name = VIEW_STR("python3"),
        .argv = { (const uint8_t *)argv0, strlen(argv0) + 1 },
    };
    int fds[7];
    unsigned n = world_start_fds(fds, 1);
    struct answer *a = xcalloc(1, sizeof *a);

    world_call(w, LAUNCH_START_KERNEL, &m, fds, n, a);
    world_close(fds, n);
    if (a->head.verb != LAUNCH_START_KERNEL)
        fail_msg("start: %.*s", (int)a->error.text.n, a->error.text.p);
    assert_int_equal(a->head.fds, 0);
    assert_int_equal(a->started.generation, generation);
    free(a);
}

void world_fresh(struct answer *a)
{
    memset(a, 0, sizeof *a);
}

void world_assert_error(const struct answer *a, int code, const char *part)
{
    char text[LAUNCH_TEXT_MAX + 1] = "";

    assert_int_equal(a->head.verb, LAUNCH_ERROR);
    memcpy(text, a->error.text.p, a->error.text.n);
    if (a->head.error != code || strstr(text, part) == NULL)
        fail_msg("error %d '%s', expected %d '%s'", a->head.error, text, code, part);
}

void world_assert_gateway_ended(struct world *w, int sandboxes)
{
    world_until(w, world_gateway_dead);
    assert_int_equal(fake.alive, sandboxes);
    world_attach(w);
}

void world_stop_session(struct world *w, uint64_t sandbox)
{
    struct launch_stop m = { .sandbox = sandbox };
    uint64_t request = world_ask(w, LAUNCH_STOP, &m, NULL, 0);
    struct answer *a = xcalloc(1, sizeof *a);

    do
        world_next(w, a);
    while (a->head.request == 0);
    assert_int_equal(a->head.request, request);
    assert_int_equal(a->head.verb, LAUNCH_STOP);
    free(a);
}
