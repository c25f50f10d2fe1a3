/* The rows of the limits of a session. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "limit.h"

static void a_row_reads_and_writes_its_member_alone(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LIMITS; i++) {
        struct launch_limits l = { 0 };

        limit_set(&l, &limit_rows[i], 100 + i);
        for (unsigned k = 0; k < LIMITS; k++)
            assert_int_equal(limit_get(&l, &limit_rows[k]), k == i ? 100 + i : 0);
    }
}

static void the_profile_lies_in_every_range(void **state)
{
    const struct launch_limits profile = LAUNCH_LIMITS_DEFAULT;

    (void)state;
    for (unsigned i = 0; i < LIMITS; i++) {
        const struct limit *l = &limit_rows[i];

        assert_in_range(limit_get(&profile, l), l->least, l->most);
        assert_true(l->wide || l->most <= UINT32_MAX);
    }
}

static void units_are_those_of_options_and_of_json(void **state)
{
    const struct limit *memory = limit_named("memory_mb"), *cpus = limit_named("cpus");

    (void)state;
    assert_ptr_equal(memory, &limit_rows[LIMIT_MEMORY]);
    assert_int_equal(memory->unit, 1 << 20);
    assert_int_equal(memory->number_unit, 1 << 20);
    assert_int_equal(memory->least, 64 << 20);
    assert_string_equal(cpus->option, "cpu-millis");
    assert_int_equal(cpus->unit, 1);
    assert_int_equal(cpus->number_unit, 1000);
    assert_int_equal(cpus->least, 10);
}

static void only_what_clients_may_ask_for_has_a_name(void **state)
{
    (void)state;
    assert_null(limit_named("memory"));
    assert_null(limit_named(""));
    for (unsigned i = 0; i < LIMITS; i++) {
        if (limit_rows[i].name != NULL)
            assert_ptr_equal(limit_named(limit_rows[i].name), &limit_rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_reads_and_writes_its_member_alone),
        cmocka_unit_test(the_profile_lies_in_every_range),
        cmocka_unit_test(units_are_those_of_options_and_of_json),
        cmocka_unit_test(only_what_clients_may_ask_for_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
