/* The lock of an instance tells who holds it, and whether that process lives. */
#include "lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "err.h"

static char top[64];
static int dir = -1;
static struct err error;

static int make_top(void **state)
{
    (void)state;
    strcpy(top, "/tmp/holdcell-lockfile-XXXXXX");
    if (mkdtemp(top) == NULL)
        return -1;
    dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0;
}

static int remove_top(void **state)
{
    (void)state;
    (void)unlinkat(dir, "lock", 0);
    closep(&dir);
    return rmdir(top);
}

/* A lock file with this text; locked by this process where held. */
static int lock_with(const char *text, int held)
{
    int fd = openat(dir, "lock", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    if (held)
        assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    return fd;
}

static void a_held_lock_tells_its_holder(void **state)
{
    char holder[LOCKFILE_HOLDER] = "?";

    (void)state;
    autoclose int fd = lock_with("", 1);
    assert_int_equal(lockfile_write_slot(fd, 4711, 3, &error), 0);
    assert_int_equal(lockfile_held(dir, "lock", holder, &error), 1);
    assert_string_equal(holder, "pid 4711");
}

static void a_lock_that_its_holder_left_is_not_held(void **state)
{
    char holder[LOCKFILE_HOLDER] = "?";

    (void)state;
    autoclose int fd = lock_with("pid 4711\nslot 3\n", 0);
    assert_int_equal(lockfile_held(dir, "lock", holder, &error), 0);
    /* and asking did not take it */
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
}

static void where_nobody_ever_was_nothing_is_held(void **state)
{
    char holder[LOCKFILE_HOLDER];

    (void)state;
    assert_int_equal(lockfile_held(dir, "lock", holder, &error), 0);
    autoclose int fd = lock_with("", 1); /* has it, and has not said so yet */
    assert_int_equal(lockfile_held(dir, "lock", holder, &error), 0);
}

static void what_is_no_file_of_ours_is_an_error_with_its_name(void **state)
{
    char holder[LOCKFILE_HOLDER];

    (void)state;
    assert_int_equal(symlinkat("elsewhere", dir, "lock"), 0);
    assert_int_equal(lockfile_held(dir, "lock", holder, &error), -ELOOP);
    assert_non_null(strstr(error.msg, "'lock'"));
    assert_int_equal(unlinkat(dir, "lock", 0), 0);
    assert_int_equal(mkdirat(dir, "lock", 0700), 0);
    assert_int_equal(lockfile_held(dir, "lock", holder, &error), -EISDIR);
    assert_int_equal(unlinkat(dir, "lock", AT_REMOVEDIR), 0);
}

static void a_long_line_is_cut_to_the_room(void **state)
{
    char holder[LOCKFILE_HOLDER], text[2 * LOCKFILE_HOLDER] = "";

    (void)state;
    memset(text, 'x', sizeof text - 1);
    autoclose int fd = lock_with(text, 0);
    assert_int_equal(lockfile_holder(fd, holder), 0);
    assert_int_equal(strlen(holder), LOCKFILE_HOLDER - 1);
}

static void who_cannot_be_read_has_no_text(void **state)
{
    char holder[LOCKFILE_HOLDER] = "left over";

    (void)state;
    assert_int_equal(lockfile_holder(dir, holder), -EISDIR);
    assert_string_equal(holder, "");
}

static void a_shorter_text_leaves_nothing_of_the_longer_one(void **state)
{
    char text[64] = "";

    (void)state;
    autoclose int fd = lock_with("pid 1234567\nslot 63\nand more\n", 0);
    assert_int_equal(lockfile_write_slot(fd, 7, 1, &error), 0);
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    assert_string_equal(text, "pid 7\nslot 1\n");
}

#define in_a_folder(test) cmocka_unit_test_setup_teardown(test, make_top, remove_top)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_a_folder(a_held_lock_tells_its_holder),
        in_a_folder(a_lock_that_its_holder_left_is_not_held),
        in_a_folder(where_nobody_ever_was_nothing_is_held),
        in_a_folder(what_is_no_file_of_ours_is_an_error_with_its_name),
        in_a_folder(a_long_line_is_cut_to_the_room),
        in_a_folder(who_cannot_be_read_has_no_text),
        in_a_folder(a_shorter_text_leaves_nothing_of_the_longer_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
