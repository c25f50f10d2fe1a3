/* The runner of probes: what hangs, dies or forks leaves nothing behind and gets a verdict. And the
 * hints, over a tree like /proc. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "err.h"
#include "hosthints.h"

enum { LONG_MS = 60000 };

static pid_t *shared; /* written by children */

static int start(void **state)
{
    struct err e;

    (void)state;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED || probe_begin(&e) < 0;
}

static int end(void **state)
{
    (void)state;
    probe_end();
    return munmap(shared, 4096);
}

static void assert_alone(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
}

static int fine(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)env;
    (void)ret;
    (void)e;
    return 0;
}

static int weaker(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)env;
    (void)e;
    probe_say(ret, HOSTWALL_WEAKER, "less\nthan \x1b[31mbefore");
    return 0;
}

static int failing(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)env;
    (void)ret;
    return err_sys(e, EPERM, "do it");
}

static int silent_failure(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)env;
    (void)ret;
    (void)e;
    return -ENOSYS;
}

static void the_verdict_of_a_probe_is_heard(void **state)
{
    (void)state;
    struct probe_result r;

    probe_run(fine, NULL, LONG_MS, &r);
    assert_int_equal(r.state, HOSTWALL_PRESENT);
    assert_string_equal(r.detail, "");
    assert_true(r.us > 0);
    probe_run(weaker, NULL, LONG_MS, &r);
    assert_int_equal(r.state, HOSTWALL_WEAKER);
    assert_string_equal(r.detail, "less?than ?[31mbefore"); /* one printable line */
    probe_run(failing, NULL, LONG_MS, &r);
    assert_int_equal(r.state, HOSTWALL_MISSING);
    assert_string_equal(r.detail, "do it: Operation not permitted");
    probe_run(silent_failure, NULL, LONG_MS, &r);
    assert_int_equal(r.state, HOSTWALL_MISSING);
    assert_string_equal(r.detail, "Function not implemented");
    assert_alone();
}

static int dying(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)env;
    (void)ret;
    (void)e;
    return raise(SIGKILL);
}

static int leaving(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)env;
    (void)ret;
    (void)e;
    _exit(5);
}

static void a_probe_that_dies_is_a_missing_wall(void **state)
{
    (void)state;
    struct probe_result r;

    probe_run(dying, NULL, LONG_MS, &r);
    assert_int_equal(r.state, HOSTWALL_MISSING);
    assert_string_equal(r.detail, "the process that tried it was killed by signal 9");
    probe_run(leaving, NULL, LONG_MS, &r);
    assert_int_equal(r.state, HOSTWALL_MISSING);
    assert_string_equal(r.detail, "the process that tried it said nothing (status 5)");
    assert_alone();
}

/* With a child in a session of its own that has the pipe open too, and ignores what can be. */
static int hanging(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)env;
    (void)ret;
    (void)e;
    signal(SIGTERM, SIG_IGN);
    shared[0] = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        shared[1] = getpid();
    }
    while (pause() < 0)
        ;
    return 0;
}

static void a_probe_that_hangs_is_killed_with_its_children(void **state)
{
    (void)state;
    struct probe_result r;

    /* The child may not have come that far by the first deadline. */
    for (unsigned ms = 200; ms < LONG_MS; ms *= 2) {
        memset(shared, 0, 2 * sizeof *shared);
        probe_run(hanging, NULL, ms, &r);
        assert_int_equal(r.state, HOSTWALL_MISSING);
        assert_non_null(strstr(r.detail, "no answer within"));
        assert_alone();
        if (shared[1] != 0)
            break;
    }
    assert_true(shared[0] > 0 && shared[1] > 0);
    assert_int_equal(kill(shared[0], 0), -1);
    assert_int_equal(kill(shared[1], 0), -1);
}

