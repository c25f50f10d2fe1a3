/* What is given up of the entries of a log, in which order, and what is left in its place. */
#include "eventlog_sift.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"

static uint8_t in[1 << 16], out[1 << 16];
static size_t in_len;

static int setup(void **state)
{
    (void)state;
    in_len = 0;
    return 0;
}

static void put(enum event_kind kind, uint64_t seq, uint64_t owner, const char *parent, size_t n)
{
    size_t size = sizeof(struct record) + strlen(parent) + n;
    struct record r = {
        .size = (uint32_t)((size + 7) & ~(size_t)7),
        .kind = (uint8_t)kind,
        .channel = owner != 0 ? JMSG_SHELL : JMSG_IOPUB,
        .seq = seq,
        .addressee = owner,
        .owner = kind == EVENT_END ? owner : 0,
        .part = { 0, (uint32_t)strlen(parent), 0, (uint32_t)n },
    };

    check(in_len + r.size <= sizeof in);
    memset(in + in_len, 0, r.size);
    memcpy(in + in_len, &r, sizeof r);
    memcpy(in + in_len + sizeof r, parent, strlen(parent));
    in_len += r.size;
}

static struct sift sifted(enum sift_level level, const struct eventlog_readers *readers)
{
    struct sift s;

    sift_begin(&s, level, readers, out);
    sift_add(&s, in, in_len);
    assert_true(s.len <= in_len);
    return s;
}

/* The i-th record that is left. */
static struct record left(const struct sift *s, unsigned i)
{
    struct record r = { 0 };
    size_t at = 0;

    do {
        assert_true(at < s->len);
        memcpy(&r, s->out + at, sizeof r);
        at += r.size;
    } while (i-- > 0);
    return r;
}

static unsigned count(const struct sift *s)
{
    unsigned n = 0;

    for (size_t at = 0; at < s->len; n++) {
        struct record r;
        memcpy(&r, s->out + at, sizeof r);
        at += r.size;
    }
    return n;
}

static void fill_one_of_each(void)
{
    put(EVENT_STREAM, 1, 0, "p", 10);
    put(EVENT_DISPLAY, 2, 0, "p", 20);
    put(EVENT_KEEP, 3, 0, "p", 30);
    put(EVENT_END, 4, 7, "p", 40);
}

static void each_level_takes_its_own(void **state)
{
    (void)state;
    fill_one_of_each();
    struct sift s = sifted(SIFT_STREAM, NULL);
    assert_int_equal(left(&s, 0).kind, EVENT_MARKER);
    assert_int_equal(left(&s, 1).kind, EVENT_DISPLAY);
    assert_int_equal(s.lost.count[LOST_STREAM], 1);
    assert_int_equal(s.lost.bytes, 10);
    s = sifted(SIFT_DISPLAY, NULL);
    assert_int_equal(left(&s, 0).kind, EVENT_STREAM);
    assert_int_equal(left(&s, 1).kind, EVENT_MARKER);
    assert_int_equal(left(&s, 2).kind, EVENT_KEEP);
    s = sifted(SIFT_KEEP, NULL);
    assert_int_equal(count(&s), 2);
    assert_int_equal(left(&s, 0).kind, EVENT_MARKER);
    assert_int_equal(left(&s, 0).lost.count[LOST_STREAM], 1);
    assert_int_equal(left(&s, 0).lost.count[LOST_DISPLAY], 1);
    assert_int_equal(left(&s, 0).lost.count[LOST_OTHER], 1);
    assert_int_equal(left(&s, 0).lost.bytes, 60);
    assert_int_equal(left(&s, 1).kind, EVENT_END);
}

static void the_bulk_that_holds_more_room_goes_first(void **state)
{
    (void)state;
    const uint64_t text[EVENT_BULKS] = { [EVENT_STREAM] = 5, [EVENT_DISPLAY] = 4 };
    const uint64_t displays[EVENT_BULKS] = { [EVENT_STREAM] = 4, [EVENT_DISPLAY] = 5 };

    assert_int_equal(sift_order(text, 0), SIFT_STREAM);
    assert_int_equal(sift_order(text, 1), SIFT_DISPLAY);
    assert_int_equal(sift_order(displays, 0), SIFT_DISPLAY);
    assert_int_equal(sift_order(displays, 1), SIFT_STREAM);
    assert_int_equal(sift_order(displays, 2), SIFT_KEEP);
    assert_int_equal(sift_order(displays, 3), SIFT_CUT);
}

