/* Directories with names, as --data has them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "namedpath.h"

static void a_list_is_taken_apart(void **state)
{
    (void)state;
    const char *list = "a=/x:b.2=/y z/=w:c=/";
    struct namedpath n;
    struct err e = { 0 };

    assert_int_equal(namedpath_next(&list, &n, &e), 1);
    assert_string_equal(n.name, "a");
    assert_string_equal(n.path, "/x");
    assert_int_equal(namedpath_next(&list, &n, &e), 1);
    assert_string_equal(n.name, "b.2");
    assert_string_equal(n.path, "/y z/=w");
    assert_int_equal(namedpath_next(&list, &n, &e), 1);
    assert_string_equal(n.path, "/");
    assert_int_equal(namedpath_next(&list, &n, &e), 0);
    assert_int_equal(namedpath_next(&list, &n, &e), 0);
}

static void what_is_no_entry_is_refused_and_shown(void **state)
{
    (void)state;
    static const char *const bad[] = { "a",
                                       "a=",
                                       "=/x",
                                       "a=x",
                                       "a=../x",
                                       ".a=/x",
                                       "a/=/x",
                                       "a b=/x",
                                       ":a=/x",
                                       "a=/x::b",
                                       "-=/x",
                                       "\xc3\xa4=/x",
                                       "12345678901234567890123456789012x=/x" };

    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *list = bad[i];
        struct namedpath n;
        struct err e = { 0 };
        int rc = namedpath_next(&list, &n, &e);

        if (rc == 1)
            rc = namedpath_next(&list, &n, &e);
        if (rc != -EINVAL || e.msg[0] != '\'')
            fail_msg("%s: %d %s", bad[i], rc, e.msg);
    }
}

static void a_path_as_long_as_a_path_can_be_fits_and_a_longer_one_does_not(void **state)
{
    (void)state;
    char text[PATH_MAX + 16] = "a=/";
    const char *list = text;
    struct namedpath n;

    memset(text + 3, 'x', PATH_MAX - 2);
    assert_int_equal(namedpath_next(&list, &n, NULL), 1);
    assert_int_equal(strlen(n.path), PATH_MAX - 1);
    text[PATH_MAX + 1] = 'x';
    list = text;
    assert_int_equal(namedpath_next(&list, &n, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_taken_apart),
        cmocka_unit_test(what_is_no_entry_is_refused_and_shown),
        cmocka_unit_test(a_path_as_long_as_a_path_can_be_fits_and_a_longer_one_does_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
