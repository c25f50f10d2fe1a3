/* What a process is after the drop, step by step; runs as root. */
#include "drop.h"

#include <fcntl.h>
#include <linux/securebits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "err.h"
#include "in_child.h"
#include "landlock.h"

static const int standard_fds[] = { 0, 1, 2 };

static struct drop_plan session_plan(void)
{
    return (struct drop_plan){
        .uid = 1000,
        .gid = 1000,
        .umask = 022,
        .filter = DROP_FILTER_SESSION,
        .fds = standard_fds,
        .fd_count = 3,
        .exec_status_fd = -1,
        .nofile = 4096,
        .nproc = 300,
        .fsize_bytes = 1 << 20,
        .landlock = landlock_abi() > 0 ? DROP_LANDLOCK_DEMANDED : DROP_LANDLOCK_NONE,
    };
}

static void must_drop(const struct drop_plan *plan)
{
    struct err e = { 0 };

    if (drop_run(plan, &e) < 0) {
        dprintf(2, "drop: %s\n", e.msg);
        _exit(CHILD_FAILED);
    }
}

/* The value of a line of /proc/self/status as a number of the given base. Read by a
 * descriptor opened before: after the drop the file belongs to root. */
static unsigned long long status_field(int fd, const char *name, int base)
{
    char text[8192], *at;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    EXPECT(n > 0);
    text[n] = '\0';
    at = strstr(text, name);
    EXPECT(at != NULL);
    return strtoull(at + strlen(name), NULL, base);
}

static void expect_session_user(void *arg)
{
    struct drop_plan plan = session_plan();
    int fds[] = { 0, 1, 2, open("/proc/self/status", O_RDONLY) };
    static const char *const empty[] = { "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:" };

    (void)arg;
    plan.fds = fds;
    plan.fd_count = 4;
    must_drop(&plan);
    for (unsigned i = 0; i < 5; i++)
        EXPECT(status_field(3, empty[i], 16) == 0);
    EXPECT(status_field(3, "NoNewPrivs:", 10) == 1);
    EXPECT(status_field(3, "Seccomp:", 10) == 2);
    EXPECT(status_field(3, "SigBlk:", 16) == 0);
    EXPECT(status_field(3, "SigIgn:", 16) == 0);
    EXPECT(status_field(3, "SigCgt:", 16) == 0);
    uid_t u[3];
    gid_t g[3];
    EXPECT(getresuid(&u[0], &u[1], &u[2]) == 0 && u[0] == 1000 && u[1] == 1000 && u[2] == 1000);
    EXPECT(getresgid(&g[0], &g[1], &g[2]) == 0 && g[0] == 1000 && g[1] == 1000 && g[2] == 1000);
    EXPECT(getgroups(0, NULL) == 0);
    EXPECT(prctl(PR_GET_DUMPABLE) == 0);
    int signo = 0;
    EXPECT(prctl(PR_GET_PDEATHSIG, &signo) == 0 && signo == SIGKILL);
    EXPECT(umask(0) == 022);
}

static void the_session_user_holds_nothing(void **state)
{
    (void)state;
    assert_child_passes(expect_session_user, NULL);
}

static void the_steps_come_in_the_order_that_is_written_down(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "signals",
        "descriptors",
        "limits",
        "umask",
        "session",
        "bounding set",
        "ambient set",
        "securebits",
        "ids",
        "capabilities",
        "dumpable",
        "parent death signal",
        "no new privileges",
        "verify",
        "landlock",
        "seccomp",
    };
    const char *const *names = drop_step_names();

    for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_string_equal(names[i], expected[i]);
    assert_null(names[sizeof expected / sizeof expected[0]]);
}

/* A pipe whose read end answers with the byte that tells the pipes apart. */
static int marked_pipe(char mark)
{
    int ends[2];

    EXPECT(pipe(ends) == 0 && write(ends[1], &mark, 1) == 1);
    return ends[0];
}

