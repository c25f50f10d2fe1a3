/* The budget of a run's output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "outputlimit.h"

static void what_fits_passes_and_what_does_not_is_counted(void **state)
{
    struct output_use u = { 0 };

    (void)state;
    assert_int_equal(output_ask(&u, 100, "stream", 60), OUTPUT_PASS);
    assert_int_equal(output_ask(&u, 100, "display_data", 40), OUTPUT_PASS);
    assert_int_equal(output_ask(&u, 100, "stream", 1), OUTPUT_DROP_FIRST);
    assert_int_equal(output_ask(&u, 100, "comm_msg", 50), OUTPUT_DROP);
    assert_int_equal(u.bytes, 100);
    assert_int_equal(u.dropped, 2);
    assert_int_equal(u.dropped_bytes, 51);
}

static void a_budget_that_was_crossed_stays_used_up(void **state)
{
    struct output_use u = { 0 };

    (void)state;
    assert_int_equal(output_ask(&u, 100, "stream", 101), OUTPUT_DROP_FIRST);
    assert_int_equal(output_ask(&u, 100, "stream", 1), OUTPUT_DROP);
}

static void state_input_and_a_budget_of_errors_pass(void **state)
{
    struct output_use u = { 0 };

    (void)state;
    assert_int_equal(output_ask(&u, 10, "error", 1000), OUTPUT_PASS);
    assert_false(output_is_over(&u, "stream", 1));
    assert_int_equal(output_ask(&u, 10, "stream", 11), OUTPUT_DROP_FIRST);
    assert_true(output_is_over(&u, "stream", 1));
    assert_false(output_is_over(&u, "status", UINT64_MAX));
    assert_int_equal(output_ask(&u, 10, "status", UINT64_MAX), OUTPUT_PASS);
    assert_int_equal(output_ask(&u, 10, "execute_input", 1000), OUTPUT_PASS);
    assert_int_equal(output_ask(&u, 10, "execute_input", 1000), OUTPUT_DROP);
    assert_int_equal(output_ask(&u, 10, "error", OUTPUT_ERRORS), OUTPUT_DROP);
    assert_int_equal(output_ask(&u, 10, "error", OUTPUT_ERRORS - 1000), OUTPUT_PASS);
    assert_true(output_is_over(&u, "error", 1));
    assert_int_equal(output_ask(&u, 10, "error", 1), OUTPUT_DROP);
    assert_int_equal(u.bytes, 0);
}

static void without_a_limit_everything_passes(void **state)
{
    struct output_use u = { 0 };

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(output_ask(&u, 0, "stream", UINT64_C(1) << 40), OUTPUT_PASS);
    assert_int_equal(u.dropped, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_passes_and_what_does_not_is_counted),
        cmocka_unit_test(a_budget_that_was_crossed_stays_used_up),
        cmocka_unit_test(state_input_and_a_budget_of_errors_pass),
        cmocka_unit_test(without_a_limit_everything_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
