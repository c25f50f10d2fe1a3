/* The audit file as the launcher opens it, and hands it to a gateway. */
#include "auditfile.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "err.h"
#include "world.h"

static struct answer a; /* large */
static char folder[64], path[96], other[96];

static int set_up(void **state)
{
    strcpy(folder, "/tmp/holdcell-auditfile-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/audit", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    return world_setup(state);
}

static int tear_down(void **state)
{
    unlink(path);
    unlink(other);
    rmdir(folder);
    return world_teardown(state);
}

static void assert_refused(const char *part)
{
    struct err e = { 0 };
    int fd = -1;

    assert_true(auditfile_open(path, &fd, &e) < 0);
    assert_int_equal(fd, -1);
    assert_non_null(strstr(e.msg, "option --audit-log: "));
    if (strstr(e.msg, part) == NULL)
        fail_msg("%s", e.msg);
}

static void a_new_file_is_for_its_owner_alone_and_for_appending(void **state)
{
    struct err e = { 0 };
    struct stat st;
    int fd = -1;

    (void)state;
    assert_int_equal(auditfile_open(path, &fd, &e), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(fcntl(fd, F_GETFL) & (O_APPEND | O_ACCMODE), O_APPEND | O_RDWR);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
}

static void what_is_no_plain_file_of_ours_is_refused(void **state)
{
    (void)state;
    assert_int_equal(symlink(other, path), 0);
    assert_refused("symbolic links");
    assert_int_equal(access(other, F_OK), -1); /* nothing was made behind the link */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused("no plain file");
    assert_int_equal(unlink(path), 0);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(link(path, other), 0);
    assert_refused("one name");
    assert_int_equal(unlink(other), 0);
    assert_int_equal(chmod(path, 0620), 0);
    assert_refused("writable by root only");
}

static void each_question_opens_what_the_path_names_then(void **state)
{
    struct world *w = *state;
    struct launch_audit m = { 0 };
    struct stat first, second, moved;

    w->config.audit_log = path;
    world_fresh(&a);
    world_call(w, LAUNCH_AUDIT, &m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_AUDIT);
    assert_int_equal(a.head.fds, 1);
    assert_int_equal(fstat(a.fds[0], &first), 0);
    assert_int_equal(rename(path, other), 0);
    world_call(w, LAUNCH_AUDIT, &m, NULL, 0, &a);
    assert_int_equal(fstat(a.fds[0], &second), 0);
    assert_int_equal(stat(other, &moved), 0);
    assert_true(first.st_ino == moved.st_ino && second.st_ino != moved.st_ino);
    world_close(a.fds, 1);
}

static void without_a_path_or_with_a_bad_one_it_is_an_error_and_no_end(void **state)
{
    struct world *w = *state;
    struct launch_audit m = { 0 };

    world_fresh(&a);
    world_call(w, LAUNCH_AUDIT, &m, NULL, 0, &a);
    world_assert_error(&a, ENOENT, "no audit file");
    w->config.audit_log = "/proc/no/such/folder/audit";
    world_call(w, LAUNCH_AUDIT, &m, NULL, 0, &a);
    world_assert_error(&a, ENOENT, "--audit-log");
    world_create(w);
}

/* As another server asks, whose launcher has descriptors of its own. */
static int other_server(const char *of, struct err *e)
{
    autoclose int fd = -1, lock_fd = -1;

    assert_int_equal(auditfile_open(of, &fd, e), 0);
    int tested = auditfile_test(of, fd, e);
    int rc = auditfile_lock(of, fd, &lock_fd, e);
    assert_int_equal(tested, rc);
    return rc;
}

static void a_file_has_one_server_whose_lock_no_gateway_drops(void **state)
{
    struct world *w = *state;
    struct launch_audit m = { 0 };
    struct flock unlock = { .l_type = F_UNLCK };
    struct err e = { 0 };

    w->config.audit_log = path;
    for (int gateway = 0; gateway < 2; gateway++) {
        world_fresh(&a);
        world_call(w, LAUNCH_AUDIT, &m, NULL, 0, &a);
        assert_int_equal(a.head.verb, LAUNCH_AUDIT);
        assert_int_equal(other_server(path, &e), -EBUSY);
        assert_non_null(strstr(e.msg, "--audit-log"));
        assert_non_null(strstr(e.msg, path));
        assert_int_equal(fcntl(a.fds[0], F_OFD_SETLK, &unlock), 0);
        world_close(a.fds, 1);
        assert_int_equal(other_server(path, &e), -EBUSY);
    }
    closep(&w->launcher.audit_lock);
    assert_int_equal(other_server(path, &e), 0);
}

static void the_lock_moves_with_a_rotation_and_stays_when_it_cannot(void **state)
{
    struct world *w = *state;
    struct launch_audit m = { 0 };
    struct err e = { 0 };
    int fd = -1, lock_fd = -1;

    w->config.audit_log = path;
    world_fresh(&a);
    world_call(w, LAUNCH_AUDIT, &m, NULL, 0, &a);
    world_close(a.fds, 1);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(auditfile_open(path, &fd, &e), 0);
    assert_int_equal(auditfile_lock(path, fd, &lock_fd, &e), 0);
    world_call(w, LAUNCH_AUDIT, &m, NULL, 0, &a);
    world_assert_error(&a, EBUSY, "--audit-log");
    assert_int_equal(other_server(other, &e), -EBUSY);
    close(lock_fd);
    close(fd);
    world_call(w, LAUNCH_AUDIT, &m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_AUDIT);
    world_close(a.fds, 1);
    assert_int_equal(other_server(path, &e), -EBUSY);
    assert_int_equal(other_server(other, &e), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_new_file_is_for_its_owner_alone_and_for_appending),
        T(what_is_no_plain_file_of_ours_is_refused),
        T(each_question_opens_what_the_path_names_then),
        T(without_a_path_or_with_a_bad_one_it_is_an_error_and_no_end),
        T(a_file_has_one_server_whose_lock_no_gateway_drops),
        T(the_lock_moves_with_a_rotation_and_stays_when_it_cannot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