static void expect_placed(void *arg)
{
    struct drop_plan plan = session_plan();
    int fds[6], status[2], high;
    char got[6] = "";

    (void)arg;
    for (int i = 0; i < 4; i++)
        fds[i] = marked_pipe((char)('a' + i));
    EXPECT(dup2(fds[0], 30) == 30 && dup2(fds[1], 0) == 0); /* b sits where a is to go */
    fds[0] = 30;
    fds[1] = 0;
    fds[4] = 2;      /* our own stderr */
    fds[5] = fds[3]; /* one that is wanted twice */
    EXPECT(pipe(status) == 0 && (high = fcntl(status[1], F_DUPFD, 500)) == 500);
    plan.fds = fds;
    plan.fd_count = 6;
    plan.exec_status_fd = 1;
    EXPECT(dup2(status[1], 1) == 1); /* the status pipe sits where b is to go */
    must_drop(&plan);
    /* d is one pipe under two numbers: its byte is there once. */
    for (int i = 0; i < 4; i++)
        EXPECT(read(i, &got[i], 1) == 1);
    EXPECT(memcmp(got, "abcd", 4) == 0);
    EXPECT(fcntl(5, F_GETFD) == 0); /* not close-on-exec */
    EXPECT(fcntl(6, F_GETFD) == FD_CLOEXEC && fcntl(6, F_GETFL) == O_WRONLY);
    for (int fd = 7; fd < 1024; fd++)
        EXPECT_ERRNO(fcntl(fd, F_GETFD), EBADF);
}

static void descriptors_come_to_their_numbers_and_all_others_are_closed(void **state)
{
    (void)state;
    assert_child_passes(expect_placed, NULL);
}

static void expect_fresh_signals(void *arg)
{
    struct drop_plan plan = session_plan();
    int fds[] = { 0, 1, 2, open("/proc/self/status", O_RDONLY) };
    sigset_t all;
    uint64_t every = ~0ULL;
    const struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } ignore = { (void *)1 /* SIG_IGN */, 0, NULL, 0 };

    (void)arg;
    for (int signo = 1; signo <= 64; signo++) /* 32 and 33 too, which libc hides */
        syscall(SYS_rt_sigaction, signo, &ignore, NULL, 8);
    EXPECT(sigfillset(&all) == 0 && syscall(SYS_rt_sigprocmask, SIG_SETMASK, &every, NULL, 8) == 0);
    EXPECT(status_field(fds[3], "SigIgn:", 16) != 0);
    plan.fds = fds;
    plan.fd_count = 4;
    must_drop(&plan);
    EXPECT(status_field(3, "SigIgn:", 16) == 0);
    EXPECT(status_field(3, "SigBlk:", 16) == 0);
}

static void ignored_and_blocked_signals_are_not_inherited(void **state)
{
    (void)state;
    assert_child_passes(expect_fresh_signals, NULL);
}

static void expect_limit(int resource, rlim_t soft, rlim_t hard)
{
    struct rlimit l;

    EXPECT(getrlimit((__rlimit_resource_t)resource, &l) == 0);
    if (l.rlim_cur == soft && l.rlim_max == hard)
        return;
    dprintf(2, "limit %d: %llu/%llu\n", resource, (unsigned long long)l.rlim_cur,
            (unsigned long long)l.rlim_max);
    _exit(CHILD_FAILED);
}

static void expect_limits(void *arg)
{
    struct drop_plan plan = session_plan();
    struct rlimit low = { 100, 2000 }, more = { 4097, 4097 };

    (void)arg;
    EXPECT(setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){ 50, 60 }) == 0); /* lower than ours */
    EXPECT(setrlimit(RLIMIT_NPROC, &low) == 0);
    must_drop(&plan);
    expect_limit(RLIMIT_NOFILE, 1024, 4096);
    expect_limit(RLIMIT_NPROC, 300, 300);
    expect_limit(RLIMIT_FSIZE, 1 << 20, 1 << 20);
    expect_limit(RLIMIT_STACK, 8 << 20, 64 << 20);
    expect_limit(RLIMIT_MSGQUEUE, 0, 0);
    expect_limit(RLIMIT_RTPRIO, 0, 0);
    expect_limit(RLIMIT_NICE, 0, 0);
    expect_limit(RLIMIT_SIGPENDING, 60, 60);
    struct rlimit core;
    EXPECT(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max <= 1);
    EXPECT_ERRNO(setrlimit(RLIMIT_NOFILE, &more), EPERM);
}

