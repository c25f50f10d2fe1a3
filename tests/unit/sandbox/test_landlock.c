/*
 * The Landlock layer, in children that are root with all capabilities: what is
 * refused here is refused by the layer, for DAC refuses root nothing. Without
 * Landlock in the kernel the tests skip themselves.
 */
#include "landlock.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include <netinet/in.h>

#include "err.h"
#include "in_child.h"

/* Each layer is entered as every kernel from the first with Landlock to this one would enter it. */
static int abi;

static void at_each_abi(void (*body)(void *), void *arg)
{
    const int newest = landlock_abi();

    if (newest == 0)
        skip();
    for (abi = 1; abi <= newest; abi++) {
        int status = in_child(body, arg);

        if (status != 0)
            print_error("with ABI %d\n", abi);
        assert_int_equal(status, 0);
    }
}

static void enter(const struct landlock_rule *rules)
{
    struct err e = { 0 };

    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (landlock_enter(abi, rules, &e) < 0) {
        dprintf(2, "%s\n", e.msg);
        _exit(CHILD_FAILED);
    }
}

/* An own mount namespace with empty file systems where the rules point. */
static void make_tree(void)
{
    static const char *const mounts[] = { "/home", "/run", "/tmp", "/mnt", "/dev/shm" };
    static const char *const dirs[] = { "/home/user",  "/home/user/a", "/home/user/b",
                                        "/home/other", "/run/kernel",  "/tmp/t" };

    EXPECT(unshare(CLONE_NEWNS) == 0);
    EXPECT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    for (unsigned i = 0; i < sizeof mounts / sizeof mounts[0]; i++)
        EXPECT(mount("t", mounts[i], "tmpfs", 0, "size=1m") == 0);
    for (unsigned i = 0; i < sizeof dirs / sizeof dirs[0]; i++)
        EXPECT(mkdir(dirs[i], 0755) == 0);
    EXPECT(close(open("/home/other/old", O_CREAT | O_WRONLY, 0644)) == 0);
}

static int make_file(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);

    if (fd >= 0 && write(fd, "x", 1) != 1)
        return -1;
    return fd >= 0 ? close(fd) : -1;
}

static int result_of(int r)
{
    return r < 0 ? -errno : r;
}

static void session_rules(void *arg)
{
    static const char *const writable[] = { "/home/user/f", "/home/user/a/f", "/tmp/f",
                                            "/dev/shm/f", "/run/kernel/f" };
    static const char *const closed[] = { "/home/f", "/home/other/f", "/run/f", "/mnt/f",
                                          "/dev/f",  "/etc/hc-f",     "/f" };

    (void)arg;
    make_tree();
    enter(landlock_session_rules(0));
    for (unsigned i = 0; i < sizeof writable / sizeof writable[0]; i++)
        EXPECT(make_file(writable[i]) == 0);
    for (unsigned i = 0; i < sizeof closed / sizeof closed[0]; i++)
        EXPECT_ERRNO(make_file(closed[i]), EACCES);
    EXPECT_ERRNO(open("/home/other/old", O_WRONLY), EACCES);
    EXPECT_ERRNO(unlink("/home/other/old"), EACCES);
    EXPECT_ERRNO(mkdir("/mnt/d", 0755), EACCES);
    EXPECT_ERRNO(symlink("x", "/mnt/l"), EACCES);
    EXPECT_ERRNO(rename("/home/user/f", "/mnt/f"), EXDEV); /* across mounts it is that first */
    EXPECT_ERRNO(rename("/home/user/f", "/home/other/f"), EACCES);
    EXPECT_ERRNO(open("/proc/self/comm", O_WRONLY), EACCES);
    EXPECT_ERRNO(open("/proc/self/mem", O_RDWR), EACCES);
    EXPECT(result_of(truncate("/home/other/old", 0)) == (abi < 3 ? 0 : -EACCES));
}

static void a_session_writes_only_where_it_may(void **state)
{
    (void)state;
    at_each_abi(session_rules, NULL);
}

