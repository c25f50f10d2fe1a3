/* A buffer holds what fits to the last byte, refuses one byte more, and is unchanged then. */
#include "buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"

enum { TEXT_MAX = 600 }; /* beyond the first allocation of 256 bytes */

static char text[TEXT_MAX + 2];

static int fill_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = (char)('a' + i % 26);
    return 0;
}

static int by_add(struct buf *b, size_t n)
{
    return buf_add(b, text, n);
}

static int by_view(struct buf *b, size_t n)
{
    return buf_add_view(b, (struct view){ (const uint8_t *)text, n });
}

static int by_str(struct buf *b, size_t n)
{
    char copy[sizeof text];

    memcpy(copy, text, n);
    copy[n] = '\0';
    return buf_add_str(b, copy);
}

static int by_format(struct buf *b, size_t n)
{
    return buf_addf(b, "%.*s", (int)n, text);
}

static int by_hand(struct buf *b, size_t n)
{
    int rc = buf_reserve(b, n);

    if (rc < 0)
        return rc;
    memcpy(buf_tail(b), text, n);
    buf_commit(b, n);
    return 0;
}

static const struct {
    const char *name;
    int (*add)(struct buf *b, size_t n); /* the first n bytes of text */
} writers[] = {
    { "buf_add", by_add },     { "buf_add_view", by_view }, { "buf_add_str", by_str },
    { "buf_addf", by_format }, { "buf_reserve", by_hand },
};
enum { WRITERS = sizeof writers / sizeof *writers };

static void assert_holds(const struct buf *b, const void *bytes, size_t n)
{
    assert_int_equal(buf_len(b), n);
    assert_int_equal(buf_view(b).n, n);
    if (n > 0)
        assert_memory_equal(buf_view(b).p, bytes, n);
}

static void every_writer_fills_an_empty_buffer_to_the_last_byte(void **state)
{
    (void)state;
    for (unsigned w = 0; w < WRITERS; w++) {
        for (size_t max = 0; max <= TEXT_MAX; max++) {
            autobuf struct buf b;

            buf_init(&b, max);
            if (writers[w].add(&b, max + 1) != -EMSGSIZE)
                fail_msg("%s: %zu bytes are taken, at most %zu fit", writers[w].name, max + 1, max);
            assert_holds(&b, "", 0);
            if (writers[w].add(&b, max) != 0)
                fail_msg("%s: %zu bytes do not fit exactly", writers[w].name, max);
            assert_holds(&b, text, max);
        }
    }
}

static void every_writer_fills_what_is_left_and_no_more(void **state)
{
    (void)state;
    for (unsigned w = 0; w < WRITERS; w++) {
        for (size_t before = 1; before < TEXT_MAX; before += 7) {
            autobuf struct buf b;

            buf_init(&b, TEXT_MAX);
            assert_int_equal(buf_add(&b, text, before), 0);
            assert_int_equal(writers[w].add(&b, TEXT_MAX - before + 1), -EMSGSIZE);
            assert_holds(&b, text, before);
            assert_int_equal(writers[w].add(&b, TEXT_MAX - before), 0);
            assert_int_equal(buf_len(&b), TEXT_MAX);
            assert_memory_equal(buf_view(&b).p, text, before);
            assert_memory_equal(buf_view(&b).p + before, text, TEXT_MAX - before);
            assert_int_equal(writers[w].add(&b, 0), 0);
            assert_int_equal(writers[w].add(&b, 1), -EMSGSIZE);
            assert_int_equal(buf_len(&b), TEXT_MAX);
        }
    }
}

static void what_was_consumed_makes_room_for_every_writer(void **state)
{
    (void)state;
    for (unsigned w = 0; w < WRITERS; w++) {
        for (size_t gone = 1; gone <= TEXT_MAX; gone += 7) {
            autobuf struct buf b;

            buf_init(&b, TEXT_MAX);
            assert_int_equal(buf_add(&b, text, TEXT_MAX), 0);
            buf_consume(&b, gone);
            assert_int_equal(writers[w].add(&b, gone + 1), -EMSGSIZE);
            assert_holds(&b, text + gone, TEXT_MAX - gone);
            assert_int_equal(writers[w].add(&b, gone), 0);
            assert_int_equal(buf_len(&b), TEXT_MAX);
            assert_memory_equal(buf_view(&b).p, text + gone, TEXT_MAX - gone);
            assert_memory_equal(buf_view(&b).p + TEXT_MAX - gone, text, gone);
        }
    }
}

