/* Lines of the audit file and their chain. */
#include "auditline.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"

enum { LINES = 5 };

static struct buf text;

static void add_line(uint64_t seq, const char *value, char digest[AUDITLINE_DIGEST])
{
    struct auditline l;
    struct err e = { 0 };

    auditline_begin(&l, 1796000000000001, seq, "run_start");
    auditline_string(&l, "kernel", value);
    auditline_uint(&l, "run", seq);
    assert_int_equal(auditline_end(&l, digest, &text, &e), 0);
}

static int set_up(void **state)
{
    char digest[AUDITLINE_DIGEST] = AUDITLINE_FIRST;

    (void)state;
    buf_init(&text, 1 << 20);
    for (uint64_t seq = 1; seq <= LINES; seq++)
        add_line(seq, "a\"\n\xff", digest);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_free(&text);
    return 0;
}

/* Follows all lines of v; returns the number of the one that breaks the chain, 0: none. */
static uint64_t broken_at(struct view v, struct auditcheck *c)
{
    struct err e = { 0 };

    while (v.n > 0) {
        const uint8_t *nl = memchr(v.p, '\n', v.n);
        size_t n = nl != NULL ? (size_t)(nl - v.p) : v.n;

        if (auditcheck_line(c, (struct view){ v.p, n }, &e) < 0)
            return c->lines;
        n += nl != NULL;
        v = (struct view){ v.p + n, v.n - n };
    }
    return 0;
}

static void a_chain_that_nobody_touched_is_whole(void **state)
{
    struct auditcheck c = { 0 };

    (void)state;
    assert_int_equal(broken_at(buf_view(&text), &c), 0);
    assert_int_equal(c.lines, LINES);
    assert_int_equal(c.next_seq, LINES + 1);
    assert_string_equal(c.first, AUDITLINE_FIRST);
    assert_int_equal(c.unfinished, 0);
}

static void a_line_is_one_json_object_with_its_fields_in_order(void **state)
{
    static const char expected[] =
        "{\"ts\":\"2026-11-30T00:53:20.000001Z\",\"seq\":1,\"event\":\"run_start\","
        "\"kernel\":\"a\\\"\\n\xef\xbf\xbd\",\"run\":1,\"prev\":\"" AUDITLINE_FIRST "\"}\n";

    (void)state;
    assert_memory_equal(buf_view(&text).p, expected, sizeof expected - 1);
}

static void every_changed_byte_breaks_the_chain_or_is_the_last_line(void **state)
{
    struct view v = buf_view(&text);
    uint8_t *bytes = (uint8_t *)(uintptr_t)v.p;
    size_t last = v.n - 1;

    (void)state;
    while (bytes[last - 1] != '\n')
        last--;
    /* not the end of the last line but one: that makes one cut line at the end */
    for (size_t i = 0; i < last - 1; i++) {
        struct auditcheck c = { 0 };

        bytes[i] ^= 1;
        if (broken_at(v, &c) == 0)
            fail_msg("byte %zu of %zu was changed unseen", i, last);
        bytes[i] ^= 1;
    }
}

static void a_line_that_is_gone_or_comes_twice_shows(void **state)
{
    struct view v = buf_view(&text);
    const uint8_t *second = (const uint8_t *)memchr(v.p, '\n', v.n) + 1;
    const uint8_t *third = (const uint8_t *)memchr(second, '\n', v.n) + 1;
    size_t tail = v.n - (size_t)(third - v.p);
    autobuf struct buf other = { 0 };
    struct auditcheck c = { 0 };

    (void)state;
    buf_init(&other, 1 << 20);
    assert_int_equal(buf_add(&other, v.p, (size_t)(second - v.p)), 0);
    assert_int_equal(buf_add(&other, third, tail), 0);
    assert_int_equal(broken_at(buf_view(&other), &c), 2);
    buf_clear(&other);
    c = (struct auditcheck){ 0 };
    assert_int_equal(buf_add(&other, v.p, (size_t)(third - v.p)), 0);
    assert_int_equal(buf_add(&other, second, (size_t)(third - second)), 0);
    assert_int_equal(broken_at(buf_view(&other), &c), 3);
}