static void two_cells_at_once_have_one_marker_each(void **state)
{
    (void)state;
    for (uint64_t seq = 1; seq <= 20; seq++)
        put(EVENT_STREAM, seq, 0, seq % 2 ? "odd" : "even", 100);
    struct sift s = sifted(SIFT_STREAM, NULL);
    assert_int_equal(count(&s), 2);
    assert_int_equal(left(&s, 0).seq, 19);
    assert_int_equal(left(&s, 1).seq, 20);
    assert_int_equal(left(&s, 0).lost.count[LOST_STREAM], 10);
    assert_int_equal(left(&s, 1).lost.bytes, 1000);
}

static void a_marker_stays_on_its_side_of_what_stays(void **state)
{
    (void)state;
    put(EVENT_STREAM, 1, 0, "p", 10);
    put(EVENT_KEEP, 2, 0, "p", 10);
    put(EVENT_STREAM, 3, 0, "p", 10);
    struct sift s = sifted(SIFT_STREAM, NULL);
    assert_int_equal(count(&s), 3);
    assert_int_equal(left(&s, 0).kind, EVENT_MARKER);
    assert_int_equal(left(&s, 1).kind, EVENT_KEEP);
    assert_int_equal(left(&s, 2).kind, EVENT_MARKER);
}

struct reader {
    uint64_t seat, at;
};

static int between(void *arg, uint64_t after, uint64_t to)
{
    const struct reader *r = arg;

    return r->at > after && r->at <= to;
}

static int awaits(void *arg, uint64_t owner, uint64_t seq)
{
    const struct reader *r = arg;

    return owner == r->seat && r->at <= seq;
}

static void what_a_reader_has_is_not_counted_with_what_he_missed(void **state)
{
    (void)state;
    struct reader r = { 7, 6 };
    const struct eventlog_readers readers = { .arg = &r, .between = between, .awaits = awaits };

    for (uint64_t seq = 1; seq <= 10; seq++)
        put(EVENT_STREAM, seq, 0, "p", 100);
    struct sift s = sifted(SIFT_STREAM, &readers);
    assert_int_equal(count(&s), 2);
    assert_int_equal(left(&s, 0).seq, 5);
    assert_int_equal(left(&s, 0).lost.count[LOST_STREAM], 5);
    assert_int_equal(left(&s, 1).seq, 10);
    assert_int_equal(left(&s, 1).lost.count[LOST_STREAM], 5);
}

static void an_end_stays_while_its_seat_waits_for_it_and_leaves_nothing_for_nobody(void **state)
{
    (void)state;
    struct reader r = { 7, 2 };
    const struct eventlog_readers readers = { .arg = &r, .between = between, .awaits = awaits };

    put(EVENT_END, 1, 7, "given", 10);
    put(EVENT_END, 2, 7, "awaited", 10);
    put(EVENT_END, 3, 8, "gone", 10);
    struct sift s = sifted(SIFT_KEEP, &readers);
    assert_int_equal(count(&s), 1);
    assert_int_equal(left(&s, 0).seq, 2);
    assert_int_equal(s.lost.count[LOST_OTHER], 2);
    s = sifted(SIFT_DISPLAY, &readers);
    assert_int_equal(count(&s), 3);
}

static void of_a_long_reply_the_headers_are_left(void **state)
{
    (void)state;
    put(EVENT_END, 1, 7, "parent", 5000);
    put(EVENT_END, 2, 7, "parent", 100);
    struct sift s = sifted(SIFT_CUT, NULL);
    assert_int_equal(left(&s, 0).kind, EVENT_CUT);
    assert_int_equal(left(&s, 0).addressee, 7);
    assert_int_equal(left(&s, 0).part[1], 6);
    assert_int_equal(left(&s, 0).part[3], 0);
    assert_int_equal(left(&s, 0).lost.bytes, 5000);
    assert_memory_equal(s.out + sizeof(struct record), "parent", 6);
    assert_int_equal(left(&s, 1).kind, EVENT_END);
    /* It is cut once. */
    uint8_t once[1 << 14];
    memcpy(once, out, s.len);
    in_len = s.len;
    memcpy(in, once, s.len);
    s = sifted(SIFT_CUT, NULL);
    assert_int_equal(s.lost.count[LOST_OTHER], 0);
    assert_int_equal(s.len, in_len);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_level_takes_its_own),
        TEST(the_bulk_that_holds_more_room_goes_first),
        TEST(two_cells_at_once_have_one_marker_each),
        TEST(a_marker_stays_on_its_side_of_what_stays),
        TEST(what_a_reader_has_is_not_counted_with_what_he_missed),
        TEST(an_end_stays_while_its_seat_waits_for_it_and_leaves_nothing_for_nobody),
        TEST(of_a_long_reply_the_headers_are_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