static void a_number_of_bytes_beyond_all_bounds_is_refused(void **state)
{
    (void)state;
    autobuf struct buf b;

    buf_init(&b, 16);
    assert_int_equal(buf_add(&b, "abc", 3), 0);
    assert_int_equal(buf_reserve(&b, SIZE_MAX), -EMSGSIZE);
    assert_int_equal(buf_reserve(&b, SIZE_MAX - 2), -EMSGSIZE);
    assert_int_equal(buf_reserve(&b, 14), -EMSGSIZE);
    assert_int_equal(buf_reserve(&b, 13), 0);
    assert_holds(&b, "abc", 3);
}

static void a_format_writes_its_text_and_no_nul(void **state)
{
    (void)state;
    autobuf struct buf b;

    buf_init(&b, 64);
    assert_int_equal(buf_addf(&b, "%d-%s", 42, "x"), 0);
    assert_int_equal(buf_addf(&b, "%s", ""), 0);
    assert_int_equal(buf_addf(&b, "%05.1f", 2.5), 0);
    assert_holds(&b, "42-x002.5", 9);
}

static void truncate_clear_and_release_keep_what_they_say(void **state)
{
    (void)state;
    autobuf struct buf b;

    buf_init(&b, 16);
    assert_int_equal(buf_add_str(&b, "0123456789"), 0);
    buf_consume(&b, 2);
    buf_truncate(&b, 5);
    assert_holds(&b, "23456", 5);
    buf_truncate(&b, 5);
    assert_holds(&b, "23456", 5);
    buf_clear(&b);
    assert_holds(&b, "", 0);
    assert_int_equal(buf_add(&b, text, 16), 0);
    buf_release(&b);
    assert_holds(&b, "", 0);
    assert_null(buf_view(&b).p);
    assert_int_equal(buf_add(&b, text, 16), 0);
    buf_free(&b);
    assert_int_equal(buf_add(&b, text, 17), -EMSGSIZE); /* the bound outlives the bytes */
    assert_int_equal(buf_add(&b, text, 16), 0);
}

/* Any order of adding and consuming is what it is on a plain array. */
static void any_order_of_calls_is_right(void **state)
{
    enum { STEPS = 20000, MAX = 700 };
    uint8_t model[MAX];
    size_t held = 0;
    unsigned seed = 1;
    autobuf struct buf b;

    (void)state;
    buf_init(&b, MAX);
    for (unsigned i = 0; i < STEPS; i++) {
        size_t n = (size_t)rand_r(&seed) % (TEXT_MAX / 3);

        if (rand_r(&seed) % 2 == 0) {
            int rc = writers[(unsigned)rand_r(&seed) % WRITERS].add(&b, n);

            assert_int_equal(rc, held + n > MAX ? -EMSGSIZE : 0);
            if (rc == 0) {
                memcpy(model + held, text, n);
                held += n;
            }
        } else {
            n = n > held ? held : n;
            buf_consume(&b, n);
            held -= n;
            memmove(model, model + n, held);
        }
        assert_holds(&b, model, held);
    }
}

static void views_are_compared_byte_for_byte(void **state)
{
    (void)state;
    char *copy = view_dup(VIEW_STR("a\0b"));

    assert_memory_equal(copy, "a\0b", 4);
    free(copy);
    copy = view_dup((struct view){ NULL, 0 });
    assert_string_equal(copy, "");
    free(copy);
    assert_int_equal(view_cstr("abc").n, 3);
    assert_true(view_equals(view_cstr("abc"), "abc"));
    assert_false(view_equals(view_cstr("abc"), "ab"));
    assert_false(view_equals(view_cstr("ab"), "abc"));
    assert_false(view_equals(view_cstr("Abc"), "abc"));
    assert_true(view_equals((struct view){ NULL, 0 }, ""));
    assert_true(view_equals_nocase(view_cstr("Abc"), "aBC"));
    assert_false(view_equals_nocase(view_cstr("Abc"), "aBCd"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_writer_fills_an_empty_buffer_to_the_last_byte),
        cmocka_unit_test(every_writer_fills_what_is_left_and_no_more),
        cmocka_unit_test(what_was_consumed_makes_room_for_every_writer),
        cmocka_unit_test(a_number_of_bytes_beyond_all_bounds_is_refused),
        cmocka_unit_test(a_format_writes_its_text_and_no_nul),
        cmocka_unit_test(truncate_clear_and_release_keep_what_they_say),
        cmocka_unit_test(any_order_of_calls_is_right),
        cmocka_unit_test(views_are_compared_byte_for_byte),
    };

    return cmocka_run_group_tests(tests, fill_text, NULL);
}
