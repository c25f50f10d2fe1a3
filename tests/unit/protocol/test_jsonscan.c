/* The JSON scanner: what passes, what does not and why, and where values are. */
#include "jsonscan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"

static const struct jsonscan_rules strict = { 0, 64 };
static const struct jsonscan_rules jupyter = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, 64 };

/* A copy of exactly n bytes on the heap, so that ASan sees a read behind them. */
static struct view exact(const void *p, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);

    assert_non_null(copy);
    if (n > 0)
        memcpy(copy, p, n);
    return (struct view){ copy, n };
}

static int scan_bytes(const void *p, size_t n, const struct jsonscan_rules *rules,
                      struct jsonscan_notes *notes)
{
    struct view doc = exact(p, n);
    struct err e = { 0 };
    int rc = jsonscan_text(doc, rules, NULL, notes, &e);

    assert_int_equal(rc, -e.code);
    assert_true(rc == 0 || e.msg[0] != '\0');
    free((void *)doc.p);
    return rc;
}

static int scan(const char *s, const struct jsonscan_rules *rules)
{
    return scan_bytes(s, strlen(s), rules, NULL);
}

static struct jsonscan_value value(const char *s)
{
    struct jsonscan_value v;

    assert_int_equal(jsonscan_text(view_cstr(s), &jupyter, &v, NULL, NULL), 0);
    return v;
}

static void every_kind_of_value_is_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum jsonscan_kind kind;
    } table[] = {
        { "null", JSONSCAN_NULL },       { "true", JSONSCAN_TRUE },
        { "false", JSONSCAN_FALSE },     { "0", JSONSCAN_INTEGER },
        { "-0", JSONSCAN_INTEGER },      { "12345678901234567890123", JSONSCAN_INTEGER },
        { "0.5", JSONSCAN_REAL },        { "1e5", JSONSCAN_REAL },
        { "-1.25E-400", JSONSCAN_REAL }, { "1E+9", JSONSCAN_REAL },
        { "NaN", JSONSCAN_REAL },        { "Infinity", JSONSCAN_REAL },
        { "-Infinity", JSONSCAN_REAL },  { "\"x\"", JSONSCAN_STRING },
        { "[]", JSONSCAN_ARRAY },        { "{}", JSONSCAN_OBJECT },
        { "[ ]", JSONSCAN_ARRAY },       { "{ }", JSONSCAN_OBJECT },
        { "[[],{}]", JSONSCAN_ARRAY },   { "{\"\":{\"\":[]}}", JSONSCAN_OBJECT },
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct jsonscan_value v = value(table[i].text);

        assert_int_equal(v.kind, table[i].kind);
        assert_true(view_equals(v.text, table[i].text));
    }
    struct jsonscan_value v = value(" \t\r\n[1 , 2]\n ");
    assert_true(view_equals(v.text, "[1 , 2]"));
}