/* Its verdict was given, but what it started goes on. */
static int littering(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)env;
    (void)ret;
    (void)e;
    int p[2];
    char c;

    if (pipe(p) < 0)
        return -errno;
    if (fork() == 0) {
        setsid();
        shared[0] = getpid();
        if (write(p[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    return read(p[0], &c, 1) == 1 ? 0 : -EIO;
}

static void what_a_probe_leaves_is_swept(void **state)
{
    (void)state;
    struct probe_result r;

    shared[0] = 0;
    probe_run(littering, NULL, LONG_MS, &r);
    assert_int_equal(r.state, HOSTWALL_PRESENT);
    assert_true(shared[0] > 0);
    assert_alone();
    assert_int_equal(kill(shared[0], 0), -1);
}

/* ---- hints ---- */

static void put(int dir, const char *path, const char *text)
{
    char part[128];

    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdirat(dir, part, 0700) < 0)
            assert_int_equal(errno, EEXIST);
    }
    int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static enum hostwall_state look(int dir, enum hostwall hint)
{
    struct probe_result r;

    hosthints_look(dir, "6.1.0-13-amd64", hint, &r);
    return r.state;
}

static void a_setting_is_good_weaker_or_absent(void **state)
{
    (void)state;
    static const struct {
        enum hostwall hint;
        const char *path, *good, *bad;
    } settings[] = {
        { HOSTWALL_HOST_PTRACE_SCOPE, "sys/kernel/yama/ptrace_scope", "1\n", "0\n" },
        { HOSTWALL_HOST_DMESG_RESTRICT, "sys/kernel/dmesg_restrict", "1\n", "0\n" },
        { HOSTWALL_HOST_KPTR_RESTRICT, "sys/kernel/kptr_restrict", "2\n", "0\n" },
        { HOSTWALL_HOST_UNPRIVILEGED_BPF, "sys/kernel/unprivileged_bpf_disabled", "2\n", "0\n" },
        { HOSTWALL_HOST_PERF_PARANOID, "sys/kernel/perf_event_paranoid", "3\n", "-1\n" },
        { HOSTWALL_HOST_LEGACY_TIOCSTI, "sys/dev/tty/legacy_tiocsti", "0\n", "1\n" },
        { HOSTWALL_HOST_IO_URING, "sys/kernel/io_uring_disabled", "2\n", "0\n" },
        { HOSTWALL_HOST_CORE_PATTERN, "sys/kernel/core_pattern", "core\n",
          "|/usr/bin/apport %p\n" },
        { HOSTWALL_HOST_CORE_PATTERN, "sys/kernel/core_pattern", "core.@\n", "@/run/dumps\n" },
        { HOSTWALL_HOST_CORE_PATTERN, "sys/kernel/core_pattern", "core\n", "@@/run/dumps\n" },
        { HOSTWALL_HOST_MODPROBE, "sys/kernel/modprobe", "\n", "/sbin/modprobe\n" },
    };
    char top[] = "/tmp/hc-hints-XXXXXX", command[64];

    assert_non_null(mkdtemp(top));
    int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++) {
        char file[128];

        assert_int_equal(look(dir, settings[i].hint), HOSTWALL_ABSENT);
        put(dir, settings[i].path, settings[i].good);
        assert_int_equal(look(dir, settings[i].hint), HOSTWALL_PRESENT);
        put(dir, settings[i].path, settings[i].bad);
        assert_int_equal(look(dir, settings[i].hint), HOSTWALL_WEAKER);
        put(dir, settings[i].path, "");
        if (settings[i].hint != HOSTWALL_HOST_CORE_PATTERN &&
            settings[i].hint != HOSTWALL_HOST_MODPROBE)
            assert_int_equal(look(dir, settings[i].hint), HOSTWALL_WEAKER);
        snprintf(file, sizeof file, "%s/%s", top, settings[i].path);
        assert_int_equal(unlink(file), 0);
    }
    close(dir);
    snprintf(command, sizeof command, "rm -r %s", top);
    assert_int_equal(system(command), 0);
}

static void links_are_good_when_all_four_are(void **state)
{
    (void)state;
    static const char *const files[] = { "sys/fs/protected_hardlinks", "sys/fs/protected_symlinks",
                                         "sys/fs/protected_fifos", "sys/fs/protected_regular" };
    char top[] = "/tmp/hc-hints-XXXXXX", command[64];

    assert_non_null(mkdtemp(top));
    int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(look(dir, HOSTWALL_HOST_PROTECTED_LINKS), HOSTWALL_ABSENT);
        put(dir, files[i], i % 2 ? "1\n" : "2\n");
    }
    assert_int_equal(look(dir, HOSTWALL_HOST_PROTECTED_LINKS), HOSTWALL_PRESENT);
    put(dir, files[0], "0\n");
    assert_int_equal(look(dir, HOSTWALL_HOST_PROTECTED_LINKS), HOSTWALL_WEAKER);
    close(dir);
    snprintf(command, sizeof command, "rm -r %s", top);
    assert_int_equal(system(command), 0);
}

