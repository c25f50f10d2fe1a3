/* The settings of tcp_rmem and tcp_wmem that a session gets, from those of its host. */
#include "sockmem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void what_is_above_is_lowered(void **state)
{
    char got[96];

    (void)state;
    assert_int_equal(sockmem_lower("4096\t131072\t6291456\n", 524288, got, sizeof got), 1);
    assert_string_equal(got, "4096 131072 524288\n");
    assert_int_equal(sockmem_lower("4096 1048576 6291456", 524288, got, sizeof got), 1);
    assert_string_equal(got, "4096 524288 524288\n"); /* the start may not be above the most */
}

static void what_the_host_has_lower_stays(void **state)
{
    char got[96] = "untouched";

    (void)state;
    assert_int_equal(sockmem_lower("4096 16384 524288", 524288, got, sizeof got), 0);
    assert_int_equal(sockmem_lower("4096 16384 65536", 524288, got, sizeof got), 0);
    assert_string_equal(got, "untouched");
}

static void other_texts_are_refused(void **state)
{
    char got[96];

    (void)state;
    assert_int_equal(sockmem_lower("", 1, got, sizeof got), -EINVAL);
    assert_int_equal(sockmem_lower("4096 16384", 1, got, sizeof got), -EINVAL);
    assert_int_equal(sockmem_lower("4096 16384 many", 1, got, sizeof got), -EINVAL);
    assert_int_equal(sockmem_lower("4096 131072 6291456", 524288, got, 8), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_above_is_lowered),
        cmocka_unit_test(what_the_host_has_lower_stays),
        cmocka_unit_test(other_texts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
