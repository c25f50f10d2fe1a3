/* Small documents written by hand: escapes, commas, bounds. */
#include "jsonwrite.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "jsonscan.h"

static void assert_quoted(const void *p, size_t n, const char *expected)
{
    autobuf struct buf b;

    buf_init(&b, 1000);
    assert_int_equal(jsonwrite_quoted(&b, (struct view){ p, n }), 0);
    assert_int_equal(buf_len(&b), strlen(expected));
    assert_memory_equal(buf_view(&b).p, expected, strlen(expected));
}

static void strings_are_escaped_where_they_must_be(void **state)
{
    (void)state;
    assert_quoted("", 0, "\"\"");
    assert_quoted("plain \xc3\xa9 \xf0\x9f\x98\x80 /", 15, "\"plain \xc3\xa9 \xf0\x9f\x98\x80 /\"");
    assert_quoted("\"\\\b\f\n\r\t", 7, "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
    assert_quoted("\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\x7f\"");
}

static void line_ends_of_unicode_are_escaped(void **state)
{
    (void)state;
    assert_quoted("a\xc2\x85\xe2\x80\xa8\xe2\x80\xa9z", 10, "\"a\\u0085\\u2028\\u2029z\"");
    assert_quoted("\xc2\x84\xe2\x80\xa7", 5, "\"\xc2\x84\xe2\x80\xa7\"");
}

static void invalid_utf8_becomes_the_replacement_character(void **state)
{
    (void)state;
    assert_quoted("a\xe9\xff\n", 4, "\"a\xef\xbf\xbd\xef\xbf\xbd\\n\"");
    assert_quoted("\xe2\x80", 2, "\"\xef\xbf\xbd\"");
    assert_quoted("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void every_byte_gives_a_string_that_the_scanner_accepts(void **state)
{
    (void)state;
    static const struct jsonscan_rules strict = { 0, 1 };

    for (unsigned c = 0; c < 256; c++) {
        uint8_t text[3] = { 'x', (uint8_t)c, 'y' };
        autobuf struct buf b;
        autobuf struct buf back;
        struct jsonscan_value v;

        buf_init(&b, 100);
        buf_init(&back, 100);
        assert_int_equal(jsonwrite_quoted(&b, (struct view){ text, 3 }), 0);
        assert_int_equal(jsonscan_text(buf_view(&b), &strict, &v, NULL, NULL), 0);
        assert_int_equal(jsonscan_string_decode(v, &back, NULL), 0);
        if (c < 0x80) {
            assert_int_equal(buf_len(&back), 3);
            assert_memory_equal(buf_view(&back).p, text, 3);
        } else {
            assert_true(view_equals(buf_view(&back), "x\xef\xbf\xbdy"));
        }
    }
}

static void documents_get_their_commas(void **state)
{
    (void)state;
    autobuf struct buf b;
    struct jsonwrite w = jsonwrite_to(&b);

    buf_init(&b, 1000);
    jsonwrite_object(&w);
    jsonwrite_key(&w, "a");
    jsonwrite_int(&w, INT64_MIN);
    jsonwrite_key(&w, "b\"");
    jsonwrite_array(&w);
    jsonwrite_uint(&w, UINT64_MAX);
    jsonwrite_null(&w);
    jsonwrite_object(&w);
    jsonwrite_end(&w);
    jsonwrite_array(&w);
    jsonwrite_bool(&w, 1);
    jsonwrite_bool(&w, 0);
    jsonwrite_end(&w);
    jsonwrite_array(&w);
    jsonwrite_int(&w, 0);
    jsonwrite_end(&w);
    jsonwrite_end(&w);
    jsonwrite_key(&w, "c");
    jsonwrite_str(&w, NULL);
    jsonwrite_key(&w, "d");
    jsonwrite_raw(&w, VIEW_STR("{ }"));
    jsonwrite_key(&w, "e");
    jsonwrite_string(&w, VIEW_STR("x\0y"));
    jsonwrite_end(&w);
    assert_int_equal(jsonwrite_finish(&w, NULL), 0);
    assert_true(view_equals(buf_view(&b),
                            "{\"a\":-9223372036854775808,"
                            "\"b\\\"\":[18446744073709551615,null,{},[true,false],[0]],"
                            "\"c\":null,\"d\":{ },\"e\":\"x\\u0000y\"}"));
}

static void levels_may_be_opened_to_the_maximum(void **state)
{
    (void)state;
    autobuf struct buf b;
    struct jsonwrite w = jsonwrite_to(&b);

    buf_init(&b, 1000);
    for (unsigned i = 0; i < JSONWRITE_DEPTH; i++) {
        jsonwrite_array(&w);
        if (i + 1 < JSONWRITE_DEPTH)
            jsonwrite_int(&w, 1);
    }
    for (unsigned i = 0; i < JSONWRITE_DEPTH; i++)
        jsonwrite_end(&w);
    assert_int_equal(jsonwrite_finish(&w, NULL), 0);
    assert_int_equal(buf_len(&b), 2 * JSONWRITE_DEPTH + 2 * (JSONWRITE_DEPTH - 1));
}

static void a_full_buffer_is_an_error_that_sticks(void **state)
{
    (void)state;
    struct err e = { 0 };

    for (size_t max = 0; max < 13; max++) { /* the document has 13 bytes */
        autobuf struct buf b;
        struct jsonwrite w = jsonwrite_to(&b);

        buf_init(&b, max);
        jsonwrite_object(&w);
        jsonwrite_key(&w, "key");
        jsonwrite_str(&w, "12\n");
        jsonwrite_end(&w);
        assert_int_equal(jsonwrite_finish(&w, &e), -EMSGSIZE);
        assert_int_equal(e.code, EMSGSIZE);
        assert_true(buf_len(&b) <= max);
    }
}

static void a_string_that_does_not_fit_leaves_nothing_behind(void **state)
{
    (void)state;
    autobuf struct buf b;

    buf_init(&b, 8);
    assert_int_equal(buf_add_str(&b, "12"), 0);
    assert_int_equal(jsonwrite_quoted(&b, VIEW_STR("abc\x01")), -EMSGSIZE);
    assert_int_equal(jsonwrite_quoted(&b, VIEW_STR("abcde")), -EMSGSIZE);
    assert_true(view_equals(buf_view(&b), "12"));
    assert_int_equal(jsonwrite_quoted(&b, VIEW_STR("abcd")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_escaped_where_they_must_be),
        cmocka_unit_test(line_ends_of_unicode_are_escaped),
        cmocka_unit_test(invalid_utf8_becomes_the_replacement_character),
        cmocka_unit_test(every_byte_gives_a_string_that_the_scanner_accepts),
        cmocka_unit_test(documents_get_their_commas),
        cmocka_unit_test(levels_may_be_opened_to_the_maximum),
        cmocka_unit_test(a_full_buffer_is_an_error_that_sticks),
        cmocka_unit_test(a_string_that_does_not_fit_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
