/* Timestamps: clients parse them with a fixed pattern. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "timestamp.h"

static void six_digits_follow_the_point_whatever_they_are(void **state)
{
    static const struct {
        uint64_t us;
        const char *text;
    } rows[] = {
        { 0, "1970-01-01T00:00:00.000000Z" },
        { 1, "1970-01-01T00:00:00.000001Z" },
        { 1767323045000000, "2026-01-02T03:04:05.000000Z" },
        { 1767323045100000, "2026-01-02T03:04:05.100000Z" },
        { 1767323045999999, "2026-01-02T03:04:05.999999Z" },
        { 951782400000000, "2000-02-29T00:00:00.000000Z" },
        { 253402300799999999, "9999-12-31T23:59:59.999999Z" },
    };
    char text[TIMESTAMP_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        timestamp_format(rows[i].us, text);
        assert_string_equal(text, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(six_digits_follow_the_point_whatever_they_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
