/* Lines of the log: what arguments can and cannot do to them. */
#include "logline.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static struct logline line;

static const char *write_line(enum logline_format format, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static const char *write_line(enum logline_format format, const char *fmt, ...)
{
    const struct logline_head head = { 1796000000123456, LOGLINE_WARN, "gateway", "event" };
    static char text[LOGLINE_MAX + 1];
    va_list ap;

    logline_begin(&line, format, &head);
    va_start(ap, fmt);
    logline_fields(&line, fmt, ap);
    va_end(ap);
    struct view v = logline_end(&line);
    assert_true(v.n <= LOGLINE_MAX);
    memcpy(text, v.p, v.n);
    text[v.n] = '\0';
    return text;
}

#define HEAD_TEXT "ts=2026-11-30T00:53:20.123456Z level=warn process=gateway event=event"
#define HEAD_JSON                                                                         \
    "{\"ts\":\"2026-11-30T00:53:20.123456Z\",\"level\":\"warn\",\"process\":\"gateway\"," \
    "\"event\":\"event\""

#define assert_text(expected, ...) \
    assert_string_equal(write_line(LOGLINE_TEXT, __VA_ARGS__), HEAD_TEXT expected "\n")
#define assert_json(expected, ...) \
    assert_string_equal(write_line(LOGLINE_JSON, __VA_ARGS__), HEAD_JSON expected "}\n")

static void text_lines_read_like_their_formats(void **state)
{
    (void)state;
    assert_text(" kernel=abc generation=3 reason=\"it died\"",
                "kernel=%s generation=%u reason=\"%s\"", "abc", 3, "it died");
    assert_text(" pid=-7 sandbox=00000000000000ff share=0.250",
                "pid=%d sandbox=%016" PRIx64 " share=%.3f", -7, (uint64_t)255, 0.25);
    assert_text(" option=--default-kernel name=pyt", "option=--%s name=%.*s", "default-kernel", 3,
                "python");
}

static void json_numbers_are_numbers_and_strings_are_strings(void **state)
{
    (void)state;
    assert_json(",\"exit\":0,\"bytes\":18446744073709551615,\"n\":-5,\"z\":9",
                "exit=0 bytes=%llu n=%d z=%zu", 18446744073709551615ull, -5, (size_t)9);
    assert_json(",\"id\":\"12\",\"sandbox\":\"000000000000000c\",\"index\":\"007\",\"share\":0.5",
                "id=%s sandbox=%016" PRIx64 " index=%03u share=%.1f", "12", (uint64_t)12, 7u, 0.5);
    assert_json(",\"a\":\"1-2\",\"b\":\"5 s\",\"c\":\"\"", "a=%u-%u b=\"%u s\" c=%s", 1u, 2u, 5u,
                "");
    assert_json(",\"nan\":\"nan\",\"percent\":\"7%\"", "nan=%f percent=%u%%", __builtin_nan(""),
                7u);
}

static void text_without_a_key_is_a_field_and_nothing_is_none(void **state)
{
    (void)state;
    assert_json("", "%s", "");
    assert_json(",\"text\":\"all of it: 4\"", "all of it: %d", 4);
    assert_text("", "%s", "");
}

static void an_argument_adds_neither_line_nor_key(void **state)
{
    static const char *const hostile[] = {
        "\" level=error x=\"",
        "a\nts=1 level=error",
        "\\",
        "\\\"",
        "\",\"level\":\"error\",\"x\":\"",
        "}\n{\"level\":\"error\"}",
        "\xff\xfe\xc0\x80",
        "\xe2\x80\xa8",
        "\x1b[31m\r",
        "a=b c=d",
        "\"quoted\\\"\"",
        "\"",
        "",
        "\xed\xa0\x80",
        "\xf4\x90\x80\x80",
    };

    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        for (unsigned quoted = 0; quoted < 2; quoted++) {
            json_error_t e;
            const char *s = hostile[i];
            const char *json = quoted ? write_line(LOGLINE_JSON, "error=\"%s\" last=%d", s, 1)
                                      : write_line(LOGLINE_JSON, "error=%s last=%d", s, 1);
            json_t *o = json_loads(json, JSON_REJECT_DUPLICATES, &e);

            if (o == NULL)
                fail_msg("%s: %s", json, e.text);
            assert_int_equal(json_object_size(o), 6);
            assert_string_equal(json_string_value(json_object_get(o, "level")), "warn");
            assert_int_equal(json_integer_value(json_object_get(o, "last")), 1);
            json_decref(o);
            const char *text = quoted ? write_line(LOGLINE_TEXT, "error=\"%s\" last=%d", s, 1)
                                      : write_line(LOGLINE_TEXT, "error=%s last=%d", s, 1);
            assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
            for (const char *p = text; *p != '\n'; p++)
                assert_in_range(*p, 0x20, 0x7e);
        }
    }
}

