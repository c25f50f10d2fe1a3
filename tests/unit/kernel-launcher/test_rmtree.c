/* Whatever tree an unprivileged process left, it goes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "err.h"
#include "rmtree.h"

static char top[64];
static int top_fd = -1;
static struct err error;

static int make_top(void **state)
{
    (void)state;
    strcpy(top, "/tmp/holdcell-rmtree-XXXXXX");
    if (mkdtemp(top) == NULL)
        return -1;
    top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return top_fd < 0;
}

static int remove_top(void **state)
{
    (void)state;
    closep(&top_fd);
    return rmdir(top); /* something was left */
}

static void make_file(int dir, const char *name)
{
    autoclose int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
}

static int make_dir(int dir, const char *name)
{
    assert_int_equal(mkdirat(dir, name, 0700), 0);
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* Each level has a file, a directory that is empty, and the next one. */
static void make_chain(int dir, unsigned depth, const char *name)
{
    int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);

    for (unsigned i = 0; i < depth; i++) {
        int next = make_dir(at, name);

        make_file(at, "file");
        assert_true(mkdirat(at, "empty", 0) == 0 || errno == EEXIST);
        close(at);
        at = next;
    }
    make_file(at, "last");
    close(at);
}

static void remove_it(void)
{
    struct stat st;

    if (rmtree_at(top_fd, "tree", &error) < 0)
        fail_msg("%s", error.msg);
    assert_int_equal(fstatat(top_fd, "tree", &st, AT_SYMLINK_NOFOLLOW), -1);
    assert_int_equal(errno, ENOENT);
}

static void what_is_not_there_is_removed(void **state)
{
    (void)state;
    remove_it();
}

static void a_file_and_a_link_are_removed_as_such(void **state)
{
    (void)state;
    make_file(top_fd, "kept");
    make_file(top_fd, "tree");
    remove_it();
    assert_int_equal(symlinkat("kept", top_fd, "tree"), 0);
    remove_it();
    assert_int_equal(unlinkat(top_fd, "kept", 0), 0);
}

static void no_depth_is_too_deep(void **state)
{
    (void)state;
    struct rlimit few = { 32, 32 }, before;

    autoclose int fd = make_dir(top_fd, "tree");
    make_chain(fd, 70, "d");
    make_chain(fd, 3000, "deep");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    remove_it();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* The names that directories get on their way, as far as somebody can think of them. */
static void names_that_are_taken_hinder_nothing(void **state)
{
    (void)state;
    autoclose int fd = make_dir(top_fd, "tree");
    char name[16];

    for (unsigned i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "%u", i);
        if (i % 3 == 0)
            make_file(fd, name);
        else if (i % 3 == 1)
            make_chain(fd, 3, name);
        else
            assert_int_equal(mkdirat(fd, name, 0700), 0);
    }
    remove_it();
}

static void a_wide_tree_goes_as_well(void **state)
{
    (void)state;
    autoclose int fd = make_dir(top_fd, "tree");
    autoclose int wide = make_dir(fd, "wide");
    char name[16];

    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "w%u", i);
        autoclose int one = make_dir(wide, name);
        make_file(one, "f");
    }
    remove_it();
}

static void links_lead_nowhere(void **state)
{
    (void)state;
    autoclose int kept = make_dir(top_fd, "kept");
    autoclose int fd = make_dir(top_fd, "tree");
    autoclose int inner = make_dir(fd, "inner");

    make_file(kept, "file");
    assert_int_equal(symlinkat("../kept", fd, "link"), 0);
    assert_int_equal(symlinkat("../../kept", inner, "link"), 0);
    assert_int_equal(symlinkat("..", inner, "up"), 0);
    remove_it();
    assert_int_equal(unlinkat(kept, "file", 0), 0);
    assert_int_equal(unlinkat(top_fd, "kept", AT_REMOVEDIR), 0);
}

static void what_is_mounted_in_it_is_left_alone(void **state)
{
    (void)state;
    char path[128];

    if (geteuid() != 0)
        skip();
    autoclose int fd = make_dir(top_fd, "tree");
    make_chain(fd, 2, "d");
    snprintf(path, sizeof path, "%s/tree/d/d", top);
    pid_t pid = fork();
    if (pid == 0) { /* with mounts of its own */
        char file[160];
        struct stat st;

        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("none", path, "tmpfs", 0, NULL) < 0)
            _exit(42);
        snprintf(file, sizeof file, "%s/file", path);
        int own = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (own < 0 || rmtree_at(dir, "tree", &error) != -EBUSY || stat(file, &st) < 0)
            _exit(1);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 42)
        print_message("not tried: no mounts here\n");
    else
        assert_int_equal(WEXITSTATUS(status), 0);
    remove_it();
}

static void a_directory_is_emptied_and_stays(void **state)
{
    struct stat st;

    (void)state;
    autoclose int dir = make_dir(top_fd, "tree");
    make_file(dir, "file");
    make_chain(dir, 5, "sub");
    if (rmtree_inside(dir, &error) < 0)
        fail_msg("%s", error.msg);
    assert_int_equal(fstat(dir, &st), 0);
    assert_int_equal(unlinkat(top_fd, "tree", AT_REMOVEDIR), 0); /* it holds nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_there_is_removed),
        cmocka_unit_test(a_file_and_a_link_are_removed_as_such),
        cmocka_unit_test(no_depth_is_too_deep),
        cmocka_unit_test(names_that_are_taken_hinder_nothing),
        cmocka_unit_test(a_wide_tree_goes_as_well),
        cmocka_unit_test(links_lead_nowhere),
        cmocka_unit_test(a_directory_is_emptied_and_stays),
        cmocka_unit_test(what_is_mounted_in_it_is_left_alone),
    };

    return cmocka_run_group_tests(tests, make_top, remove_top);
}
