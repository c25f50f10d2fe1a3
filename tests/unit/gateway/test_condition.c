/* Entity tags and ranges: what a client's fields mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "condition.h"
#include "httphead.h"

enum { SIZE = 1000 };
#define TAG "\"0123\""

static struct view text(const char *s)
{
    return view_cstr(s);
}

static enum range ask(const char *range, const char *if_range, size_t size, size_t *offset,
                      size_t *length)
{
    const struct http_field fields[] = { { text("range"), text(range) },
                                         { text("If-Range"), text(if_range) } };
    const struct http_head head = { .fields = fields, .field_count = if_range[0] != '\0' ? 2 : 1 };

    return range_asked(&head, size, TAG, offset, length);
}

static void a_part_lies_within_the_bytes(void **state)
{
    static const struct {
        const char *range;
        size_t offset, length;
    } rows[] = {
        { "bytes=0-0", 0, 1 },
        { "bytes=0-999", 0, 1000 },
        { "bytes=0-1000", 0, 1000 },
        { "bytes=999-", 999, 1 },
        { "bytes=-1", 999, 1 },
        { "bytes=-1000", 0, 1000 },
        { "bytes=-1001", 0, 1000 },
        { "bytes=7-9", 7, 3 },
        { "bytes=0-9223372036854775", 0, 1000 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t offset = SIZE_MAX, length = SIZE_MAX;
        assert_int_equal(ask(rows[i].range, "", SIZE, &offset, &length), RANGE_PART);
        assert_int_equal(offset, rows[i].offset);
        assert_int_equal(length, rows[i].length);
    }
}

static void nonsense_means_the_whole(void **state)
{
    static const char *const rows[] = {
        "",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=1",
        "bytes=2-1",
        "bytes=1-2,4",
        "bytes=1-2-3",
        "bytes=a-b",
        "bytes= 1-2",
        "Bytes=1-2",
        "lines=1-2",
        "bytes=1-2\xff",
        "bytes=+1-2",
        "bytes=99999999999999999999-",
        "bytes=-99999999999999999999",
    };
    size_t offset, length;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(ask(rows[i], "", SIZE, &offset, &length), RANGE_NONE);
}

static void what_lies_behind_the_end_cannot_be_had(void **state)
{
    size_t offset, length;

    (void)state;
    assert_int_equal(ask("bytes=1000-", "", SIZE, &offset, &length), RANGE_UNSATISFIABLE);
    assert_int_equal(ask("bytes=-0", "", SIZE, &offset, &length), RANGE_UNSATISFIABLE);
    assert_int_equal(ask("bytes=0-", "", 0, &offset, &length), RANGE_UNSATISFIABLE);
    assert_int_equal(ask("bytes=-5", "", 0, &offset, &length), RANGE_UNSATISFIABLE);
}

static void a_part_of_something_else_is_not_given(void **state)
{
    size_t offset, length;

    (void)state;
    assert_int_equal(ask("bytes=0-1", TAG, SIZE, &offset, &length), RANGE_PART);
    assert_int_equal(ask("bytes=0-1", "W/" TAG, SIZE, &offset, &length), RANGE_NONE);
    assert_int_equal(ask("bytes=0-1", "\"4567\"", SIZE, &offset, &length), RANGE_NONE);
    assert_int_equal(ask("bytes=0-1", "Sun, 06 Nov 1994 08:49:37 GMT", SIZE, &offset, &length),
                     RANGE_NONE);
}

static int known(const char *list)
{
    const struct http_field field = { text("If-None-Match"), text(list) };
    const struct http_head head = { .fields = &field, .field_count = 1 };

    return etag_known(&head, TAG);
}

static void a_tag_is_known_by_any_element_of_the_list(void **state)
{
    (void)state;
    assert_true(known(TAG) && known("*") && known("W/" TAG) && known("\"a,b\", " TAG ", \"c\""));
    assert_false(known("") || known("0123") || known("\"012\"") || known("\"01234\"") ||
                 known("w/" TAG) || known("\"x\""));
}

static void a_tag_changes_with_the_bytes(void **state)
{
    char a[ETAG_TEXT], b[ETAG_TEXT], none[ETAG_TEXT];

    (void)state;
    assert_true(etag_of(text("abc"), a) && etag_of(text("abd"), b) &&
                etag_of((struct view){ 0 }, none));
    assert_string_equal(a, "\"ba7816bf8f01cfea414140de5dae2223\"");
    assert_string_not_equal(a, b);
    assert_string_equal(none, "\"e3b0c44298fc1c149afbf4c8996fb924\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_lies_within_the_bytes),
        cmocka_unit_test(nonsense_means_the_whole),
        cmocka_unit_test(what_lies_behind_the_end_cannot_be_had),
        cmocka_unit_test(a_part_of_something_else_is_not_given),
        cmocka_unit_test(a_tag_is_known_by_any_element_of_the_list),
        cmocka_unit_test(a_tag_changes_with_the_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
