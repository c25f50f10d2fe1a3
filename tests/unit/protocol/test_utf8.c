/* UTF-8: every short sequence against the definition, pieces, repair. */
#include "utf8.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"

/* The definition, slowly: decode by the lead byte, then look at the number. */
static int valid_by_definition(const uint8_t *p, size_t n)
{
    static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };

    for (size_t i = 0; i < n;) {
        unsigned more = p[i] < 0x80 ? 0 : (p[i] & 0xe0) == 0xc0 ? 1 : (p[i] & 0xf0) == 0xe0 ? 2 : 3;
        uint32_t code = more == 0 ? p[i] : p[i] & (0x3fu >> more);

        if ((p[i] & 0xc0) == 0x80 || p[i] >= 0xf8 || more >= n - i)
            return 0;
        for (unsigned k = 1; k <= more; k++) {
            if ((p[i + k] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (p[i + k] & 0x3f);
        }
        if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
            return 0;
        i += more + 1;
    }
    return 1;
}

static void every_sequence_of_three_bytes_is_judged_by_the_definition(void **state)
{
    (void)state;
    for (uint32_t word = 0; word < 1u << 24; word++) {
        uint8_t p[3] = { (uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16) };
        size_t n = p[2] != 0 ? 3 : p[1] != 0 ? 2 : 1;

        if (utf8_valid((struct view){ p, n }) != valid_by_definition(p, n))
            fail_msg("%02x %02x %02x", p[0], p[1], p[2]);
    }
}

static void every_sequence_of_four_bytes_is_judged_by_the_definition(void **state)
{
    (void)state;
    static const uint8_t edges[] = { 0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff };
    const size_t count = sizeof edges;

    for (unsigned c = 0xe0; c < 0x100; c++) {
        for (size_t i = 0; i < count * count * count; i++) {
            uint8_t p[4] = { (uint8_t)c, edges[i % count], edges[i / count % count],
                             edges[i / count / count] };

            if (utf8_valid((struct view){ p, 4 }) != valid_by_definition(p, 4))
                fail_msg("%02x %02x %02x %02x", p[0], p[1], p[2], p[3]);
        }
    }
}

static void a_bad_byte_is_found_at_any_place_of_a_long_text(void **state)
{
    (void)state;
    uint8_t text[64];

    for (size_t at = 0; at < sizeof text; at++) {
        memset(text, 'a', sizeof text);
        assert_true(utf8_valid((struct view){ text, sizeof text }));
        text[at] = 0xff;
        assert_false(utf8_valid((struct view){ text, sizeof text }));
        assert_int_equal(utf8_valid_prefix((struct view){ text, sizeof text }), at);
    }
}

static void a_prefix_ends_before_a_sequence_that_is_cut(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
    static const size_t expected[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10 };

    for (size_t n = 0; n < sizeof text; n++)
        assert_int_equal(utf8_valid_prefix((struct view){ (const uint8_t *)text, n }), expected[n]);
}

static void a_text_in_pieces_is_judged_as_the_whole(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "plain",
        "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z",
        "a\xed\xa0\x80",
        "\xf4\x90\x80\x80",
        "long enough for a word \xff and more",
        "cut \xf0\x9f\x98",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct view all = view_cstr(texts[i]);

        for (size_t a = 0; a <= all.n; a++) {
            for (size_t b = a; b <= all.n; b++) {
                struct utf8_state s = { 0 };

                utf8_feed(&s, (struct view){ all.p, a });
                utf8_feed(&s, (struct view){ all.p + a, b - a });
                int begins = utf8_feed(&s, (struct view){ all.p + b, all.n - b });

                assert_int_equal(utf8_complete(&s), utf8_valid(all));
                assert_true(begins || !utf8_valid(all));
                if (!begins) /* once broken, always broken */
                    assert_false(utf8_feed(&s, VIEW_STR("a")));
            }
        }
    }
}

static void valid_text_is_not_copied(void **state)
{
    (void)state;
    struct view in = VIEW_STR("caf\xc3\xa9"), text;
    autobuf struct buf out;

    buf_init(&out, 0);
    assert_int_equal(utf8_repair(in, &out, &text, NULL), 0);
    assert_ptr_equal(text.p, in.p);
    assert_int_equal(text.n, in.n);
    assert_int_equal(buf_len(&out), 0);
}

#define R "\xef\xbf\xbd"

static void each_maximal_subpart_becomes_one_replacement(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        /* Unicode 15, table 3-8 and its neighbours */
        { "a\xf1\x80\x80\xe1\x80\xc2"
          "b\x80"
          "c\x80\xbf"
          "d",
          "a" R R R "b" R "c" R R "d" },
        { "\xc0\xaf\xe0\x80\xbf\xf0\x81\x82"
          "A",
          R R R R R R R R "A" },
        { "\xed\xa0\x80\xed\xbf\xbf\xed\xaf"
          "A",
          R R R R R R R R "A" },
        { "\xf4\x91\x92\x93\xff"
          "A\x80\xbf"
          "B",
          R R R R R "A" R R "B" },
        { "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf"
          "A",
          R R R R "A" },
        { "\xe9\xff", R R },
        { "\xc3", R },
        { "ok \xf0\x9f\x98", "ok " R },
        { "\xf0\x9f\x98\xc3\xa9", R "\xc3\xa9" },
        { "eight by\xfftes and \xfe more", "eight by" R "tes and " R " more" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct view in = view_cstr(rows[i][0]), text;
        autobuf struct buf out;

        buf_init(&out, 1 + 3 * in.n);
        assert_int_equal(buf_add_str(&out, "<"), 0);
        assert_int_equal(utf8_repair(in, &out, &text, NULL), 1);
        if (!view_equals(text, rows[i][1]))
            fail_msg("row %zu", i);
        assert_true(utf8_valid(text));
        assert_ptr_equal(text.p, buf_view(&out).p + 1);
        assert_int_equal(buf_len(&out), 1 + text.n);
    }
}

static void a_repair_that_does_not_fit_changes_nothing(void **state)
{
    (void)state;
    struct view text = { NULL, 0 };
    autobuf struct buf out;

    buf_init(&out, 5);
    assert_int_equal(utf8_repair(VIEW_STR("\xff\xff"), &out, &text, NULL), -EMSGSIZE);
    assert_int_equal(buf_len(&out), 0);
    assert_null(text.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sequence_of_three_bytes_is_judged_by_the_definition),
        cmocka_unit_test(every_sequence_of_four_bytes_is_judged_by_the_definition),
        cmocka_unit_test(a_bad_byte_is_found_at_any_place_of_a_long_text),
        cmocka_unit_test(a_prefix_ends_before_a_sequence_that_is_cut),
        cmocka_unit_test(a_text_in_pieces_is_judged_as_the_whole),
        cmocka_unit_test(valid_text_is_not_copied),
        cmocka_unit_test(each_maximal_subpart_becomes_one_replacement),
        cmocka_unit_test(a_repair_that_does_not_fit_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
