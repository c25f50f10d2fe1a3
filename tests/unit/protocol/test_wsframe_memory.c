/* How much memory the frame decoder holds: the module is included to look inside. */
#include "wsframe.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MIB (1u << 20)

static void feed(struct wsframe *w, const void *in, size_t n, int expected)
{
    size_t used;

    assert_int_equal(wsframe_feed(w, in, n, &used, NULL), expected);
}

static void an_announced_length_costs_nothing(void **state)
{
    (void)state;
    struct wsframe *w = wsframe_new(1u << 30);

    feed(w, "\x82\xff\0\0\0\0\x3f\0\0\0\0\0\0\0", 14, 0); /* almost 1 GiB */
    assert_int_equal(w->size, 0);
    feed(w, "hello", 5, 0);
    assert_true(w->size < 64);
    wsframe_free(w);
}

static void a_message_that_is_there_at_once_fits_exactly(void **state)
{
    (void)state;
    struct wsframe *w = wsframe_new(MIB);
    uint8_t frame[8 + 1000] = { 0x82, 0xfe, 0x03, 0xe8 };

    feed(w, frame, sizeof frame, 1);
    assert_int_equal(w->size, 1000);
    wsframe_free(w);
}

static void a_buffer_never_outgrows_what_the_message_may_have(void **state)
{
    (void)state;
    struct wsframe *w = wsframe_new(100000);
    autofree uint8_t *bytes = xcalloc(1, 100000);

    /* a fragment without end, then the last one, which completes the limit */
    feed(w, "\x02\xff\0\0\0\0\0\1\x5f\x90\0\0\0\0", 14, 0);
    for (size_t at = 0; at < 90000; at += 900) {
        feed(w, bytes, 900, 0);
        assert_true(w->size <= 100000 && w->size <= 2 * w->len);
    }
    feed(w, "\x80\xfe\x27\x10\0\0\0\0", 8, 0);
    feed(w, bytes, 10000, 1);
    assert_int_equal(w->size, 100000);
    wsframe_free(w);
}

static void a_large_buffer_is_given_back(void **state)
{
    (void)state;
    struct wsframe *w = wsframe_new(MIB);
    autofree uint8_t *frame = xcalloc(1, 14 + 70000);

    memcpy(frame, "\x82\xff\0\0\0\0\0\1\x11\x70\0\0\0\0", 14);
    feed(w, frame, 14 + 70000, 1);
    assert_true(w->size >= 70000);
    feed(w, "\x82", 1, 0); /* the next frame begins */
    assert_null(w->data);
    feed(w, "\x83\0\0\0\0abc", 8, 1);
    assert_non_null(w->data);
    wsframe_release(w);
    assert_null(w->data);
    assert_int_equal(w->size, 0);
    wsframe_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_announced_length_costs_nothing),
        cmocka_unit_test(a_message_that_is_there_at_once_fits_exactly),
        cmocka_unit_test(a_buffer_never_outgrows_what_the_message_may_have),
        cmocka_unit_test(a_large_buffer_is_given_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
