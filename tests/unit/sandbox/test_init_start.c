/* The arguments of holdcell-init and the report over its ready pipe. */
#include "init_start.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "report.h"

static void the_arguments_come_back_as_they_were_given(void **state)
{
    (void)state;
    struct init_start in = { .nofile = 4096,
                             .nproc = 256,
                             .fsize_bytes = UINT64_MAX,
                             .groups = 1,
                             .workspace = 1,
                             .without = 3 },
                      out;
    struct init_start_args args;

    init_start_format(&in, &args);
    assert_null(args.argv[INIT_START_ARGS - 1]);
    assert_int_equal(init_start_parse(INIT_START_ARGS - 1, args.argv, &out, NULL), 0);
    assert_true(out.nofile == 4096 && out.nproc == 256 && out.fsize_bytes == UINT64_MAX);
    assert_int_equal(out.groups, 1);
    assert_int_equal(out.workspace, 1);
    assert_int_equal(out.without, 3);
}

static void other_arguments_are_refused(void **state)
{
    (void)state;
    struct init_start in = { 1, 2, 3, 0, 0, 0 }, out;
    static const char *const wrong[] = { "nofile=",   "nofile",    "nofile=-1",
                                         "nofile= 1", "nofile=1x", "nofile=99999999999999999999" };

    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct init_start_args args;

        init_start_format(&in, &args);
        snprintf(args.text[1], sizeof args.text[1], "%s", wrong[i]);
        assert_int_equal(init_start_parse(INIT_START_ARGS - 1, args.argv, &out, NULL), -EINVAL);
    }
    struct init_start_args args;

    init_start_format(&in, &args);
    assert_int_equal(init_start_parse(1, args.argv, &out, NULL), -EINVAL);
}

static void ready_failed_and_silent_are_told_apart(void **state)
{
    (void)state;
    int p[2];
    struct err e = { 0 }, why = { 0 };

    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(report_wait(p[0], 10, &e), -ETIMEDOUT);
    assert_int_equal(init_start_ready(p[1]), 0);
    assert_int_equal(report_wait(p[0], 10000, &e), REPORT_OK);
    assert_int_equal(report_wait(p[0], 10000, &e), REPORT_END);
    close(p[0]);

    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    err_set(&why, EPERM, "load filter");
    init_start_failed(p[1], &why);
    assert_int_equal(report_wait(p[0], 10000, &e), -EPERM);
    assert_string_equal(e.msg, "load filter");
    close(p[0]);

    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(write(p[1], "x", 1), 1);
    assert_int_equal(report_wait(p[0], 10000, &e), -EPROTO);
    close(p[0]);
    close(p[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_arguments_come_back_as_they_were_given),
        cmocka_unit_test(other_arguments_are_refused),
        cmocka_unit_test(ready_failed_and_silent_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
