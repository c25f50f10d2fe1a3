/*
 * boxtest - what the tests of real sandboxes share: a host, a sandbox in it, a
 * program run inside with its output, and the end of all that. The test program
 * is its own holdcell-init: started under that name it says ready and reaps.
 *
 * Needs root; skips by name without it.
 */
#ifndef HC_BOXTEST_H
#define HC_BOXTEST_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "err.h"
#include "hostids.h"
#include "init_start.h"
#include "sandbox.h"
#include "startkernel.h"

enum {
    BOX_TIMEOUT_MS = 120000, /* generous: an emulated guest is 30 times slower */
    BOX_SLOT_FIRST = 900,
    BOX_SLOT_LAST = 949,
};

#define BOX_NEEDS_ROOT()                                                                        \
    do {                                                                                        \
        if (geteuid() != 0) {                                                                   \
            print_message("skipped: needs root (namespaces, cgroups and mounts of its own)\n"); \
            skip();                                                                             \
        }                                                                                       \
    } while (0)

/* execve() wants them without const and changes nothing. */
#define BOX_TEXT(s) ((char *)(uintptr_t)(s))

struct box {
    struct sandbox_host *host;
    struct sandbox *sandbox;
    uint32_t generation; /* of the kernel started last */
};

/* In main(), before anything else. */
static inline void box_maybe_init(int argc, char **argv)
{
    struct init_start start;
    struct err e = { 0 };

    if (strcmp(argv[0], "holdcell-init") != 0)
        return;
    if (init_start_parse(argc, argv, &start, &e) < 0) {
        init_start_failed(INIT_READY_FD, &e);
        _exit(1);
    }
    if (init_start_ready(INIT_READY_FD) < 0)
        _exit(1);
    for (;;)
        if (waitpid(-1, NULL, 0) < 0)
            poll(NULL, 0, 10);
}

#define box_ok(call)                                            \
    do {                                                        \
        int box_r_ = (call);                                    \
        if (box_r_ < 0)                                         \
            fail_msg("%s: %d: %s", #call, box_r_, box_err.msg); \
    } while (0)

static struct err box_err;
static rlim_t box_start_rlimit; /* not 0: the limit of open files while a kernel is started */

/* A slot that no other test program on this machine has now: held by the name of a
 * socket, which goes with the process. */
static inline unsigned box_slot(void)
{
    static unsigned mine;

    for (unsigned slot = BOX_SLOT_FIRST; mine == 0 && slot <= BOX_SLOT_LAST; slot++) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "holdcell-test-slot-%u", slot);
        if (bind(fd, (struct sockaddr *)&a, sizeof a) == 0)
            mine = slot; /* fd stays open */
        else
            close(fd);
    }
    assert_int_not_equal(mine, 0);
    return mine;
}

static inline struct sandbox_config box_config(void)
{
    /* The ids of the last slots of real instances, one block for each of ours. */
    const uint32_t base = hostids_base(HOSTIDS_SLOTS - 1 - (box_slot() - BOX_SLOT_FIRST));

    return (struct sandbox_config){
        .slot = box_slot(),
        .id_base = base,
        .gateway_uid = hostids_gateway(base),
        .init_path = "/proc/self/exe",
        .runtime_dir = "/usr/lib/python3",
        .one_level = getenv("HOLDCELL_TEST_ONE_LEVEL") != NULL,
    };
}

static inline void box_end_sandbox(struct sandbox *s)
{
    int status, r;

    box_ok(sandbox_kill(s, &box_err));
    do { /* its init ends last: a kernel of a test that failed is a child of ours too */
        r = waitpid(-1, &status, 0);
    } while (r > 0 && r != sandbox_init_pid(s));
    assert_int_equal(r, sandbox_init_pid(s));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    for (int left = BOX_TIMEOUT_MS; (r = sandbox_free(s, &box_err)) == -EBUSY && left > 0; left--)
        poll(NULL, 0, 1);
    box_ok(r);
}

/* What is open. A test that fails leaves it to the next one, which else would find the base in use. */
static struct box box_left;