static void a_text_that_is_not_json_is_refused(void **state)
{
    (void)state;
    static const char *const table[] = {
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "None",
        "undefined",
        "01",
        "-",
        "-01",
        "+1",
        "1.",
        ".5",
        "1.e5",
        "1e",
        "1e+",
        "0x10",
        "1_000",
        "--1",
        "- 1",
        "1 2",
        "[",
        "]",
        "{",
        "}",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[}",
        "{]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{'a':1}",
        "{1:2}",
        "{null:1}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1,,\"b\":2}",
        "\"",
        "\"abc",
        "\"\\\"",
        "\"\\x41\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\U0041\"",
        "'a'",
        "\"a\nb\"",
        "\"a\tb\"",
        "\"\x1f\"",
        "\"a\" \"b\"",
        "[]]",
        "{}{}",
        "//x\n1",
        "/**/1",
        "\f1",
        "\xef\xbb\xbf{}",
        "\xc2\xa0\x31",
        "nan",
        "NAN",
        "inf",
        "-NaN",
        "-Inf",
        "+Infinity",
        "Infinityy",
        "-Infinit",
        "\"\\ud8",
        "\"\\ud800\\",
        "\"\\ud800\\u",
        "\"\\ud800\\u12",
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (scan(table[i], &jupyter) != -HC_EPARSE)
            fail_msg("accepted: %s", table[i]);
    assert_int_equal(scan_bytes("\0", 1, &jupyter, NULL), -HC_EPARSE);
    assert_int_equal(scan_bytes("\"a\0b\"", 5, &jupyter, NULL), -HC_EPARSE);
    assert_int_equal(scan_bytes("1\0", 2, &jupyter, NULL), -HC_EPARSE);
    assert_int_equal(scan_bytes("\"\\\0\"", 4, &jupyter, NULL), -HC_EPARSE);
}

static void the_error_tells_the_byte_and_the_reason(void **state)
{
    (void)state;
    struct err e;

    assert_int_equal(jsonscan_text(VIEW_STR("{\"a\": tru}"), &strict, NULL, NULL, &e), -HC_EPARSE);
    assert_string_equal(e.msg, "JSON byte 6: expected a value");
    assert_int_equal(jsonscan_text(VIEW_STR("[1"), &strict, NULL, NULL, &e), -HC_EPARSE);
    assert_string_equal(e.msg, "JSON byte 2: the text ends inside an array");
}

static void python_number_words_need_the_flag(void **state)
{
    (void)state;
    struct jsonscan_notes notes;
    static const char text[] = "[NaN, Infinity, -Infinity, -1]";

    assert_int_equal(scan(text, &strict), -HC_EPARSE);
    assert_int_equal(scan_bytes(text, sizeof text - 1, &jupyter, &notes), 0);
    assert_int_equal(notes.nan_tokens, 3);
}

static void odd_but_legal_strings_pass(void **state)
{
    (void)state;
    struct jsonscan_notes notes;
    static const char text[] = "[\"\\u0000\", \"\\ud800\", \"\\udc00\\ud800\", \"\\ud83d\\ude00\","
                               " \"\\uD800\\uD83D\\uDE00\", \"\x7f\", \"\\/\\b\\f\\n\\r\\t\\\"\"]";

    assert_int_equal(scan_bytes(text, sizeof text - 1, &strict, &notes), 0);
    assert_int_equal(notes.lone_surrogates, 4);
    assert_int_equal(notes.bad_utf8, 0);
    static const char partners[] =
        "[\"\\ud800\\uffff\", \"\\udc00\\udc00\", \"\\ud800\\ud800\\udc00\"]";
    assert_int_equal(scan_bytes(partners, sizeof partners - 1, &strict, &notes), 0);
    assert_int_equal(notes.lone_surrogates, 4);
    assert_int_equal(scan("{\"a\":1,\"a\":2}", &strict), 0);
    assert_int_equal(scan("\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xef\xbf\xbf\"", &strict), 0);
}

static void invalid_utf8_needs_the_flag_and_is_counted(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bad;
    } table[] = {
        { "\"\xe9\xff\"", 2 },         /* what ipykernel emits for surrogateescape */
        { "\"\xe9\"", 1 },             /* a cut sequence must not swallow the quote */
        { "\"\xc0\x80\"", 2 },         /* overlong */
        { "\"\xe0\x80\x80\"", 3 },     /* overlong */
        { "\"\xed\xa0\x80\"", 3 },     /* a surrogate */
        { "\"\xf4\x90\x80\x80\"", 4 }, /* above U+10FFFF */
        { "\"\xf0\x9f\x98\"", 1 },     /* one maximal subpart */
        { "\"\xf0\x9f\x98\xf0\x9f\"", 2 },
        { "\"\xf5\"", 1 },
        { "\"\x80\xbf\"", 2 },
        { "{\"\xff\":\"\xff\"}", 2 },
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct jsonscan_notes notes;

        assert_int_equal(scan(table[i].text, &strict), -HC_EPARSE);
        assert_int_equal(scan_bytes(table[i].text, strlen(table[i].text), &jupyter, &notes), 0);
        assert_int_equal(notes.bad_utf8, table[i].bad);
    }
    assert_int_equal(scan("[1,\xff]", &jupyter), -HC_EPARSE); /* outside of strings: never */
}

