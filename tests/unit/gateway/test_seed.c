/* The seed notebook: what is taken of it and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "seed.h"

#define HEAD         "{\"nbformat\":4,\"metadata\":{\"kernelspec\":{\"name\":\"python3\"}},\"cells\":["
#define CODE(source) "{\"cell_type\":\"code\",\"source\":" source "}"

static void only_code_is_taken_in_order_and_numbered_as_people_count(void **state)
{
    struct seed *s = NULL;

    (void)state;
    assert_int_equal(seed_parse(VIEW_STR(HEAD CODE(
                                    "\"a = 1\"") ",{\"cell_type\":\"markdown\",\"source\":5},"
                                                 "{\"cell_type\":\"raw\"}," CODE(
                                                     "[\"b\\n\",\"\\u00e9\"]") "," CODE("[]") "]}"),
                                &s, NULL),
                     0);
    assert_string_equal(s->kernel, "python3");
    assert_int_equal(s->count, 3);
    assert_string_equal(s->cells[0].code, "a = 1");
    assert_int_equal(s->cells[0].number, 1);
    assert_string_equal(s->cells[1].code, "b\n\xc3\xa9");
    assert_int_equal(s->cells[1].number, 4);
    assert_string_equal(s->cells[2].code, "");
    assert_ptr_equal(seed_use(s), s);
    assert_null(seed_drop(s));
    assert_int_equal(s->users, 1); /* somebody else still uses it */
    assert_null(seed_drop(s));
}

static void a_notebook_need_not_name_a_kernelspec(void **state)
{
    struct seed *s = NULL;

    (void)state;
    assert_int_equal(seed_parse(VIEW_STR("{\"nbformat\":4,\"cells\":[]}"), &s, NULL), 0);
    assert_string_equal(s->kernel, "");
    assert_int_equal(s->count, 0);
    seed_drop(s);
}

static void what_is_no_such_notebook_is_refused_with_a_reason(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "", "no notebook" },
        { "{\"nbformat\":4,\"cells\":[]", "no notebook: line 1" },
        { "[]", "no nbformat" },
        { "{\"nbformat\":\"4\",\"cells\":[]}", "no nbformat" },
        { "{\"nbformat\":5,\"cells\":[]}", "nbformat is 5" },
        { "{\"nbformat\":4,\"cells\":{}}", "no list of cells" },
        { HEAD "7]}", "cell 1 has no cell_type" },
        { HEAD CODE("\"x\"") ",{\"cell_type\":\"heading\"}]}",
          "cell 2 has the unknown cell_type 'heading'" },
        { HEAD "{\"cell_type\":\"code\"}]}", "cell 1: source" },
        { HEAD CODE("[\"a\",1]") "]}", "cell 1: source" },
        { HEAD CODE("\"a\\u0000b\"") "]}", "cell 1: source" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct seed *s = NULL;
        struct err e = { 0 };

        assert_int_equal(seed_parse(view_cstr(bad[i].text), &s, &e), -EINVAL);
        assert_null(s);
        if (strstr(e.msg, bad[i].says) == NULL)
            fail_msg("%s: %s", bad[i].text, e.msg);
    }
}

static void too_many_cells_are_refused(void **state)
{
    autobuf struct buf text = { 0 };
    struct seed *s = NULL;
    struct err e = { 0 };

    (void)state;
    buf_init(&text, 1 << 20);
    assert_int_equal(buf_add_str(&text, "{\"nbformat\":4,\"cells\":[0"), 0);
    for (int i = 0; i < SEED_CELLS_MAX; i++)
        assert_int_equal(buf_add_str(&text, ",0"), 0);
    assert_int_equal(buf_add_str(&text, "]}"), 0);
    assert_int_equal(seed_parse(buf_view(&text), &s, &e), -EINVAL);
    assert_non_null(strstr(e.msg, "more than 10000 cells"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_code_is_taken_in_order_and_numbered_as_people_count),
        cmocka_unit_test(a_notebook_need_not_name_a_kernelspec),
        cmocka_unit_test(what_is_no_such_notebook_is_refused_with_a_reason),
        cmocka_unit_test(too_many_cells_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