static void useful_things(void *arg)
{
    char text[16];
    int fd, status;
    pid_t pid;

    (void)arg;
    make_tree();
    enter(landlock_session_rules(0));
    fd = open("/etc/passwd", O_RDONLY);
    EXPECT(fd >= 0 && read(fd, text, sizeof text) > 0);
    EXPECT(open("/usr", O_RDONLY | O_DIRECTORY) >= 0);
    fd = open("/dev/null", O_WRONLY | O_TRUNC | O_CREAT, 0644);
    EXPECT(fd >= 0 && write(fd, "x", 1) == 1);
    EXPECT_ERRNO(isatty(fd) - 1, ENOTTY); /* the driver's answer, not the layer's */
    fd = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    EXPECT(fd >= 0 && isatty(fd) == 1);
    EXPECT(make_file("/home/user/a/f") == 0);
    EXPECT(result_of(rename("/home/user/a/f", "/home/user/b/f")) == (abi < 2 ? -EXDEV : 0));
    EXPECT(result_of(link("/home/user/b/f", "/home/user/a/f")) == (abi < 2 ? -ENOENT : 0));
    EXPECT(mkfifo("/home/user/fifo", 0600) == 0);
    EXPECT(symlink("fifo", "/home/user/link") == 0);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un at = { AF_UNIX, "/run/kernel/s-1" };
    EXPECT(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    EXPECT((pid = fork()) >= 0);
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
}

static void a_session_can_do_its_work(void **state)
{
    (void)state;
    at_each_abi(useful_things, NULL);
}

static int bind_at(const char *path)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    return fd < 0 ? fd : bind(fd, (struct sockaddr *)&at, sizeof at);
}

static void with_workspace(void *arg)
{
    static const char *const closed[] = { "/home/user/work/s", "/home/user/work/d/s",
                                          "/home/user/s" };

    (void)arg;
    make_tree();
    EXPECT(mkdir("/home/user/work", 0755) == 0);
    EXPECT(mount("t", "/home/user/work", "tmpfs", 0, "size=1m") == 0);
    enter(landlock_session_rules(1));
    EXPECT(mkdir("/home/user/work/d", 0755) == 0);
    for (unsigned i = 0; i < sizeof closed / sizeof closed[0]; i++)
        EXPECT_ERRNO(bind_at(closed[i]), EACCES);
    EXPECT_ERRNO(mknod("/home/user/work/n", S_IFSOCK | 0600, 0), EACCES);
    EXPECT(bind_at("/tmp/s") == 0 && bind_at("/dev/shm/s") == 0 && bind_at("/run/kernel/s") == 0);
    EXPECT_ERRNO(rename("/tmp/s", "/home/user/work/s"), EXDEV);
    EXPECT_ERRNO(link("/tmp/s", "/home/user/work/s"), EXDEV);
    EXPECT(make_file("/home/user/work/d/f") == 0 && make_file("/home/user/a/f") == 0);
    EXPECT(result_of(rename("/home/user/work/d/f", "/home/user/work/f")) == (abi < 2 ? -EXDEV : 0));
    EXPECT(mkfifo("/home/user/work/fifo", 0600) == 0);
    EXPECT(symlink("fifo", "/home/user/work/link") == 0);
}

static void no_socket_comes_into_a_home_with_a_workspace(void **state)
{
    (void)state;
    at_each_abi(with_workspace, NULL);
}

/* Kernels of one session enter a layer each: signals and abstract sockets must
 * still pass between them, and TCP on lo. */
static void between_layers(void *arg)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    struct sockaddr_un name = { AF_UNIX, "\0hc-landlock-test" };
    socklen_t size = sizeof at;
    int tcp = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
    int status;
    pid_t a = getpid(), b;

    (void)arg;
    EXPECT((b = fork()) >= 0);
    enter(landlock_session_rules(0)); /* both, each its own */
    if (b == 0) {
        EXPECT(kill(a, 0) == 0);
        for (;;)
            pause();
    }
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "hc-landlock-%d", a);
    EXPECT(bind(tcp, (struct sockaddr *)&at, sizeof at) == 0 && listen(tcp, 1) == 0);
    EXPECT(getsockname(tcp, (struct sockaddr *)&at, &size) == 0);
    EXPECT(bind(local, (struct sockaddr *)&name, sizeof name) == 0 && listen(local, 1) == 0);
    pid_t c = fork();
    if (c == 0) {
        enter(landlock_session_rules(0));
        EXPECT(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&at, sizeof at) == 0);
        EXPECT(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, sizeof name) ==
               0);
        EXPECT(kill(a, 0) == 0 && kill(b, SIGTERM) == 0);
        _exit(0);
    }
    EXPECT(waitpid(c, &status, 0) == c && status == 0);
    EXPECT(waitpid(b, &status, 0) == b && WTERMSIG(status) == SIGTERM);
}