static void depth_is_bounded_and_costs_no_stack(void **state)
{
    (void)state;
    enum { HUGE = 200000 };
    char *deep = malloc(2 * HUGE);
    struct jsonscan_rules rules = { 0, 100 };
    struct jsonscan_notes notes;

    assert_non_null(deep);
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    assert_int_equal(scan_bytes(deep, 200, &rules, &notes), 0);
    assert_int_equal(notes.depth, 100);
    rules.depth = 99;
    assert_int_equal(scan_bytes(deep, 200, &rules, NULL), -HC_ELIMIT);
    memset(deep, '[', HUGE);
    memset(deep + HUGE, ']', HUGE);
    rules.depth = UINT32_MAX; /* counts as JSONSCAN_DEPTH_MAX */
    assert_int_equal(scan_bytes(deep, 2 * HUGE, &rules, NULL), -HC_ELIMIT);
    memset(deep + JSONSCAN_DEPTH_MAX, ']', JSONSCAN_DEPTH_MAX);
    assert_int_equal(scan_bytes(deep, 2 * JSONSCAN_DEPTH_MAX, &rules, NULL), 0);
    rules.depth = 0;
    assert_int_equal(scan("7", &rules), 0);
    assert_int_equal(scan("[]", &rules), -HC_ELIMIT);
    free(deep);
}

static void objects_and_arrays_are_told_apart_at_every_depth(void **state)
{
    (void)state;
    char open[256], text[600];

    for (unsigned pattern = 0; pattern < 256; pattern++) {
        size_t n = 0;

        for (unsigned level = 0; level < 8; level++)
            n += (size_t)sprintf(open + n, pattern >> level & 1 ? "{\"k\":" : "[");
        sprintf(text, "%s1", open);
        for (unsigned level = 8; level-- > 0;)
            strcat(text, pattern >> level & 1 ? "}" : "]");
        assert_int_equal(scan(text, &strict), 0);
        char *last = text + strlen(text) - 1; /* now close the outermost one wrongly */
        *last = *last == '}' ? ']' : '}';
        assert_int_equal(scan(text, &strict), -HC_EPARSE);
    }
}

static const char *const wanted[] = { "header", "content", "é", "missing" };

static void wanted_values_are_found_with_their_exact_bytes(void **state)
{
    (void)state;
    struct jsonscan_value v[4];
    static const char doc[] = " { \"x\" : {\"header\":1} , \"header\" : { \"msg_id\" : \"a\" } ,"
                              "\"content\":[ {\"header\":2}, 3 ] , \"\\u00e9\":-5 } ";

    assert_int_equal(jsonscan_object(VIEW_STR(doc), &strict, wanted, 4, v, NULL, NULL), 0);
    assert_int_equal(v[0].kind, JSONSCAN_OBJECT);
    assert_true(view_equals(v[0].text, "{ \"msg_id\" : \"a\" }"));
    assert_int_equal(v[1].kind, JSONSCAN_ARRAY);
    assert_true(view_equals(v[1].text, "[ {\"header\":2}, 3 ]"));
    assert_int_equal(v[2].kind, JSONSCAN_INTEGER);
    assert_true(view_equals(v[2].text, "-5"));
    assert_int_equal(v[3].kind, JSONSCAN_ABSENT);
    assert_false(jsonscan_given(v[3]));
}

static void of_duplicate_keys_the_last_one_counts(void **state)
{
    (void)state;
    struct jsonscan_value v[2];
    static const char doc[] = "{\"header\":{\"a\":[1]},\"content\":1,\"header\":null,"
                              "\"c\\u006fntent\":\"two\"}";

    assert_int_equal(jsonscan_object(VIEW_STR(doc), &strict, wanted, 2, v, NULL, NULL), 0);
    assert_int_equal(v[0].kind, JSONSCAN_NULL);
    assert_true(view_equals(v[0].text, "null"));
    assert_true(view_equals(v[1].text, "\"two\""));
}

static void outputs_stay_untouched_when_the_text_is_bad(void **state)
{
    (void)state;
    struct jsonscan_value v[1] = { { JSONSCAN_REAL, { NULL, 77 } } };
    struct jsonscan_notes notes = { .bad_utf8 = 9 };
    struct err e;

    assert_int_equal(jsonscan_object(VIEW_STR("{\"header\":1"), &strict, wanted, 1, v, &notes, &e),
                     -HC_EPARSE);
    assert_int_equal(jsonscan_object(VIEW_STR("[]"), &strict, wanted, 1, v, &notes, &e),
                     -HC_EPARSE);
    assert_string_equal(e.msg, "JSON is an array, not an object");
    assert_int_equal(v[0].text.n, 77);
    assert_int_equal(notes.bad_utf8, 9);
}

