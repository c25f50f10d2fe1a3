/* Settings of the gateway: what is written is read back, what is broken is refused. */
#include "settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"

static void a_setting_comes_back_as_it_was_written(void **state)
{
    (void)state;
    autobuf struct buf b;
    struct err e = { 0 };
    uint64_t n = 0;

    buf_init(&b, SETTINGS_MAX);
    assert_int_equal(settings_add(&b, "token", "a=b c", &e), 0);
    assert_int_equal(settings_add(&b, "no-auth", "1", &e), 0);
    assert_int_equal(settings_add(&b, "empty", "", &e), 0);
    assert_int_equal(settings_add_number(&b, "max-kernels", UINT64_MAX, &e), 0);
    assert_int_equal(settings_check(buf_view(&b), &e), 0);

    struct view v = buf_view(&b);
    assert_string_equal(settings_text(v, "token", "x"), "a=b c");
    assert_string_equal(settings_text(v, "empty", "x"), "");
    assert_string_equal(settings_text(v, "toke", "fallback"), "fallback");
    assert_true(settings_flag(v, "no-auth"));
    assert_false(settings_flag(v, "token"));
    assert_int_equal(settings_number(v, "max-kernels", 3, &n, &e), 0);
    assert_true(n == UINT64_MAX);
    assert_int_equal(settings_number(v, "absent", 3, &n, &e), 0);
    assert_int_equal(n, 3);
}

static void settings_with_a_prefix_are_walked_in_order(void **state)
{
    (void)state;
    autobuf struct buf b;
    size_t cursor = 0;

    buf_init(&b, SETTINGS_MAX);
    assert_int_equal(settings_add(&b, "env.LANG", "C.UTF-8", NULL), 0);
    assert_int_equal(settings_add(&b, "listen", "127.0.0.1:1", NULL), 0);
    assert_int_equal(settings_add(&b, "env.TZ", "UTC", NULL), 0);
    assert_string_equal(settings_next(buf_view(&b), "env.", &cursor), "LANG=C.UTF-8");
    assert_string_equal(settings_next(buf_view(&b), "env.", &cursor), "TZ=UTC");
    assert_null(settings_next(buf_view(&b), "env.", &cursor));
}

static void a_broken_blob_is_refused(void **state)
{
    (void)state;
    static const struct view broken[] = {
        { (const uint8_t *)"a=1", 3 },        /* no NUL at the end */
        { (const uint8_t *)"a\0", 2 },        /* no '=' */
        { (const uint8_t *)"=1\0", 3 },       /* no key */
        { (const uint8_t *)"a b=1\0", 6 },    /* a blank in the key */
        { (const uint8_t *)"a=1\0a=2\0", 8 }, /* twice */
        { (const uint8_t *)"\0", 1 },
    };

    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        assert_int_equal(settings_check(broken[i], NULL), -HC_EPARSE);
    assert_int_equal(settings_check((struct view){ NULL, 0 }, NULL), 0);
}

static void a_number_that_is_none_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const texts[] = { "", "-1", "1x", "18446744073709551616", " 1" };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        autobuf struct buf b;
        struct err e = { 0 };
        uint64_t n = 7;

        buf_init(&b, SETTINGS_MAX);
        assert_int_equal(settings_add(&b, "pids", texts[i], &e), 0);
        assert_int_equal(settings_number(buf_view(&b), "pids", 0, &n, &e), -HC_EPARSE);
        assert_non_null(strstr(e.msg, "'pids'"));
        assert_int_equal(n, 7);
    }
}

static void a_key_that_cannot_be_read_back_is_not_written(void **state)
{
    (void)state;
    autobuf struct buf b;
    char longest[SETTINGS_KEY_MAX + 2];

    buf_init(&b, SETTINGS_MAX);
    memset(longest, 'k', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(settings_add(&b, "a=b", "1", NULL), -EINVAL);
    assert_int_equal(settings_add(&b, "", "1", NULL), -EINVAL);
    assert_int_equal(settings_add(&b, longest, "1", NULL), -EINVAL);
    longest[SETTINGS_KEY_MAX] = '\0';
    assert_int_equal(settings_add(&b, longest, "1", NULL), 0);
    assert_int_equal(settings_check(buf_view(&b), NULL), 0);
}

static void a_full_blob_stays_as_it_was(void **state)
{
    (void)state;
    autobuf struct buf b;

    buf_init(&b, 8);
    assert_int_equal(settings_add(&b, "a", "1", NULL), 0);
    assert_int_equal(settings_add(&b, "long", "value", NULL), -EMSGSIZE);
    assert_int_equal(buf_len(&b), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_comes_back_as_it_was_written),
        cmocka_unit_test(settings_with_a_prefix_are_walked_in_order),
        cmocka_unit_test(a_broken_blob_is_refused),
        cmocka_unit_test(a_number_that_is_none_is_refused_by_name),
        cmocka_unit_test(a_key_that_cannot_be_read_back_is_not_written),
        cmocka_unit_test(a_full_blob_stays_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