static void a_module_is_loaded_by_no_kernel_that_is_new_or_told_so(void **state)
{
    (void)state;
    char top[] = "/tmp/hc-hints-XXXXXX", command[64];
    struct probe_result r;

    assert_non_null(mkdtemp(top));
    int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(dir, "sys/kernel/modprobe", "/sbin/modprobe\n");
    assert_int_equal(look(dir, HOSTWALL_HOST_MODPROBE), HOSTWALL_WEAKER);
    hosthints_look(dir, "6.14.0", HOSTWALL_HOST_MODPROBE, &r);
    assert_int_equal(r.state, HOSTWALL_PRESENT);
    put(dir, "sys/kernel/modules_disabled", "0\n");
    assert_int_equal(look(dir, HOSTWALL_HOST_MODPROBE), HOSTWALL_WEAKER);
    put(dir, "sys/kernel/modules_disabled", "1\n");
    assert_int_equal(look(dir, HOSTWALL_HOST_MODPROBE), HOSTWALL_PRESENT);
    close(dir);
    snprintf(command, sizeof command, "rm -r %s", top);
    assert_int_equal(system(command), 0);
}

static void swap_and_the_kernels_age_are_told(void **state)
{
    (void)state;
    char top[] = "/tmp/hc-hints-XXXXXX", command[64];
    struct probe_result r;

    assert_non_null(mkdtemp(top));
    int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(look(dir, HOSTWALL_HOST_SWAP), HOSTWALL_PRESENT);
    put(dir, "swaps", "Filename\tType\tSize\tUsed\tPriority\n");
    assert_int_equal(look(dir, HOSTWALL_HOST_SWAP), HOSTWALL_PRESENT);
    put(dir, "swaps", "Filename\tType\n/dev/sda2    partition\t1\t0\t-2\n");
    hosthints_look(dir, "6.1.0", HOSTWALL_HOST_SWAP, &r);
    assert_int_equal(r.state, HOSTWALL_WEAKER);
    assert_string_equal(r.detail, "there is some: /dev/sda2");
    static const struct {
        const char *release;
        enum hostwall_state state;
    } kernels[] = { { "6.1.0-13-amd64", HOSTWALL_PRESENT },
                    { "6.18.44", HOSTWALL_PRESENT },
                    { "7.0.0-rc1", HOSTWALL_PRESENT },
                    { "6.0.19", HOSTWALL_WEAKER },
                    { "5.15.0-91-generic", HOSTWALL_WEAKER } };
    for (unsigned i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        hosthints_look(dir, kernels[i].release, HOSTWALL_HOST_KERNEL, &r);
        assert_int_equal(r.state, kernels[i].state);
        assert_non_null(strstr(r.detail, kernels[i].release));
    }
    close(dir);
    snprintf(command, sizeof command, "rm -r %s", top);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_verdict_of_a_probe_is_heard),
        cmocka_unit_test(a_probe_that_dies_is_a_missing_wall),
        cmocka_unit_test(a_probe_that_hangs_is_killed_with_its_children),
        cmocka_unit_test(what_a_probe_leaves_is_swept),
        cmocka_unit_test(a_setting_is_good_weaker_or_absent),
        cmocka_unit_test(links_are_good_when_all_four_are),
        cmocka_unit_test(a_module_is_loaded_by_no_kernel_that_is_new_or_told_so),
        cmocka_unit_test(swap_and_the_kernels_age_are_told),
    };

    return cmocka_run_group_tests(tests, start, end);
}