static inline void box_close_left(void)
{
    struct box left = box_left;

    memset(&box_left, 0, sizeof box_left);
    if (left.sandbox != NULL)
        box_end_sandbox(left.sandbox);
    sandbox_host_close(left.host);
}

static inline void box_open(struct box *b, const struct launch_limits *limits)
{
    struct sandbox_config config = box_config();
    struct launch_limits defaults;

    box_close_left();
    memset(b, 0, sizeof *b);
    sandbox_limits_default(&defaults);
    defaults.home_bytes = LAUNCH_HOME_MEMORY_DEFAULT;
    box_ok(sandbox_host_open(&config, &b->host, &box_err));
    box_left = *b;
    box_ok(sandbox_create(b->host, 0, limits != NULL ? limits : &defaults, NULL, &b->sandbox,
                          &box_err));
    box_left = *b;
}

static inline void box_close(struct box *b)
{
    box_left = *b; /* the test may have ended the sandbox itself */
    memset(b, 0, sizeof *b);
    box_close_left();
}

struct box_run {
    struct sandbox_kernel kernel;
    int log_fd; /* read end */
};

/* Starts argv as a kernel that binds its own sockets. Returns what startkernel() does. */
static inline int box_start(struct box *b, char *const *argv, struct box_run *ret)
{
    char *const env[] = { BOX_TEXT("PATH=/usr/bin:/bin"), BOX_TEXT("HOME=/home/user"),
                          BOX_TEXT("LANG=C.UTF-8"), NULL };
    int log[2], connection = memfd_create("connection", MFD_CLOEXEC);

    assert_int_equal(pipe2(log, O_CLOEXEC), 0);
    assert_int_equal(write(connection, "{}", 2), 2);
    const struct sandbox_start start = {
        .kernel = 1,
        .generation = ++b->generation,
        .spec_fd = -1,
        .argv = argv,
        .env = env,
        .cwd = "/home/user",
        .connection_fd = connection,
        .log_fd = log[1],
    };
    struct rlimit before, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = (struct rlimit){ box_start_rlimit != 0 ? box_start_rlimit : before.rlim_cur,
                           before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    int r = startkernel(b->sandbox, &start, &ret->kernel, &box_err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(log[1]);
    close(connection);
    ret->log_fd = log[0];
    if (r < 0)
        close(log[0]);
    return r;
}

/* Its output until the end of file, its exit status as waitpid() gives it; its leaf is removed. */
static inline int box_finish(struct box *b, struct box_run *run, char *output, size_t size)
{
    size_t n = 0;
    int status, r;

    for (;;) {
        struct pollfd p = { .fd = run->log_fd, .events = POLLIN };
        char drain[4096];

        assert_int_equal(poll(&p, 1, BOX_TIMEOUT_MS), 1);
        ssize_t got = n + 1 < size ? read(run->log_fd, output + n, size - 1 - n)
                                   : read(run->log_fd, drain, sizeof drain);
        assert_true(got >= 0);
        if (got == 0)
            break;
        n += n + 1 < size ? (size_t)got : 0;
    }
    output[n] = '\0';
    close(run->log_fd);
    assert_int_equal(waitpid(run->kernel.pid, &status, 0), run->kernel.pid);
    close(run->kernel.pidfd);
    if (run->kernel.run_fd >= 0)
        close(run->kernel.run_fd);
    box_ok(sandbox_kill_kernel(b->sandbox, 1, b->generation, &box_err));
    for (int left = BOX_TIMEOUT_MS; left > 0; left--) {
        r = sandbox_remove_kernel(b->sandbox, 1, b->generation, &box_err);
        if (r != -EBUSY)
            break;
        poll(NULL, 0, 1);
    }
    box_ok(r);
    return status;
}

/* Runs a shell script inside; its output replaces what is in `output`. */
static inline int box_shell(struct box *b, const char *script, char *output, size_t size)
{
    char *const argv[] = { BOX_TEXT("sh"), BOX_TEXT("-c"), BOX_TEXT(script), NULL };
    struct box_run run;

    box_ok(box_start(b, argv, &run));
    return box_finish(b, &run, output, size);
}

#endif