static void kernels_of_a_session_reach_each_other(void **state)
{
    (void)state;
    at_each_abi(between_layers, NULL);
}

static void missing_paths(void *arg)
{
    const struct landlock_rule rules[] = {
        { "/hc-not-there/at-all", LANDLOCK_WRITE, -1 },
        { "/dev/null", LANDLOCK_WRITE, -1 }, /* a file: rights of directories must not disturb */
        { NULL, LANDLOCK_READ, -1 },
    };

    (void)arg;
    enter(rules);
    EXPECT(open("/dev/null", O_WRONLY) >= 0);
    EXPECT_ERRNO(open("/etc/passwd", O_RDONLY), EACCES);
}

static void a_path_that_is_not_there_gets_no_right(void **state)
{
    (void)state;
    at_each_abi(missing_paths, NULL);
}

static void too_early(void *arg)
{
    struct err e = { 0 };

    (void)arg;
    EXPECT(setresuid(1000, 1000, 1000) == 0); /* root with CAP_SYS_ADMIN needs no no_new_privs */
    EXPECT(landlock_enter(abi, landlock_session_rules(0), &e) == -EPERM);
    EXPECT(strstr(e.msg, "enter the layer") != NULL);
}

static void a_layer_that_cannot_be_entered_is_an_error(void **state)
{
    (void)state;
    at_each_abi(too_early, NULL);
}

/* What the gateway has: a directory by its descriptor, one to look at, nothing else. */
static void alone(void *arg)
{
    const int *outside = arg; /* port of a TCP listener; an abstract socket has its name from it */
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)*outside),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    struct err e = { 0 };

    make_tree();
    int dir = open("/home/user", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const struct landlock_rule rules[] = {
        { "", LANDLOCK_KEEP, dir },
        { "/usr", LANDLOCK_LOOK, -1 },
        { NULL, LANDLOCK_LOOK, -1 },
    };
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    EXPECT(landlock_enter_alone(abi, rules, &e) == 0);
    EXPECT(make_file("/home/user/f") == 0);
    EXPECT(result_of(rename("/home/user/f", "/home/user/a/f")) == (abi < 2 ? -EXDEV : 0));
    EXPECT(unlink(abi < 2 ? "/home/user/f" : "/home/user/a/f") == 0);
    EXPECT(open("/usr/bin/env", O_RDONLY | O_CLOEXEC) >= 0);
    EXPECT_ERRNO(execl("/usr/bin/env", "env", (char *)NULL), EACCES);
    EXPECT_ERRNO(open("/etc/passwd", O_RDONLY), EACCES);
    EXPECT_ERRNO(make_file("/tmp/f"), EACCES);

    int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(result_of(connect(tcp, (struct sockaddr *)&in, sizeof in)) == (abi < 4 ? 0 : -EACCES));
    int local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "holdcell-test-alone-%d", *outside);
    EXPECT(result_of(connect(local, (struct sockaddr *)&un, sizeof un)) == (abi < 6 ? 0 : -EPERM));
    EXPECT(result_of(kill(getppid(), 0)) == (abi < 6 ? 0 : -EPERM));
}

static void who_is_alone_reaches_its_directories_and_nobody(void **state)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    socklen_t n = sizeof in;

    (void)state;
    int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(tcp, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(tcp, 64), 0);
    assert_int_equal(getsockname(tcp, (struct sockaddr *)&in, &n), 0);
    int port = ntohs(in.sin_port), local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "holdcell-test-alone-%d", port);
    assert_int_equal(bind(local, (struct sockaddr *)&un, sizeof un), 0);
    assert_int_equal(listen(local, 64), 0);
    at_each_abi(alone, &port);
    close(tcp);
    close(local);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_writes_only_where_it_may),
        cmocka_unit_test(a_session_can_do_its_work),
        cmocka_unit_test(no_socket_comes_into_a_home_with_a_workspace),
        cmocka_unit_test(kernels_of_a_session_reach_each_other),
        cmocka_unit_test(a_path_that_is_not_there_gets_no_right),
        cmocka_unit_test(who_is_alone_reaches_its_directories_and_nobody),
        cmocka_unit_test(a_layer_that_cannot_be_entered_is_an_error),
    };

    if (geteuid() != 0) {
        print_message("skipped: needs root\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