static void the_chain_goes_on_behind_a_line_that_was_cut(void **state)
{
    struct audit_tail tail;
    struct auditcheck c = { 0 };
    struct err e = { 0 };

    (void)state;
    for (size_t cut = 1; cut < 60; cut += 7) {
        autobuf struct buf all = { 0 };

        buf_init(&all, 1 << 20);
        assert_int_equal(buf_add_view(&all, buf_view(&text)), 0);
        buf_truncate(&all, buf_len(&all) - cut);
        assert_int_equal(auditline_tail(buf_view(&all), &tail, &e), 0);
        assert_true(tail.unfinished);
        assert_int_equal(tail.next_seq, cut == 1 ? LINES + 1 : LINES);
        assert_int_equal(buf_add_str(&all, "\n"), 0);
        buf_clear(&text);
        add_line(tail.next_seq, "after", tail.digest);
        assert_int_equal(buf_add_view(&all, buf_view(&text)), 0);
        c = (struct auditcheck){ 0 };
        assert_int_equal(broken_at(buf_view(&all), &c), 0);
        assert_int_equal(c.unfinished, cut != 1);
        tear_down(state);
        set_up(state);
    }
}

static void the_tail_of_a_file_tells_how_to_go_on(void **state)
{
    struct audit_tail tail;
    struct auditcheck c = { 0 };
    struct err e = { 0 };
    struct view v = buf_view(&text);

    (void)state;
    assert_int_equal(auditline_tail((struct view){ 0 }, &tail, &e), 0);
    assert_string_equal(tail.digest, AUDITLINE_FIRST);
    assert_int_equal(tail.next_seq, 1);
    assert_int_equal(tail.unfinished, 0);
    assert_int_equal(broken_at(v, &c), 0);
    /* also when it begins in the middle of a line */
    assert_int_equal(auditline_tail((struct view){ v.p + 30, v.n - 30 }, &tail, &e), 0);
    assert_string_equal(tail.digest, c.digest);
    assert_int_equal(tail.next_seq, LINES + 1);
    assert_int_equal(auditline_tail(VIEW_STR("what is this"), &tail, &e), 0);
    assert_int_equal(tail.next_seq, 1);
    assert_true(tail.unfinished);
}

static void a_further_file_follows_the_last_whole_line_when_the_disk_cut_one(void **state)
{
    struct auditcheck c = { 0 };
    char digest[AUDITLINE_DIGEST];

    (void)state;
    assert_int_equal(broken_at(buf_view(&text), &c), 0);
    strcpy(digest, c.digest);
    assert_int_equal(broken_at(VIEW_STR("{\"ts\":\"2026"), &c), 0);
    struct auditcheck same = c;
    buf_clear(&text);
    add_line(LINES + 1, "next file", digest);
    auditcheck_next_file(&c);
    assert_int_equal(broken_at(buf_view(&text), &c), 0);
    assert_int_not_equal(broken_at(buf_view(&text), &same), 0); /* within one file it may not */
}

static void a_line_that_is_too_long_changes_nothing(void **state)
{
    struct auditline l;
    struct err e = { 0 };
    char large[AUDITLINE_MAX + 1], digest[AUDITLINE_DIGEST] = AUDITLINE_FIRST;
    size_t before = buf_len(&text);

    (void)state;
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    auditline_begin(&l, 0, 9, "x");
    auditline_string(&l, "value", large);
    assert_int_equal(auditline_end(&l, digest, &text, &e), -EMSGSIZE);
    assert_string_equal(digest, AUDITLINE_FIRST);
    assert_int_equal(buf_len(&text), before);
}

static void what_is_no_audit_file_is_told(void **state)
{
    struct auditcheck c = { 0 };

    (void)state;
    assert_int_equal(broken_at(VIEW_STR("hello\n"), &c), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_chain_that_nobody_touched_is_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_line_is_one_json_object_with_its_fields_in_order, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(every_changed_byte_breaks_the_chain_or_is_the_last_line,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_line_that_is_gone_or_comes_twice_shows, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_chain_goes_on_behind_a_line_that_was_cut, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_tail_of_a_file_tells_how_to_go_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_further_file_follows_the_last_whole_line_when_the_disk_cut_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_line_that_is_too_long_changes_nothing, set_up, tear_down),
        cmocka_unit_test(what_is_no_audit_file_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
