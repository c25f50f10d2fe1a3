/* Raw paths and queries: decoding, segments, the base URL, free-form parameters. */
#include "httpurl.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"

static void escapes_are_decoded_strictly(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out; /* NULL: refused */
    } rows[] = {
        { "", "" },       { "abc", "abc" }, { "a%40b", "a@b" },       { "%61%4a%4A", "aJJ" },
        { "%25", "%" },   { "a+b", "a+b" }, { "%C3%A9", "\xc3\xa9" }, { "%", NULL },
        { "%4", NULL },   { "a%", NULL },   { "%4g", NULL },          { "%g4", NULL },
        { "%%41", NULL }, { "%+1", NULL },  { "% 1", NULL },          { "%0x", NULL },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autobuf struct buf out;
        int good = rows[i].out != NULL;

        buf_init(&out, 64);
        assert_int_equal(buf_add_str(&out, "<"), 0);
        assert_int_equal(http_percent_decode(view_cstr(rows[i].in), &out, NULL),
                         good ? 0 : -HC_EPARSE);
        assert_int_equal(http_percent_valid(view_cstr(rows[i].in)), good);
        buf_consume(&out, 1);
        assert_true(view_equals(buf_view(&out), good ? rows[i].out : ""));
    }
}

static void every_byte_survives_its_escape(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 256; c++) {
        autobuf struct buf out;
        char text[4];

        buf_init(&out, 3);
        snprintf(text, sizeof text, "%%%02x", c);
        assert_int_equal(http_percent_decode(view_cstr(text), &out, NULL), 0);
        assert_int_equal(buf_len(&out), 1);
        assert_int_equal(buf_view(&out).p[0], c);
    }
}

static void a_decoded_text_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    autobuf struct buf out;

    buf_init(&out, 3);
    assert_int_equal(http_percent_decode(view_cstr("abcd"), &out, NULL), -EMSGSIZE);
    assert_int_equal(buf_len(&out), 0);
}