static void a_document_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    static const char doc[] = "{\"header\":{\"a\":[1.5e3,-2,true,null]},\"s\":\"\\u00e9\\ud83d"
                              "\\ude00 \xf0\x9f\x98\x80\",\"n\":[[],{}]}";

    for (size_t n = 0; n < sizeof doc - 1; n++)
        assert_int_equal(scan_bytes(doc, n, &jupyter, NULL), -HC_EPARSE);
    assert_int_equal(scan_bytes(doc, sizeof doc - 1, &strict, NULL), 0);
}

static void an_iterator_gives_the_members_in_order(void **state)
{
    (void)state;
    struct jsonscan_iter it;
    struct jsonscan_value k, v;
    static const char *const expected[] = { "1", "\"b\"", "[2,3]", "{\"x\":{}}" };

    assert_int_equal(
        jsonscan_iter_init(&it, value("[ 1,\"b\" , [2,3],{\"x\":{}} ]"), &strict, NULL), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(jsonscan_iter_next(&it, &k, &v, NULL), 1);
        assert_int_equal(k.kind, JSONSCAN_ABSENT);
        assert_true(view_equals(v.text, expected[i]));
    }
    assert_int_equal(jsonscan_iter_next(&it, &k, &v, NULL), 0);
    assert_int_equal(jsonscan_iter_next(&it, &k, &v, NULL), 0);

    assert_int_equal(jsonscan_iter_init(&it, value("{\"a\" : 1, \"a\":2}"), &strict, NULL), 0);
    assert_int_equal(jsonscan_iter_next(&it, &k, &v, NULL), 1);
    assert_true(jsonscan_string_equals(k, "a") && view_equals(v.text, "1"));
    assert_int_equal(jsonscan_iter_next(&it, &k, &v, NULL), 1);
    assert_true(jsonscan_string_equals(k, "a") && view_equals(v.text, "2"));
    assert_int_equal(jsonscan_iter_next(&it, NULL, &v, NULL), 0);

    assert_int_equal(jsonscan_iter_init(&it, value("{}"), &strict, NULL), 0);
    assert_int_equal(jsonscan_iter_next(&it, &k, &v, NULL), 0);
    assert_int_equal(jsonscan_iter_init(&it, value("3"), &strict, NULL), -EINVAL);
}

static void an_iterator_over_a_text_that_was_never_scanned_is_safe(void **state)
{
    (void)state;
    static const char *const table[] = { "[1",      "[1,",        "[1,]",  "[1 2]", "[,]", "{\"a\"",
                                         "{\"a\":", "{\"a\":1,}", "{1:2}", "[x]",   "[[]" };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct view text = exact(table[i], strlen(table[i]));
        struct jsonscan_value v = { text.p[0] == '{' ? JSONSCAN_OBJECT : JSONSCAN_ARRAY, text };
        struct jsonscan_iter it;
        int rc;

        assert_int_equal(jsonscan_iter_init(&it, v, &strict, NULL), 0);
        while ((rc = jsonscan_iter_next(&it, NULL, &v, NULL)) > 0)
            ;
        assert_int_equal(rc, -HC_EPARSE);
        free((void *)text.p);
    }
}