static void json_tells_the_text_that_was_meant(void **state)
{
    (void)state;
    assert_json(",\"e\":\"\\\"\\\\\\u000a\\u00e9\\u2028\\ud83d\\ude00\\ufffd\"", "e=\"%s\"",
                "\"\\\n\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80\xff");
    /* what logescape made of it is undone first */
    assert_json(",\"e\":\"a b\\\"\\u000a\",\"f\":\"a b\"", "e=%s f=%s", "\"a b\\\"\\x0a\"",
                "a\\x20b");
    assert_text(" e=\"a b\\\"\\x0a\" f=\"a b\"", "e=%s f=%s", "\"a b\\\"\\x0a\"", "a\\x20b");
}

static void a_line_never_grows_beyond_its_bound_and_stays_whole(void **state)
{
    char large[9000];

    (void)state;
    for (size_t n = 0; n < sizeof large; n += 89) {
        for (unsigned byte = 'x'; byte != 0; byte = byte == 'x' ? 1 : 0) {
            memset(large, (int)byte, n);
            large[n] = '\0';
            const char *json = write_line(LOGLINE_JSON, "a=%s b=%s c=%s d=%s e=%s f=%u", large,
                                          large, large, large, large, 7u);
            json_t *o = json_loads(json, 0, NULL);

            assert_non_null(o);
            assert_true(json_object_get(o, "f") != NULL || json_is_true(json_object_get(o, "cut")));
            json_decref(o);
            const char *text = write_line(LOGLINE_TEXT, "a=%s b=%s c=%s d=%s e=%s f=%u", large,
                                          large, large, large, large, 7u);
            assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
            if (n > 2000)
                assert_non_null(strstr(text, "...\""));
        }
    }
}

static void fields_can_be_added_one_by_one(void **state)
{
    const struct logline_head head = { 0, LOGLINE_DEBUG, "launcher", "x" };

    (void)state;
    logline_begin(&line, LOGLINE_JSON, &head);
    logline_string(&line, "path", (struct view){ (const uint8_t *)"/a\0b", 4 });
    logline_uint(&line, "n", 5);
    struct view v = logline_end(&line);
    static const char expected[] = "{\"ts\":\"1970-01-01T00:00:00.000000Z\",\"level\":\"debug\","
                                   "\"process\":\"launcher\",\"event\":\"x\","
                                   "\"path\":\"/a\\u0000b\",\"n\":5}\n";
    assert_int_equal(v.n, sizeof expected - 1);
    assert_memory_equal(v.p, expected, v.n);
}

static void a_conversion_that_is_unknown_ends_the_fields(void **state)
{
    static const char *volatile fmt = "a=%d b=%p c=%d"; /* the compiler would not let it pass */

    (void)state;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    assert_string_equal(write_line(LOGLINE_JSON, fmt, 1, (void *)0, 2),
                        HEAD_JSON ",\"a\":1,\"b\":\"?\"}\n");
#pragma GCC diagnostic pop
}

static void names_of_formats_and_levels_are_exact(void **state)
{
    enum logline_format format;
    enum logline_level level;

    (void)state;
    assert_true(logline_format_of("json", &format) && format == LOGLINE_JSON);
    assert_true(logline_level_of("error", &level) && level == LOGLINE_ERROR);
    assert_false(logline_format_of("JSON", &format));
    assert_false(logline_level_of("", &level));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_lines_read_like_their_formats),
        cmocka_unit_test(json_numbers_are_numbers_and_strings_are_strings),
        cmocka_unit_test(text_without_a_key_is_a_field_and_nothing_is_none),
        cmocka_unit_test(an_argument_adds_neither_line_nor_key),
        cmocka_unit_test(json_tells_the_text_that_was_meant),
        cmocka_unit_test(a_line_never_grows_beyond_its_bound_and_stays_whole),
        cmocka_unit_test(fields_can_be_added_one_by_one),
        cmocka_unit_test(a_conversion_that_is_unknown_ends_the_fields),
        cmocka_unit_test(names_of_formats_and_levels_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
