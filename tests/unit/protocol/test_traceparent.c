/* traceparent: which values count, and what is carried on. */
#include "traceparent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "vectors.h"

static void judge_row(const struct vector *v)
{
    struct traceparent t = { 0 };
    char verdict[16] = "ignored";

    if (traceparent_parse(v->bytes, &t))
        snprintf(verdict, sizeof verdict, "ok %u", t.flags);
    if (strcmp(verdict, v->verdict) != 0)
        fail_msg("'%s': %s", v->name, verdict);
}

static void values_are_judged_as_the_standard_says(void **state)
{
    (void)state;
    assert_true(vectors_each("traceparent.tsv", judge_row) > 30);
}

static void ids_are_read_and_an_ignored_value_leaves_the_result_alone(void **state)
{
    struct traceparent t;
    static const uint8_t trace[] = { 0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6,
                                     0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36 };
    static const uint8_t span[] = { 0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7 };

    (void)state;
    assert_true(
        traceparent_parse(VIEW_STR("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), &t));
    assert_false(
        traceparent_parse(VIEW_STR("ff-00f92f3577b34da6a3ce929d0e0e4736-10f067aa0ba902b7-00"), &t));
    assert_memory_equal(t.trace_id, trace, sizeof trace);
    assert_memory_equal(t.span_id, span, sizeof span);
    assert_int_equal(t.flags, TRACE_SAMPLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_judged_as_the_standard_says),
        cmocka_unit_test(ids_are_read_and_an_ignored_value_leaves_the_result_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
