/* The kernel's argument list, its connection data, and the small files of cgroups: what needs no sandbox. */
#include "kernelargs.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "cgfile.h"
#include "connfd.h"
#include "err.h"

#define TEXT(s) ((char *)(uintptr_t)(s))

static void placeholders_are_replaced_wherever_they_stand(void **state)
{
    (void)state;
    char *const in[] = { TEXT("python3"),
                         TEXT("-f={connection_file}"),
                         TEXT("{resource_dir}/a:{resource_dir}"),
                         TEXT("{other} {connection_file"),
                         TEXT(""),
                         NULL };
    char **out = NULL;

    assert_int_equal(kernelargs_fill(in, "/c", "/r", &out, NULL), 0);
    assert_string_equal(out[0], "python3");
    assert_string_equal(out[1], "-f=/c");
    assert_string_equal(out[2], "/r/a:/r");
    assert_string_equal(out[3], "{other} {connection_file");
    assert_string_equal(out[4], "");
    assert_null(out[5]);
    out = kernelargs_free(out);
    assert_null(out);
}

static void an_empty_or_endless_list_is_refused(void **state)
{
    (void)state;
    char *const none[] = { NULL };
    char **out = NULL;
    static char big[70000];
    char *const endless[] = { big, NULL };

    assert_int_equal(kernelargs_fill(none, "/c", "/r", &out, NULL), -EINVAL);
    memset(big, 'x', sizeof big - 1);
    assert_int_equal(kernelargs_fill(endless, "/c", "/r", &out, NULL), -E2BIG);
    assert_null(out);
}

/* In a child: the errno of the failed search as exit status. */
static int exec_status(const char *program, const char *path)
{
    char *const argv[] = { TEXT(program), NULL };
    char *const env[] = { TEXT(path), NULL };
    struct err e = { 0 };
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(100 + -kernelargs_exec(argv, env, &e));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_program_is_looked_up_in_the_path_of_its_own_environment(void **state)
{
    (void)state;
    assert_int_equal(exec_status("true", "PATH=/nonexistent:/etc/passwd:/usr/bin"), 0);
    assert_int_equal(exec_status("true", "PATH=/nonexistent"), 100 + ENOENT);
    assert_int_equal(exec_status("true", "NOPATH=1"), 0);
    assert_int_equal(exec_status("passwd", "PATH=/etc"), 100 + EACCES);
    assert_int_equal(exec_status("/usr/bin/true", "PATH="), 0);
    assert_int_equal(exec_status("/nonexistent/true", "PATH=/usr/bin"), 100 + ENOENT);
}

static void connection_data_is_bounded_and_must_be_a_file(void **state)
{
    (void)state;
    char bytes[CONNFD_MAX];
    size_t size = 0;
    int fd = memfd_create("c", MFD_CLOEXEC), p[2];

    assert_int_equal(write(fd, "{\"a\":1}", 7), 7); /* the position is at the end now */
    assert_int_equal(connfd_read(fd, bytes, &size, NULL), 0);
    assert_int_equal(size, 7);
    assert_memory_equal(bytes, "{\"a\":1}", 7);
    assert_int_equal(ftruncate(fd, CONNFD_MAX), 0);
    assert_int_equal(connfd_read(fd, bytes, &size, NULL), 0);
    assert_int_equal(size, CONNFD_MAX);
    assert_int_equal(ftruncate(fd, CONNFD_MAX + 1), 0);
    assert_int_equal(connfd_read(fd, bytes, &size, NULL), -EMSGSIZE);
    close(fd);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(connfd_read(p[0], bytes, &size, NULL), -EINVAL);
    close(p[0]);
    close(p[1]);
}

static void the_copy_of_connection_data_cannot_be_changed(void **state)
{
    (void)state;
    struct stat st;
    char text[8] = { 0 };
    int fd = -1;

    assert_int_equal(connfd_new("{}", 2, getuid(), &fd, NULL), 0);
    assert_int_equal(read(fd, text, sizeof text), 2);
    assert_string_equal(text, "{}");
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0400);
    close(fd);
}

static void keys_of_cgroup_files_are_whole_words_at_line_starts(void **state)
{
    (void)state;
    static const char events[] =
        "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\nlimit max\n";
    uint64_t v = 0;

    assert_int_equal(cgfile_find_key(events, "oom", &v), 0);
    assert_int_equal(v, 4);
    assert_int_equal(cgfile_find_key(events, "oom_kill", &v), 0);
    assert_int_equal(v, 5);
    assert_int_equal(cgfile_find_key(events, "limit", &v), 0);
    assert_true(v == UINT64_MAX);
    assert_int_equal(cgfile_find_key(events, "kill", &v), -ENOENT);
    assert_int_equal(cgfile_find_key("", "low", &v), -ENOENT);
    assert_int_equal(cgfile_find_key("low x\n", "low", &v), -EINVAL);
}

static void a_tree_of_groups_is_removed_leaves_first(void **state)
{
    (void)state;
    char top[] = "/tmp/holdcell-test-XXXXXX";
    int fd = -1, a = -1, b = -1;

    assert_non_null(mkdtemp(top));
    assert_int_equal(cgfile_open_dir(AT_FDCWD, top, &fd), 0);
    assert_int_equal(cgfile_make_dir(fd, "a", &a), 0);
    assert_int_equal(cgfile_make_dir(a, "b", &b), 0);
    assert_int_equal(mkdirat(b, "c", 0755), 0);
    assert_int_equal(mkdirat(b, "d", 0755), 0);
    assert_int_equal(cgfile_remove_tree(fd, "a"), 0);
    assert_int_equal(faccessat(fd, "a", F_OK, 0), -1);
    assert_int_equal(cgfile_remove_tree(fd, "a"), 0); /* gone is fine */
    close(a);
    close(b);
    close(fd);
    assert_int_equal(rmdir(top), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placeholders_are_replaced_wherever_they_stand),
        cmocka_unit_test(an_empty_or_endless_list_is_refused),
        cmocka_unit_test(a_program_is_looked_up_in_the_path_of_its_own_environment),
        cmocka_unit_test(connection_data_is_bounded_and_must_be_a_file),
        cmocka_unit_test(the_copy_of_connection_data_cannot_be_changed),
        cmocka_unit_test(keys_of_cgroup_files_are_whole_words_at_line_starts),
        cmocka_unit_test(a_tree_of_groups_is_removed_leaves_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