static void strings_compare_by_their_meaning(void **state)
{
    (void)state;
    assert_true(jsonscan_string_equals(value("\"execute_request\""), "execute_request"));
    assert_true(jsonscan_string_equals(value("\"\\u0065xecute_request\""), "execute_request"));
    assert_true(jsonscan_string_equals(value("\"a\\/b\\n\""), "a/b\n"));
    assert_true(jsonscan_string_equals(value("\"\\ud83d\\ude00\""), "\xf0\x9f\x98\x80"));
    assert_true(jsonscan_string_equals(value("\"\\u00E9\\u20ac\""), "\xc3\xa9\xe2\x82\xac"));
    assert_true(jsonscan_string_equals(value("\"\\u0065\""), "e"));
    assert_false(jsonscan_string_equals(value("\"\\u0065\""), "ex"));
    assert_false(jsonscan_string_equals(value("\"\\u0065x\""), "e"));
    assert_true(jsonscan_string_equals(value("\"\""), ""));
    assert_false(jsonscan_string_equals(value("\"\""), "a"));
    assert_false(jsonscan_string_equals(value("\"a\""), ""));
    assert_false(jsonscan_string_equals(value("\"execute_reques\""), "execute_request"));
    assert_false(jsonscan_string_equals(value("\"execute_request \""), "execute_request"));
    assert_false(jsonscan_string_equals(value("\"a\\nb\""), "a\\nb"));
    assert_false(jsonscan_string_equals(value("\"a\\u0000\""), "a"));
    assert_false(jsonscan_string_equals(value("\"\\ud800\""), "\xef\xbf\xbd"));
    assert_false(jsonscan_string_equals(value("\"\\ud800\""), "\xed\xa0\x80"));
    assert_false(jsonscan_string_equals(value("\"\xff\""), "\xef\xbf\xbd"));
    assert_false(jsonscan_string_equals(value("1"), "1"));
}

static void assert_decodes(const char *text, const void *expected, size_t n)
{
    autobuf struct buf b;

    buf_init(&b, 100);
    assert_int_equal(buf_add_str(&b, "+"), 0);
    assert_int_equal(jsonscan_string_decode(value(text), &b, NULL), 0);
    assert_int_equal(buf_len(&b), n + 1);
    assert_memory_equal(buf_view(&b).p + 1, expected, n);
}

