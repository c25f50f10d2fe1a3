/* jupyter_server's rate limit of iopub, by its rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ratelimit.h"

static struct ratelimit with(uint64_t messages, uint64_t bytes, uint64_t window_ms)
{
    const struct ratelimit_config c = { messages, bytes, window_ms };
    struct ratelimit r;

    ratelimit_init(&r, &c);
    return r;
}

static void below_the_limit_all_passes(void **state)
{
    struct ratelimit r = with(100, 0, 1000);

    (void)state;
    for (uint64_t ms = 0; ms < 10000; ms += 11)
        assert_int_equal(ratelimit_ask(&r, 0, ms), RATELIMIT_PASS);
}

static void the_first_above_it_is_told_and_the_others_go_silently(void **state)
{
    struct ratelimit r = with(100, 0, 1000);

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(ratelimit_ask(&r, 0, 5000), RATELIMIT_PASS);
    assert_int_equal(ratelimit_ask(&r, 0, 5000), RATELIMIT_DROP_MESSAGES);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(ratelimit_ask(&r, 0, 5000), RATELIMIT_DROP);
}

static void it_resumes_only_below_eighty_percent(void **state)
{
    struct ratelimit r = with(100, 0, 1000);

    (void)state;
    for (uint64_t i = 0; i < 100; i++) /* ten in each tenth of the window */
        assert_int_equal(ratelimit_ask(&r, 0, 5000 + i / 10 * 100), RATELIMIT_PASS);
    assert_int_equal(ratelimit_ask(&r, 0, 5990), RATELIMIT_DROP_MESSAGES);
    /* 90 in the window, then 80, then 70. */
    assert_int_equal(ratelimit_ask(&r, 0, 6040), RATELIMIT_DROP);
    assert_int_equal(ratelimit_ask(&r, 0, 6140), RATELIMIT_DROP);
    assert_int_equal(ratelimit_ask(&r, 0, 6240), RATELIMIT_PASS);
    assert_int_equal(ratelimit_ask(&r, 0, 6240), RATELIMIT_PASS);
}

static void an_idle_counts_anew_and_the_next_excess_is_told_again(void **state)
{
    struct ratelimit r = with(10, 0, 1000);

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 10; i++)
            assert_int_equal(ratelimit_ask(&r, 0, 7), RATELIMIT_PASS);
        assert_int_equal(ratelimit_ask(&r, 0, 7), RATELIMIT_DROP_MESSAGES);
        assert_int_equal(ratelimit_ask(&r, 0, 7), RATELIMIT_DROP);
        ratelimit_idle(&r);
    }
}

static void bytes_have_a_limit_of_their_own(void **state)
{
    struct ratelimit r = with(0, 1000, 3000);

    (void)state;
    assert_int_equal(ratelimit_ask(&r, 2999, 1), RATELIMIT_PASS);
    for (int i = 0; i < 5000; i++) /* displays count no bytes */
        assert_int_equal(ratelimit_ask(&r, 0, 1), RATELIMIT_PASS);
    assert_int_equal(ratelimit_ask(&r, 2, 1), RATELIMIT_DROP_BYTES);
    assert_int_equal(ratelimit_ask(&r, 0, 1), RATELIMIT_DROP); /* it is a matter of the socket */
    /* One message above the limit alone never passes. */
    ratelimit_idle(&r);
    assert_int_equal(ratelimit_ask(&r, 8000000, 1), RATELIMIT_DROP_BYTES);
}

static void what_is_dropped_does_not_count(void **state)
{
    struct ratelimit r = with(10, 0, 1000);

    (void)state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(ratelimit_ask(&r, 0, 0), RATELIMIT_PASS);
    for (uint64_t ms = 0; ms < 980; ms += 10)
        assert_int_not_equal(ratelimit_ask(&r, 0, ms), RATELIMIT_PASS);
    assert_int_equal(ratelimit_ask(&r, 0, 1020), RATELIMIT_PASS);
}

static void some_types_are_exempt(void **state)
{
    (void)state;
    assert_true(ratelimit_exempts("status"));
    assert_true(ratelimit_exempts("comm_open"));
    assert_true(ratelimit_exempts("execute_input"));
    assert_false(ratelimit_exempts("stream"));
    assert_false(ratelimit_exempts("comm_msg"));
    assert_false(ratelimit_exempts(""));
}

static void the_window_is_three_seconds_when_none_is_named(void **state)
{
    struct ratelimit r = with(1, 0, 0);

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(ratelimit_ask(&r, 0, 1), RATELIMIT_PASS);
    assert_int_equal(ratelimit_ask(&r, 0, 1), RATELIMIT_DROP_MESSAGES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(below_the_limit_all_passes),
        cmocka_unit_test(the_first_above_it_is_told_and_the_others_go_silently),
        cmocka_unit_test(it_resumes_only_below_eighty_percent),
        cmocka_unit_test(an_idle_counts_anew_and_the_next_excess_is_told_again),
        cmocka_unit_test(bytes_have_a_limit_of_their_own),
        cmocka_unit_test(what_is_dropped_does_not_count),
        cmocka_unit_test(some_types_are_exempt),
        cmocka_unit_test(the_window_is_three_seconds_when_none_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