static void a_path_falls_into_its_segments(void **state)
{
    (void)state;
    static const struct {
        const char *path, *segments; /* each followed by '|' */
    } rows[] = {
        { "/", "|" },     { "/a", "a|" },   { "/a/b%2Fc", "a|b%2Fc|" },
        { "/a/", "a||" }, { "//a", "|a|" }, { "/a//b", "a||b|" },
        { "*", "" },      { "", "" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct view rest = view_cstr(rows[i].path), segment;
        autobuf struct buf all;

        buf_init(&all, 64);
        while (http_path_next(&rest, &segment)) {
            assert_int_equal(buf_add_view(&all, segment), 0);
            assert_int_equal(buf_add_str(&all, "|"), 0);
        }
        assert_true(view_equals(buf_view(&all), rows[i].segments));
    }
}

static void a_segment_never_becomes_more_than_one_name(void **state)
{
    (void)state;
    static const char *const bad[] = { ".",   "..",        "%2e", "%2E%2e", ".%2e", "a%2fb",
                                       "%2F", "%00",       "a%0", "%0a",    "%7f",  "%ff",
                                       "%c3", "%ed%a0%80", "%1b", "a%",     "a%00b" };
    static const char *const good[][2] = {
        { "", "" },           { "a", "a" },       { "...", "..." }, { ".a", ".a" },
        { "%2e.%2e", "..." }, { "a%20b", "a b" }, { "a+b", "a+b" }, { "caf%C3%A9", "caf\xc3\xa9" },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        autobuf struct buf out;

        buf_init(&out, 64);
        if (http_segment_decode(view_cstr(bad[i]), &out, NULL) != -HC_EPARSE || buf_len(&out) > 0)
            fail_msg("'%s' was taken", bad[i]);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        autobuf struct buf out;

        buf_init(&out, 64);
        assert_int_equal(http_segment_decode(view_cstr(good[i][0]), &out, NULL), 0);
        assert_true(view_equals(buf_view(&out), good[i][1]));
    }
}

static void a_path_is_under_a_base_whatever_its_escapes(void **state)
{
    (void)state;
    static const struct {
        const char *base, *path, *rest; /* NULL: not beneath */
    } rows[] = {
        { "/", "/", "/" },
        { "/", "/api", "/api" },
        { "", "/api", "/api" },
        { "/", "//api", "//api" },
        { "/a%40b/", "/a@b/api", "/api" },
        { "/a%40b/", "/a%40b/api", "/api" },
        { "/a%40b/", "/%61%40%62/api", "/api" },
        { "/a@b/", "/a%40b/api", "/api" },
        { "/a@b", "/a%40b/", "/" },
        { "/a@b/", "/a%40b", "/" },
        { "/a/b", "/a/b/c/d", "/c/d" },
        { "/a%2fb/", "/a%2Fb/c", "/c" },
        { "/a%25b/", "/a%25b/c%25", "/c%25" },
        { "/a%40b/", "/api", NULL },
        { "/a%40b/", "/a@bc/api", NULL },
        { "/a%40b/", "/a@/b/api", NULL },
        { "/a/b/", "/a%2Fb/c", NULL },
        { "/a%2Fb/", "/a/b/c", NULL },
        { "/a/", "/a%2Fapi", NULL },
        { "/a/", "/a", "/" },
        { "/a/", "/A/x", NULL },
        { "/a/", "/a/../b", NULL },
        { "/a/", "/b/../a/x", NULL },
        { "/a/", "/a/%2e%2E/b", NULL },
        { "/a/", "/a/.%2e", NULL },
        { "/a/", "/./a/x", NULL },
        { "/a/", "/a/x/.", NULL },
        { "/a/", "/a/x%00", NULL },
        { "/a/", "/a%", NULL },
        { "/a/", "/%61", "/" },
        { "/a/", "/%", NULL },
        { "/", "*", NULL },
        { "/", "", NULL },
        { "/", "/.../..a", "/.../..a" },
        { "/a%zz/", "/a%zz/x", NULL },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct view rest = { NULL, 0 };
        int found = http_path_under(view_cstr(rows[i].path), view_cstr(rows[i].base), &rest);

        if (found != (rows[i].rest != NULL) || (found && !view_equals(rest, rows[i].rest)))
            fail_msg("'%s' under '%s'", rows[i].path, rows[i].base);
    }
}

static void a_parameter_is_found_in_a_free_form_query(void **state)
{
    (void)state;
    static const struct {
        const char *query, *name, *raw, *value; /* raw NULL: absent; value NULL: malformed */
    } rows[] = {
        { "1732000000000", "token", NULL, NULL },
        { "1732000000000", "1732000000000", "", "" },
        { "token=T&1732000000000", "token", "T", "T" },
        { "1732000000000&token=T", "token", "T", "T" },
        { "x=%20&&=&user", "x", "%20", " " },
        { "x=%20&&=&user", "user", "", "" },
        { "x=%20&&=&user", "", "", "" },
        { "x=%20&&=&user", "y", NULL, NULL },
        { "", "x", NULL, NULL },
        { "&", "x", NULL, NULL },
        { "a=1&a=2", "a", "1", "1" },
        { "a=b=c", "a", "b=c", "b=c" },
        { "a=b+c%2B", "a", "b+c%2B", "b c+" },
        { "%74oken=T", "token", "T", "T" },
        { "to+ken=T", "to ken", "T", "T" },
        { "tokens=T", "token", NULL, NULL },
        { "toke=T", "token", NULL, NULL },
        { "token%=T&token=U", "token", "U", "U" },
        { "a=%zz", "a", "%zz", NULL },
        { "a=%", "a", "%", NULL },
        { "a=%C3%A9", "a", "%C3%A9", "\xc3\xa9" },
        { "to%00ken=T", "to", NULL, NULL },
        { "A=1", "a", NULL, NULL },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autobuf struct buf out;
        struct view raw;
        int found = http_query_find(view_cstr(rows[i].query), rows[i].name, &raw);
        int expected = rows[i].raw == NULL ? 0 : rows[i].value == NULL ? -HC_EPARSE : 1;

        buf_init(&out, 64);
        if (found != (rows[i].raw != NULL) || (found && !view_equals(raw, rows[i].raw)) ||
            http_query_get(view_cstr(rows[i].query), rows[i].name, &out, NULL) != expected)
            fail_msg("'%s' in '%s'", rows[i].name, rows[i].query);
        if (expected == 1)
            assert_true(view_equals(buf_view(&out), rows[i].value));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_are_decoded_strictly),
        cmocka_unit_test(every_byte_survives_its_escape),
        cmocka_unit_test(a_decoded_text_that_does_not_fit_is_refused),
        cmocka_unit_test(a_path_falls_into_its_segments),
        cmocka_unit_test(a_segment_never_becomes_more_than_one_name),
        cmocka_unit_test(a_path_is_under_a_base_whatever_its_escapes),
        cmocka_unit_test(a_parameter_is_found_in_a_free_form_query),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