static void limits_are_set_and_cannot_be_raised(void **state)
{
    (void)state;
    assert_child_passes(expect_limits, NULL);
}

static void expect_own_session(void *arg)
{
    struct drop_plan plan = session_plan();

    (void)arg;
    plan.new_session = 1;
    plan.umask = 007;
    must_drop(&plan);
    EXPECT(getsid(0) == getpid() && getpgrp() == getpid());
    EXPECT(umask(0) == 007);
}

static void a_child_can_lead_a_session_of_its_own(void **state)
{
    (void)state;
    assert_child_passes(expect_own_session, NULL);
}

static struct drop_plan init_plan(const int *fds, unsigned count)
{
    struct drop_plan plan = session_plan();

    plan.uid = plan.gid = 0;
    plan.filter = DROP_FILTER_INIT;
    plan.keep_capabilities = 1;
    plan.fds = fds;
    plan.fd_count = count;
    return plan;
}

/* SETGID SETUID SETPCAP KILL SYS_CHROOT of linux/capability.h */
static const unsigned long long init_capabilities = 1 << 6 | 1 << 7 | 1 << 8 | 1 << 5 | 1 << 18;

/* A host that lacks both, which its operator accepted: all other steps are the same. */
static void expect_no_layers(void *arg)
{
    struct drop_plan plan = session_plan();

    (void)arg;
    plan.landlock = DROP_LANDLOCK_NONE;
    plan.filter = DROP_FILTER_NONE;
    must_drop(&plan);
    EXPECT(prctl(PR_GET_SECCOMP) == 0);
    EXPECT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    EXPECT(getuid() == 1000);
    EXPECT_ERRNO(syscall(SYS_setresuid, 0, 0, 0), EPERM);
}

static void without_the_two_layers_all_other_steps_are_the_same(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_child_passes(expect_no_layers, NULL);
}

static void expect_init(void *arg)
{
    int fds[] = { 0, 1, 2, open("/proc/self/status", O_RDONLY) };
    struct drop_plan plan = init_plan(fds, 4);

    (void)arg;
    must_drop(&plan);
    EXPECT(status_field(3, "CapPrm:", 16) == init_capabilities);
    EXPECT(status_field(3, "CapEff:", 16) == init_capabilities);
    EXPECT(status_field(3, "CapInh:", 16) == 0 && status_field(3, "CapBnd:", 16) == 0);
    int bits = prctl(PR_GET_SECUREBITS);
    EXPECT((bits & (SECBIT_NOROOT | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_KEEP_CAPS |
                    SECBIT_NO_SETUID_FIXUP)) == (SECBIT_NOROOT | SECBIT_NO_CAP_AMBIENT_RAISE));
    EXPECT((bits & SECURE_ALL_LOCKS & 0xff) == (SECURE_ALL_LOCKS & 0xff));
    EXPECT_ERRNO(prctl(PR_SET_SECUREBITS, 0), EPERM);
    /* Its children go through the same door, with the session's filter on top. */
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        plan = session_plan();
        plan.fds = (const int[]){ 0, 1, 2 };
        plan.landlock = DROP_LANDLOCK_INHERITED;
        must_drop(&plan);
        EXPECT(getuid() == 1000);
        EXPECT_ERRNO(syscall(SYS_setresuid, 0, 0, 0), EPERM);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
}

static void init_keeps_five_capabilities_and_its_children_none(void **state)
{
    (void)state;
    assert_child_passes(expect_init, NULL);
}

static void expect_nothing_at_exec(void *arg)
{
    struct drop_plan plan = init_plan(standard_fds, 3);

    (void)arg;
    must_drop(&plan);
    execl("/bin/grep", "grep", "-q", "CapEff:.0000000000000000$", "/proc/self/status",
          (char *)NULL);
    _exit(CHILD_FAILED);
}

static void user_zero_gets_nothing_back_by_an_exec(void **state)
{
    (void)state;
    assert_child_passes(expect_nothing_at_exec, NULL);
}

