/* Untrusted text in log lines: every byte, every size of the array. */
#include "logescape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void a_word_has_no_blanks_quotes_or_control_bytes(void **state)
{
    char out[64];

    (void)state;
    assert_string_equal(log_escape("a b\n\"\\", 6, out, sizeof out), "a\\x20b\\x0a\\x22\\x5c");
    assert_string_equal(log_escape("\0\x7f\x80\xff", 4, out, sizeof out), "\\x00\\x7f\\x80\\xff");
    assert_string_equal(log_escape("", 0, out, sizeof out), "");
    assert_string_equal(log_escape("/api/kernels?x=1", 16, out, sizeof out), "/api/kernels?x=1");
}

static void a_word_can_be_read_back(void **state)
{
    unsigned char all[256], back[256];
    char out[256 * 4 + 1];
    size_t n = 0;

    (void)state;
    for (unsigned i = 0; i < 256; i++)
        all[i] = (unsigned char)i;
    log_escape(all, sizeof all, out, sizeof out);
    for (const char *p = out; *p != '\0'; p++) {
        assert_true(*p > 0x20 && *p < 0x7f && *p != '"' && n < sizeof back);
        back[n++] = (unsigned char)*p;
        if (*p != '\\')
            continue;
        assert_int_equal(p[1], 'x');
        char digits[3] = { p[2], p[3], '\0' };
        back[n - 1] = (unsigned char)strtoul(digits, NULL, 16);
        p += 3;
    }
    assert_int_equal(n, sizeof all);
    assert_memory_equal(back, all, sizeof all);
}

/* On the heap, so that the sanitizer sees a byte too many. */
static void a_word_is_cut_between_escapes(void **state)
{
    static const char text[] = "ab\n\ncd\x01";
    static const char whole[] = "ab\\x0a\\x0acd\\x01";
    static const size_t ends[] = { 0, 1, 2, 6, 10, 11, 12, 16 };

    (void)state;
    for (size_t size = 1; size <= sizeof whole + 2; size++) {
        char *out = malloc(size);
        size_t want = 0;

        assert_non_null(out);
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
            if (ends[i] < size)
                want = ends[i];
        log_escape(text, sizeof text - 1, out, size);
        assert_int_equal(strlen(out), want);
        assert_memory_equal(out, whole, want);
        free(out);
    }
    assert_string_equal(log_escape("x", 1, (char[1]){ 0 }, 1), "");
    char untouched = 'z';
    log_escape("x", 1, &untouched, 0);
    assert_int_equal(untouched, 'z');
}

static void quotes_keep_blanks_and_close_only_at_the_end(void **state)
{
    (void)state;
    assert_string_equal(LOG_QUOTED(""), "\"\"");
    assert_string_equal(LOG_QUOTED("no such file"), "\"no such file\"");
    assert_string_equal(LOG_QUOTED("a\"b\\\n\x1b[2J\xc3\xa4"),
                        "\"a\\\"b\\\\\\x0a\\x1b[2J\\xc3\\xa4\"");
}

static void quoted_text_is_cut_at_any_size(void **state)
{
    static const char *const bytes[] = { "\x01", "\"", "a" };

    (void)state;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        char text[600];

        memset(text, *bytes[i], sizeof text - 1);
        text[sizeof text - 1] = '\0';
        for (size_t size = 16; size < 400; size++) {
            char *out = malloc(size);

            assert_non_null(out);
            memset(out, 'z', size);
            log_quote(out, size, text);
            assert_true(memchr(out, '\0', size) != NULL);
            assert_string_equal(out + strlen(out) - 4, "...\"");
            free(out);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_has_no_blanks_quotes_or_control_bytes),
        cmocka_unit_test(a_word_can_be_read_back),
        cmocka_unit_test(a_word_is_cut_between_escapes),
        cmocka_unit_test(quotes_keep_blanks_and_close_only_at_the_end),
        cmocka_unit_test(quoted_text_is_cut_at_any_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