static void strings_decode_to_valid_utf8(void **state)
{
    (void)state;
    assert_decodes("\"\"", "", 0);
    assert_decodes("\"plain\"", "plain", 5);
    assert_decodes("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
    assert_decodes("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"",
                   "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10);
    assert_decodes("\"a\\u0000b\"", "a\0b", 3);
    assert_decodes("\"\\udc00\\udc00\\ud800\\uffff\"",
                   "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbf", 12);
    assert_decodes("\"\\ud800x\\udc00\"", "\xef\xbf\xbdx\xef\xbf\xbd", 7);
    assert_decodes("\"\\ud800\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80", 7);
    assert_decodes("\"\xe9\\n\xff\"", "\xef\xbf\xbd\n\xef\xbf\xbd", 7);
    assert_decodes("\"\\uffff\\ue000\\ud7ff\"", "\xef\xbf\xbf\xee\x80\x80\xed\x9f\xbf", 9);
}

static void decoding_is_bounded_and_leaves_nothing_behind(void **state)
{
    (void)state;
    autobuf struct buf b;
    struct err e;

    buf_init(&b, 8);
    assert_int_equal(buf_add_str(&b, "abc"), 0);
    assert_int_equal(jsonscan_string_decode(value("\"1234\\n6\""), &b, &e), -EMSGSIZE);
    assert_int_equal(jsonscan_string_decode(value("\"12345\\n\""), &b, &e), -EMSGSIZE);
    assert_int_equal(jsonscan_string_decode(value("\"123\xff\""), &b, &e), -EMSGSIZE);
    assert_int_equal(jsonscan_string_decode(value("12"), &b, &e), -HC_EPARSE);
    assert_true(view_equals(buf_view(&b), "abc"));
    assert_int_equal(jsonscan_string_decode(value("\"1234\\n\""), &b, &e), 0);
    assert_true(view_equals(buf_view(&b), "abc1234\n"));
}

static void copying_a_string_is_bounded_and_refuses_nul(void **state)
{
    (void)state;
    char out[6] = "old";

    assert_int_equal(jsonscan_string_copy(value("\"123456\""), out, sizeof out, NULL), -EMSGSIZE);
    assert_int_equal(jsonscan_string_copy(value("\"12345\\n\""), out, sizeof out, NULL), -EMSGSIZE);
    assert_int_equal(jsonscan_string_copy(value("\"1\\u0000\""), out, sizeof out, NULL),
                     -HC_EPARSE);
    assert_int_equal(jsonscan_string_copy(value("null"), out, sizeof out, NULL), -HC_EPARSE);
    assert_string_equal(out, "old");
    assert_int_equal(jsonscan_string_copy(value("\"12345\""), out, sizeof out, NULL), 5);
    assert_string_equal(out, "12345");
    assert_int_equal(jsonscan_string_copy(value("\"\\u00e9\xff\""), out, sizeof out, NULL), 5);
    assert_string_equal(out, "\xc3\xa9\xef\xbf\xbd");
    assert_int_equal(jsonscan_string_copy(value("\"\""), out, sizeof out, NULL), 0);
    assert_string_equal(out, "");
}

static void integers_are_exact_or_refused(void **state)
{
    (void)state;
    int64_t n = 5;

    assert_int_equal(jsonscan_integer(value("9223372036854775808"), &n, NULL), -ERANGE);
    assert_int_equal(jsonscan_integer(value("-9223372036854775809"), &n, NULL), -ERANGE);
    assert_int_equal(jsonscan_integer(value("1000000000000000000000"), &n, NULL), -ERANGE);
    assert_int_equal(jsonscan_integer(value("1.0"), &n, NULL), -HC_EPARSE);
    assert_int_equal(jsonscan_integer(value("1e2"), &n, NULL), -HC_EPARSE);
    assert_int_equal(jsonscan_integer(value("\"1\""), &n, NULL), -HC_EPARSE);
    assert_int_equal(jsonscan_integer(value("NaN"), &n, NULL), -HC_EPARSE);
    assert_int_equal(n, 5);
    assert_int_equal(jsonscan_integer(value("9223372036854775807"), &n, NULL), 0);
    assert_true(n == INT64_MAX);
    assert_int_equal(jsonscan_integer(value("-9223372036854775808"), &n, NULL), 0);
    assert_true(n == INT64_MIN);
    assert_int_equal(jsonscan_integer(value("-0"), &n, NULL), 0);
    assert_true(n == 0);
    assert_int_equal(jsonscan_integer(value("-42"), &n, NULL), 0);
    assert_true(n == -42);
}

static void booleans_are_true_or_false_only(void **state)
{
    (void)state;
    int b = 7;

    assert_int_equal(jsonscan_bool(value("1"), &b, NULL), -HC_EPARSE);
    assert_int_equal(jsonscan_bool(value("null"), &b, NULL), -HC_EPARSE);
    assert_int_equal(b, 7);
    assert_int_equal(jsonscan_bool(value("true"), &b, NULL), 0);
    assert_int_equal(b, 1);
    assert_int_equal(jsonscan_bool(value("false"), &b, NULL), 0);
    assert_int_equal(b, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_recognised),
        cmocka_unit_test(a_text_that_is_not_json_is_refused),
        cmocka_unit_test(the_error_tells_the_byte_and_the_reason),
        cmocka_unit_test(python_number_words_need_the_flag),
        cmocka_unit_test(odd_but_legal_strings_pass),
        cmocka_unit_test(invalid_utf8_needs_the_flag_and_is_counted),
        cmocka_unit_test(depth_is_bounded_and_costs_no_stack),
        cmocka_unit_test(objects_and_arrays_are_told_apart_at_every_depth),
        cmocka_unit_test(wanted_values_are_found_with_their_exact_bytes),
        cmocka_unit_test(of_duplicate_keys_the_last_one_counts),
        cmocka_unit_test(outputs_stay_untouched_when_the_text_is_bad),
        cmocka_unit_test(a_document_cut_at_any_byte_is_refused),
        cmocka_unit_test(an_iterator_gives_the_members_in_order),
        cmocka_unit_test(an_iterator_over_a_text_that_was_never_scanned_is_safe),
        cmocka_unit_test(strings_compare_by_their_meaning),
        cmocka_unit_test(strings_decode_to_valid_utf8),
        cmocka_unit_test(decoding_is_bounded_and_leaves_nothing_behind),
        cmocka_unit_test(copying_a_string_is_bounded_and_refuses_nul),
        cmocka_unit_test(integers_are_exact_or_refused),
        cmocka_unit_test(booleans_are_true_or_false_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