static void expect_failures(void *arg)
{
    const int bad[] = { 0, 1, 2, 999 };
    struct drop_plan plan = session_plan();
    struct err e = { 0 };

    (void)arg;
    plan.fds = bad;
    plan.fd_count = 4;
    EXPECT(drop_run(&plan, &e) == -EBADF && strncmp(e.msg, "descriptors: ", 13) == 0);
    plan = session_plan();
    plan.fd_count = DROP_FDS_MAX + 1;
    EXPECT(drop_run(&plan, &e) == -EINVAL && strncmp(e.msg, "descriptors: ", 13) == 0);
    plan = session_plan();
    plan.keep_capabilities = 1; /* with user 1000 */
    EXPECT(drop_run(&plan, &e) == -EINVAL && strncmp(e.msg, "ids: ", 5) == 0);
}

static void a_step_that_fails_gives_its_name(void **state)
{
    (void)state;
    assert_child_passes(expect_failures, NULL);
}

static void expect_unprivileged_failure(void *arg)
{
    struct drop_plan plan = session_plan();
    struct err e = { 0 };

    (void)arg;
    EXPECT(syscall(SYS_setresuid, 1000, 1000, 1000) == 0);
    EXPECT(drop_run(&plan, &e) == -EPERM && strncmp(e.msg, "bounding set: ", 14) == 0);
}

static void a_caller_without_the_power_to_drop_is_refused(void **state)
{
    (void)state;
    assert_child_passes(expect_unprivileged_failure, NULL);
}

/* Drops, says so on descriptor 3, and waits for ever. */
static pid_t dropped_child(int say_fd)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct drop_plan plan = session_plan();
        int fds[] = { 0, 1, 2, say_fd };

        plan.fds = fds;
        plan.fd_count = 4;
        must_drop(&plan);
        EXPECT(write(3, "r", 1) == 1);
        for (;;)
            pause();
    }
    return pid;
}

static void expect_closed_memory(void *arg)
{
    static const char *const names[] = { "mem", "environ", "maps", "fd", "root", "cwd" };
    char path[64];

    EXPECT(syscall(SYS_setresuid, 1000, 1000, 1000) == 0);
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", *(pid_t *)arg, names[i]);
        EXPECT_ERRNO(open(path, O_RDONLY), EACCES);
    }
}

static void the_session_cannot_read_a_child_before_its_exec(void **state)
{
    (void)state;
    int ends[2];
    char c;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = dropped_child(ends[1]);
    assert_int_equal(read(ends[0], &c, 1), 1);
    assert_child_passes(expect_closed_memory, &pid);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ends[0]);
    close(ends[1]);
}

static void a_dropped_child_dies_with_its_parent(void **state)
{
    (void)state;
    int ends[2];
    char c;
    pid_t parent;

    assert_int_equal(pipe(ends), 0);
    parent = fork();
    if (parent == 0) {
        close(ends[0]);
        dropped_child(ends[1]);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &c, 1), 1);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    assert_int_equal(read(ends[0], &c, 1), 0); /* hangs when the child lives on: ctest ends it */
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_session_user_holds_nothing),
        cmocka_unit_test(the_steps_come_in_the_order_that_is_written_down),
        cmocka_unit_test(descriptors_come_to_their_numbers_and_all_others_are_closed),
        cmocka_unit_test(ignored_and_blocked_signals_are_not_inherited),
        cmocka_unit_test(limits_are_set_and_cannot_be_raised),
        cmocka_unit_test(a_child_can_lead_a_session_of_its_own),
        cmocka_unit_test(init_keeps_five_capabilities_and_its_children_none),
        cmocka_unit_test(without_the_two_layers_all_other_steps_are_the_same),
        cmocka_unit_test(user_zero_gets_nothing_back_by_an_exec),
        cmocka_unit_test(a_step_that_fails_gives_its_name),
        cmocka_unit_test(a_caller_without_the_power_to_drop_is_refused),
        cmocka_unit_test(the_session_cannot_read_a_child_before_its_exec),
        cmocka_unit_test(a_dropped_child_dies_with_its_parent),
    };

    if (geteuid() != 0) {
        print_message("skipped: needs root\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
