/* An error is a code and a text that always ends, however long what was said is. */
#include "err.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char long_text[1000];

static int fill_long_text(void **state)
{
    (void)state;
    memset(long_text, 'x', sizeof long_text - 1);
    return 0;
}

static void an_error_is_its_code_and_text(void **state)
{
    (void)state;
    struct err e = { 0 };

    assert_int_equal(err_set(&e, ENOENT, "kernelspec '%s' not found", "x"), -ENOENT);
    assert_int_equal(e.code, ENOENT);
    assert_string_equal(e.msg, "kernelspec 'x' not found");
    assert_int_equal(err_set(&e, HC_ELIMIT, "later"), -HC_ELIMIT);
    assert_int_equal(e.code, HC_ELIMIT);
    assert_string_equal(e.msg, "later");
}

static void an_error_of_the_system_says_what_the_code_means(void **state)
{
    (void)state;
    struct err e = { 0 };
    char wanted[sizeof e.msg];

    errno = 0; /* the code is given, not taken */
    assert_int_equal(err_sys(&e, EACCES, "open %s", "/x"), -EACCES);
    assert_int_equal(e.code, EACCES);
    snprintf(wanted, sizeof wanted, "open /x: %s", strerror(EACCES));
    assert_string_equal(e.msg, wanted);
}

static void only_what_runs_out_is_a_shortage(void **state)
{
    static const int yes[] = { EAGAIN, ENOMEM, ENOBUFS, EMFILE, ENFILE, ENOSPC, EDQUOT };
    static const int no[] = { 0, EPERM, EINVAL, EIO, EROFS, ENOENT, HC_EFULL, HC_ELIMIT };

    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(err_is_shortage(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(err_is_shortage(no[i]));
}

static void what_is_wrapped_keeps_its_code_and_comes_behind(void **state)
{
    (void)state;
    struct err e = { 0 };

    err_set(&e, HC_EPARSE, "field 'x' is empty");
    assert_int_equal(err_wrap(&e, "create of %d", 7), -HC_EPARSE);
    assert_int_equal(err_wrap(&e, "launcher"), -HC_EPARSE);
    assert_int_equal(e.code, HC_EPARSE);
    assert_string_equal(e.msg, "launcher: create of 7: field 'x' is empty");
}

static void who_wants_no_text_gets_the_code(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, ENOENT, "%s", "x"), -ENOENT);
    assert_int_equal(err_sys(NULL, EACCES, "x"), -EACCES);
    assert_true(err_wrap(NULL, "x") < 0);
}

static void a_text_of_any_length_is_cut_within_its_array(void **state)
{
    (void)state;
    for (int n = 200; n < (int)sizeof long_text; n++) {
        struct {
            struct err e;
            char behind[8];
        } s = { .behind = "behind" };
        size_t cut = (size_t)n < sizeof s.e.msg ? (size_t)n : sizeof s.e.msg - 1;

        assert_int_equal(err_set(&s.e, EIO, "%.*s", n, long_text), -EIO);
        assert_int_equal(strlen(s.e.msg), cut);
        assert_int_equal(err_sys(&s.e, EIO, "%.*s", n, long_text), -EIO);
        assert_memory_equal(s.e.msg, long_text, cut);
        assert_true(strlen(s.e.msg) < sizeof s.e.msg);
        assert_int_equal(err_wrap(&s.e, "%.*s", n, long_text), -EIO);
        assert_memory_equal(s.e.msg, long_text, cut);
        assert_true(strlen(s.e.msg) < sizeof s.e.msg);
        assert_string_equal(s.behind, "behind");
    }
}

static void what_is_wrapped_at_length_loses_its_end_not_its_beginning(void **state)
{
    (void)state;
    struct err e = { 0 };

    err_set(&e, EIO, "%s", long_text);
    err_wrap(&e, "reading");
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    assert_memory_equal(e.msg, "reading: xxx", 12);
}

/* What check() of a false claim leaves on stderr; its status in *ret_status. */
static void fail_a_check(char *out, size_t size, int *ret_status)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        check(ends[0] < 0);
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got = 1; got > 0 && n < size - 1; n += (size_t)got) {
        got = read(ends[0], out + n, size - 1 - n);
        assert_true(got >= 0);
    }
    out[n] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, ret_status, 0), pid);
}

static void a_failed_check_says_where_and_aborts(void **state)
{
    (void)state;
    char out[4096];
    int status;

    check(sizeof out == 4096);
    fail_a_check(out, sizeof out, &status);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(out, "event=check_failed expr=\"ends[0] < 0\" func=fail_a_check"));
    assert_non_null(strstr(out, "test_err.c:"));
}

static void memory_of_small_sizes_is_zeroed_and_copied(void **state)
{
    (void)state;
    char *zeroed = xcalloc(3, 5), *copy = xstrdup("abc");

    for (unsigned i = 0; i < 15; i++)
        assert_int_equal(zeroed[i], 0);
    assert_string_equal(copy, "abc");
    free(zeroed);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_is_its_code_and_text),
        cmocka_unit_test(an_error_of_the_system_says_what_the_code_means),
        cmocka_unit_test(only_what_runs_out_is_a_shortage),
        cmocka_unit_test(what_is_wrapped_keeps_its_code_and_comes_behind),
        cmocka_unit_test(who_wants_no_text_gets_the_code),
        cmocka_unit_test(a_text_of_any_length_is_cut_within_its_array),
        cmocka_unit_test(what_is_wrapped_at_length_loses_its_end_not_its_beginning),
        cmocka_unit_test(a_failed_check_says_where_and_aborts),
        cmocka_unit_test(memory_of_small_sizes_is_zeroed_and_copied),
    };

    return cmocka_run_group_tests(tests, fill_long_text, NULL);
}
