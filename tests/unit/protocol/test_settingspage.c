/* The page of the settings: what is written is read back, half of one is not believed. */
#include "settingspage.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "settings.h"

static void write_page(struct buf *page, uint64_t version, const char *token)
{
    autobuf struct buf blob;

    buf_init(&blob, SETTINGS_MAX);
    buf_init(page, SETTINGS_MAX + SETTINGSPAGE_HEAD);
    assert_int_equal(settings_add(&blob, "token", token, NULL), 0);
    assert_int_equal(settings_add(&blob, "base-url", "/", NULL), 0);
    assert_int_equal(settingspage_encode(version, buf_view(&blob), page, NULL), 0);
}

static void a_page_comes_back_as_it_was_written(void **state)
{
    (void)state;
    autobuf struct buf page;
    uint64_t version = 0;
    struct view blob;

    write_page(&page, 7, "secret");
    assert_int_equal(settingspage_decode(buf_view(&page), &version, &blob, NULL), 0);
    assert_int_equal(version, 7);
    assert_string_equal(settings_text(blob, "token", ""), "secret");
    assert_string_equal(settings_text(blob, "base-url", ""), "/");
}

static void what_stands_behind_the_page_does_not_count(void **state)
{
    (void)state;
    autobuf struct buf page;
    uint64_t version;
    struct view blob;

    write_page(&page, 1, "secret");
    assert_int_equal(buf_add_str(&page, "the tail of a longer page before"), 0);
    assert_int_equal(settingspage_decode(buf_view(&page), &version, &blob, NULL), 0);
    assert_string_equal(settings_text(blob, "token", ""), "secret");
}

/* The writer goes from front to back over the page before. */
static void a_page_that_is_written_up_to_any_byte_is_read_again_later(void **state)
{
    (void)state;
    autobuf struct buf old, new;
    struct err e = { 0 };
    uint64_t version;
    struct view blob;

    write_page(&old, 1, "before");
    write_page(&new, 2, "behind");
    assert_int_equal(buf_len(&old), buf_len(&new));
    for (size_t cut = 0; cut <= buf_len(&new); cut++) {
        autofree uint8_t *mixed = xcalloc(1, buf_len(&new));
        struct view v = { mixed, buf_len(&new) };

        memcpy(mixed, buf_view(&old).p, v.n);
        memcpy(mixed, buf_view(&new).p, cut);
        int rc = settingspage_decode(v, &version, &blob, &e);
        if (memcmp(mixed, buf_view(&old).p, v.n) == 0 || memcmp(mixed, buf_view(&new).p, v.n) == 0)
            assert_int_equal(rc, 0);
        else
            assert_int_equal(rc, -EAGAIN);
    }
}

static void a_cut_page_is_read_again_later_and_a_cut_head_is_refused(void **state)
{
    (void)state;
    autobuf struct buf page;
    uint64_t version;
    struct view blob, v;

    write_page(&page, 1, "secret");
    v = buf_view(&page);
    for (v.n--; v.n >= SETTINGSPAGE_HEAD; v.n--)
        assert_int_equal(settingspage_decode(v, &version, &blob, NULL), -EAGAIN);
    assert_int_equal(settingspage_decode(v, &version, &blob, NULL), -HC_EPARSE);
}

static void a_right_digest_over_wrong_settings_is_refused(void **state)
{
    (void)state;
    autobuf struct buf page;
    uint64_t version;
    struct view blob;
    struct err e = { 0 };

    buf_init(&page, 4096);
    assert_int_equal(settingspage_encode(1, VIEW_STR("no pair\0"), &page, NULL), 0);
    assert_int_equal(settingspage_decode(buf_view(&page), &version, &blob, &e), -HC_EPARSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_comes_back_as_it_was_written),
        cmocka_unit_test(what_stands_behind_the_page_does_not_count),
        cmocka_unit_test(a_page_that_is_written_up_to_any_byte_is_read_again_later),
        cmocka_unit_test(a_cut_page_is_read_again_later_and_a_cut_head_is_refused),
        cmocka_unit_test(a_right_digest_over_wrong_settings_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
