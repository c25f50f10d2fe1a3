/* The event log against a plain model: what is missing was the least missed, and
 * each missing entry and byte is counted. */
#include "eventlog.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "err.h"

static const struct eventlog_limits small = { .memory = 64 << 10,
                                              .spool = 256 << 10,
                                              .segment = 8 << 10 };

struct fixture {
    int dir_fd;
    struct spool_quota quota;
    struct eventlog *log;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    f->dir_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->dir_fd >= 0);
    f->quota.max = UINT64_MAX;
    f->log = eventlog_new(f->dir_fd, &f->quota, &small);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    f->log = eventlog_free(f->log);
    assert_int_equal(f->quota.used, 0);
    close(f->dir_fd);
    free(f);
    return 0;
}

static uint64_t add(struct eventlog *g, enum event_kind kind, const char *parent, const void *text,
                    size_t n)
{
    struct event in = {
        .kind = kind,
        .channel = JMSG_IOPUB,
        .parts = { VIEW_STR("{\"h\":1}"), view_cstr(parent), VIEW_STR("{}"), { text, n } },
    };

    return eventlog_add(g, &in);
}

static void entries_come_back_whole_and_in_order(void **state)
{
    struct fixture *f = *state;
    struct eventlog_cursor c = eventlog_end(f->log);
    struct event out;
    struct view buffers[] = { VIEW_STR("abc"), { NULL, 0 }, VIEW_STR("\0\xff") };

    assert_int_equal(eventlog_read(f->log, &c, &out), 0);
    struct event in = {
        .kind = EVENT_KEEP,
        .channel = JMSG_SHELL,
        .addressee = 7,
        .parts = { VIEW_STR("h"), VIEW_STR("pp"), VIEW_STR(""), VIEW_STR("cccc") },
        .buffers = buffers,
        .buffer_count = 3,
    };
    uint64_t first = eventlog_add(f->log, &in);
    add(f->log, EVENT_STREAM, "{}", "x", 1);

    assert_int_equal(eventlog_read(f->log, &c, &out), 1);
    assert_int_equal(out.seq, first);
    assert_int_equal(out.channel, JMSG_SHELL);
    assert_int_equal(out.addressee, 7);
    assert_true(view_equals(out.parts[0], "h") && view_equals(out.parts[1], "pp"));
    assert_int_equal(out.parts[2].n, 0);
    assert_true(view_equals(out.parts[3], "cccc"));
    assert_int_equal(out.buffer_count, 3);
    assert_true(view_equals(out.buffers[0], "abc"));
    assert_int_equal(out.buffers[1].n, 0);
    assert_memory_equal(out.buffers[2].p, "\0\xff", 2);
    assert_int_equal(eventlog_read(f->log, &c, &out), 1);
    assert_int_equal(out.seq, first + 1);
    assert_int_equal(out.kind, EVENT_STREAM);
    assert_int_equal(eventlog_read(f->log, &c, &out), 0);
}

/* A pseudo-random but fixed sequence of entries; sizes from a few bytes to more
 * than a segment. */
static uint64_t next_random(uint64_t *x)
{
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    return *x >> 33;
}

struct model {
    uint64_t keep, stream, stream_bytes;
};

static void fill(struct eventlog *g, unsigned count, uint64_t seed, struct model *m,
                 unsigned keep_of_100)
{
    static uint8_t text[40000];

    for (unsigned i = 0; i < count; i++) {
        size_t n = next_random(&seed) % 100 == 0 ? 20000 + next_random(&seed) % 20000
                                                 : 8 + next_random(&seed) % 600;
        char parent[32];
        int keep = next_random(&seed) % 100 < keep_of_100;
        snprintf(parent, sizeof parent, "{\"msg_id\":\"%u\"}", i / 50);
        memset(text, 'a' + (int)(i % 26), n);
        memcpy(text, &i, sizeof i);
        add(g, keep ? EVENT_KEEP : EVENT_STREAM, parent, text, n);
        m->keep += keep;
        m->stream += !keep;
        m->stream_bytes += keep ? 0 : n;
    }
}

static void read_all(struct eventlog *g, struct eventlog_cursor c, struct model *got, int *ret)
{
    struct event out;
    uint64_t last = 0;

    while ((*ret = eventlog_read(g, &c, &out)) == 1) {
        assert_true(out.seq > last);
        last = out.seq;
        if (out.kind == EVENT_KEEP) {
            unsigned i;
            memcpy(&i, out.parts[3].p, sizeof i);
            assert_int_equal(i, out.seq - 1);
            assert_int_equal(out.parts[3].p[out.parts[3].n - 1], 'a' + (int)(i % 26));
            got->keep++;
        } else if (out.kind == EVENT_STREAM) {
            got->stream++;
            got->stream_bytes += out.parts[3].n;
        } else {
            got->stream += out.lost.count[LOST_STREAM];
            got->stream_bytes += out.lost.bytes;
        }
    }
}

static void a_flood_loses_only_stream_text_and_counts_it(void **state)
{
    struct fixture *f = *state;
    struct model put = { 0 }, got = { 0 };
    struct eventlog_cursor start = eventlog_end(f->log);
    int rc;

    fill(f->log, 20000, 1, &put, 1);
    struct eventlog_use use = eventlog_use(f->log);
    assert_true(use.memory <= small.memory);
    assert_true(use.spool <= small.spool);
    assert_true(use.lost.count[LOST_STREAM] > 0);
    read_all(f->log, start, &got, &rc);
    assert_int_equal(rc, 0);
    assert_int_equal(got.keep, put.keep);
    assert_int_equal(got.stream, put.stream);
    assert_int_equal(got.stream_bytes, put.stream_bytes);
}

static void what_fits_the_spool_is_read_back_whole(void **state)
{
    struct fixture *f = *state;
    struct model put = { 0 }, got = { 0 };
    struct eventlog_cursor start = eventlog_end(f->log);
    int rc;

    fill(f->log, 200, 2, &put, 50);
    read_all(f->log, start, &got, &rc);
    assert_int_equal(rc, 0);
    assert_int_equal(got.keep, put.keep);
    assert_int_equal(got.stream, put.stream);
    assert_int_equal(eventlog_use(f->log).lost.count[LOST_STREAM], 0);
    assert_true(eventlog_use(f->log).spool > 0);
}

static uint64_t end_owner = 7; /* whose ends are added */

static uint64_t add_of(struct eventlog *g, enum event_kind kind, const char *parent, size_t n)
{
    static uint8_t text[300 << 10];
    struct event in = {
        .kind = kind,
        .channel = kind == EVENT_END ? JMSG_SHELL : JMSG_IOPUB,
        .addressee = kind == EVENT_END ? end_owner : 0,
        .owner = kind == EVENT_END ? end_owner : 0,
        .parts = { VIEW_STR("{\"h\":1}"), view_cstr(parent), VIEW_STR("{}"), { text, n } },
    };

    check(n <= sizeof text);
    return eventlog_add(g, &in);
}

/* Who reads: one seat, with number and cursor. */
struct reader {
    uint64_t seat, at;
    uint64_t asked; /* for each end that is looked at */
};

static int between(void *arg, uint64_t after, uint64_t to)
{
    const struct reader *r = arg;

    return r->seat != 0 && r->at > after && r->at <= to;
}

static int awaits(void *arg, uint64_t owner, uint64_t seq)
{
    struct reader *r = arg;

    r->asked++;
    return owner == r->seat && r->at <= seq;
}

static uint64_t lowest(void *arg)
{
    const struct reader *r = arg;

    return r->seat != 0 ? r->at : UINT64_MAX;
}

static void watch(struct eventlog *g, struct reader *r)
{
    const struct eventlog_readers readers = { r, between, awaits, lowest };

    eventlog_set_readers(g, &readers);
}

static void displays_that_fill_everything_leave_replies_and_are_counted(void **state)
{
    struct fixture *f = *state;
    struct eventlog_cursor c = eventlog_end(f->log);
    struct reader r = { .seat = 7, .at = c.seq };
    struct event out;
    uint64_t displays = 0, lost = 0, ends = 0, last = 0;
    int rc;

    watch(f->log, &r);
    for (int cell = 0; cell < 100; cell++) {
        char parent[32];
        snprintf(parent, sizeof parent, "{\"msg_id\":\"%d\"}", cell);
        for (int i = 0; i < 10; i++)
            add_of(f->log, EVENT_DISPLAY, parent, 9000);
        add_of(f->log, EVENT_END, parent, 100);
    }
    struct eventlog_use use = eventlog_use(f->log);
    assert_true(use.memory <= small.memory && use.spool <= small.spool);
    while ((rc = eventlog_read(f->log, &c, &out)) == 1) {
        assert_true(out.seq > last);
        last = out.seq;
        displays += out.kind == EVENT_DISPLAY;
        ends += out.kind == EVENT_END;
        if (out.kind != EVENT_MARKER)
            continue;
        assert_int_equal(out.lost.bytes, out.lost.count[LOST_DISPLAY] * 9000);
        lost += out.lost.count[LOST_DISPLAY];
    }
    assert_int_equal(rc, 0);
    assert_int_equal(ends, 100);
    assert_true(lost > 0 && displays > 0);
    assert_int_equal(displays + lost, 1000);
    assert_int_equal(use.lost.count[LOST_DISPLAY], lost);
    assert_int_equal(use.entries_given_up, 0);
}

static void what_fills_the_log_goes_and_not_what_is_small(void **state)
{
    struct fixture *f = *state;
    struct eventlog_cursor c = eventlog_end(f->log);
    struct event out;
    unsigned texts = 0;

    for (int i = 0; i < 500; i++) {
        add_of(f->log, EVENT_STREAM, "{\"msg_id\":\"text\"}", 100);
        if (i % 20 == 0)
            add_of(f->log, EVENT_DISPLAY, "{\"msg_id\":\"display\"}", 9000);
    }
    while (eventlog_read(f->log, &c, &out) == 1)
        texts += out.kind == EVENT_STREAM;
    assert_int_equal(texts, 500);
    assert_true(eventlog_use(f->log).lost.count[LOST_DISPLAY] > 0);
}

static void what_everybody_has_read_goes_before_anything_that_is_missed(void **state)
{
    struct fixture *f = *state;
    struct reader r = { .seat = 7, .at = eventlog_end(f->log).seq };
    struct event out;

    watch(f->log, &r);
    for (int i = 0; i < 20; i++)
        add_of(f->log, EVENT_DISPLAY, "{}", 9000);
    struct eventlog_cursor c = eventlog_end(f->log);
    r.at = c.seq;
    for (int i = 0; i < 20; i++)
        add_of(f->log, EVENT_STREAM, "{}", 9000);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(eventlog_read(f->log, &c, &out), 1);
        assert_int_equal(out.kind, EVENT_STREAM);
    }
    assert_int_equal(eventlog_use(f->log).lost.count[LOST_DISPLAY], 0);
}

static void long_replies_that_fill_everything_leave_their_headers(void **state)
{
    struct fixture *f = *state;
    struct eventlog_cursor c = eventlog_end(f->log);
    struct reader r = { .seat = 7, .at = c.seq };
    struct event out;
    unsigned whole = 0, cut = 0;
    int rc;

    watch(f->log, &r);
    for (int i = 0; i < 100; i++)
        add_of(f->log, EVENT_END, "{\"msg_id\":\"m\"}", 9000);
    struct eventlog_use use = eventlog_use(f->log);
    assert_true(use.memory <= small.memory && use.spool <= small.spool);
    while ((rc = eventlog_read(f->log, &c, &out)) == 1) {
        whole += out.kind == EVENT_END;
        if (out.kind != EVENT_CUT)
            continue;
        cut++;
        assert_int_equal(out.lost.bytes, 9000);
        assert_int_equal(out.addressee, 7);
        assert_true(view_equals(out.parts[0], "{\"h\":1}"));
        assert_true(view_equals(out.parts[1], "{\"msg_id\":\"m\"}"));
    }
    assert_int_equal(rc, 0);
    assert_true(cut > 0 && whole > 0);
    assert_int_equal(cut + whole, 100);
}

static void ends_that_nobody_waits_for_any_more_make_room(void **state)
{
    struct fixture *f = *state;
    struct reader r = { .seat = 7, .at = eventlog_end(f->log).seq };

    watch(f->log, &r);
    for (int i = 0; i < 300; i++)
        add_of(f->log, EVENT_END, "{}", 500);
    for (int i = 0; i < 20; i++) /* more than fits: some of these are cut */
        add_of(f->log, EVENT_END, "{}", 9000);
    assert_in_range(eventlog_use(f->log).lost.count[LOST_OTHER], 1, 19);
    r.seat = end_owner = 8; /* seat 7 is gone */
    eventlog_reader_left(f->log);
    for (int i = 0; i < 300; i++)
        add_of(f->log, EVENT_END, "{}", 500);
    end_owner = 7;
    assert_int_equal(eventlog_use(f->log).entries_given_up, 0);
}

static void a_log_full_of_awaited_replies_is_not_looked_through_for_each_one_more(void **state)
{
    struct fixture *f = *state;
    struct reader r = { .seat = 7, .at = eventlog_end(f->log).seq };

    watch(f->log, &r);
    for (int i = 0; i < 300; i++)
        add_of(f->log, EVENT_END, "{\"msg_id\":\"m\"}", 5000);
    assert_true(eventlog_use(f->log).lost.count[LOST_OTHER] > 200);
    r.asked = 0;
    for (int i = 0; i < 300; i++)
        add_of(f->log, EVENT_END, "{\"msg_id\":\"m\"}", 5000);
    /* Both levels, and what a rest is put behind: a segment of headers. */
    assert_in_range(r.asked, 1, 300 * 2 * (small.segment / 200));
}

static void readers_that_come_and_go_cost_no_look_through_the_log_for_each_entry(void **state)
{
    struct fixture *f = *state;
    struct reader r = { .seat = 7, .at = eventlog_end(f->log).seq };

    watch(f->log, &r);
    for (int i = 0; i < 1000; i++) /* more than fits */
        add_of(f->log, EVENT_END, "{}", 500);
    r.asked = 0;
    for (int i = 0; i < 1000; i++) {
        eventlog_reader_left(f->log);
        add_of(f->log, EVENT_END, "{}", 500);
    }
    /* The log holds about 500: an eighth of them comes between two looks. */
    assert_in_range(r.asked, 1, 1000 * 2 * 10);
}

static void where_the_spool_refuses_a_large_display_costs_no_reply(void **state)
{
    struct fixture *f = *state;
    struct eventlog_cursor c = eventlog_end(f->log);
    struct event out;
    unsigned ends = 0;

    f->quota.max = 0;
    for (int i = 0; i < 20; i++) {
        add_of(f->log, EVENT_DISPLAY, "{}", 200 << 10);
        add_of(f->log, EVENT_END, "{}", 100);
    }
    while (eventlog_read(f->log, &c, &out) == 1)
        ends += out.kind == EVENT_END;
    assert_int_equal(ends, 20);
}

static void short_replies_that_fill_everything_end_the_cursors_that_lag(void **state)
{
    struct fixture *f = *state;
    struct eventlog_cursor start = eventlog_end(f->log), c = start;
    struct event out;

    for (int i = 0; i < 3000; i++)
        add_of(f->log, EVENT_END, "{}", 300);
    struct eventlog_use use = eventlog_use(f->log);
    assert_true(use.memory <= small.memory && use.spool <= small.spool);
    assert_int_equal(eventlog_read(f->log, &c, &out), -HC_EGONE);
    c = eventlog_end(f->log);
    add(f->log, EVENT_KEEP, "{}", "1234", 4);
    assert_int_equal(eventlog_read(f->log, &c, &out), 1);
}

static void without_a_disk_the_log_lives_in_its_memory(void **state)
{
    struct fixture *f = *state;
    struct model put = { 0 }, got = { 0 };
    struct eventlog_cursor start = eventlog_end(f->log);
    struct rlimit was, none = { 0 };
    int rc;

    /* Every write to a file fails: as on a full disk, without filling one. */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    none.rlim_max = was.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    fill(f->log, 5000, 4, &put, 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    struct eventlog_use use = eventlog_use(f->log);
    assert_true(use.memory <= small.memory);
    assert_int_equal(use.spool, 0);
    read_all(f->log, start, &got, &rc);
    assert_true(rc == 0 || rc == -HC_EGONE);
    if (rc == 0) {
        assert_int_equal(got.keep, put.keep);
        assert_int_equal(got.stream_bytes, put.stream_bytes);
    }
}

static void the_quota_of_a_principal_bounds_all_its_logs(void **state)
{
    struct fixture *f = *state;
    struct model put = { 0 };
    struct eventlog *other = eventlog_new(f->dir_fd, &f->quota, &small);

    f->quota.max = 128 << 10;
    fill(f->log, 3000, 5, &put, 1);
    fill(other, 3000, 6, &put, 1);
    assert_true(f->quota.used <= f->quota.max);
    assert_int_equal(f->quota.used, eventlog_use(f->log).spool + eventlog_use(other).spool);
    other = eventlog_free(other);
    assert_int_equal(f->quota.used, eventlog_use(f->log).spool);
}

static void a_cursor_in_the_middle_of_dropped_text_goes_on_behind_it(void **state)
{
    struct fixture *f = *state;
    struct model put = { 0 };
    struct eventlog_cursor c = eventlog_end(f->log);
    struct event out;

    fill(f->log, 100, 7, &put, 10);
    for (int i = 0; i < 50; i++)
        assert_int_equal(eventlog_read(f->log, &c, &out), 1);
    uint64_t seen = out.seq;
    fill(f->log, 10000, 8, &put, 0);
    int rc;
    unsigned markers = 0;
    while ((rc = eventlog_read(f->log, &c, &out)) == 1) {
        assert_true(out.seq > seen);
        seen = out.seq;
        markers += out.kind == EVENT_MARKER;
    }
    assert_int_equal(rc, 0);
    assert_true(markers > 0);
}

static void markers_of_one_cell_are_one(void **state)
{
    struct fixture *f = *state;
    struct eventlog_cursor c = eventlog_end(f->log);
    struct event out;
    char text[500];
    unsigned markers = 0;

    memset(text, 'x', sizeof text);
    for (int i = 0; i < 20000; i++)
        add(f->log, EVENT_STREAM, "{\"msg_id\":\"one\"}", text, sizeof text);
    while (eventlog_read(f->log, &c, &out) == 1)
        markers += out.kind == EVENT_MARKER;
    assert_in_range(markers, 1, 3);
    assert_true(eventlog_use(f->log).segments < 100);
}

static void an_entry_larger_than_the_memory_is_spooled_at_once(void **state)
{
    struct fixture *f = *state;
    struct eventlog_cursor c = eventlog_end(f->log);
    struct event out;
    size_t n = 200 << 10;
    uint8_t *big = xcalloc(1, n);

    memset(big, 'b', n);
    add(f->log, EVENT_KEEP, "{}", "first", 5);
    add(f->log, EVENT_KEEP, "{}", big, n);
    add(f->log, EVENT_KEEP, "{}", "last", 4);
    assert_true(eventlog_use(f->log).memory <= small.memory);
    assert_int_equal(eventlog_read(f->log, &c, &out), 1);
    assert_int_equal(eventlog_read(f->log, &c, &out), 1);
    assert_int_equal(out.parts[3].n, n);
    assert_memory_equal(out.parts[3].p, big, n);
    assert_int_equal(eventlog_read(f->log, &c, &out), 1);
    assert_true(view_equals(out.parts[3], "last"));
    free(big);
}

static void where_the_spool_refuses_the_newest_entry_is_still_offered(void **state)
{
    struct fixture *f = *state;
    struct eventlog_cursor c = eventlog_end(f->log);
    struct event out;
    size_t n = 200 << 10;
    uint8_t *big = xcalloc(1, n);

    f->quota.max = 0;
    for (int i = 0; i < 3; i++) {
        uint64_t seq = add(f->log, i == 1 ? EVENT_KEEP : EVENT_STREAM, "{}", big, n);
        c.seq = seq; /* a client that read all the others */
        assert_int_equal(eventlog_read(f->log, &c, &out), 1);
        assert_int_equal(out.seq, seq);
        assert_int_equal(out.parts[3].n, n);
        assert_true(eventlog_use(f->log).memory <= small.memory + n + 4096);
    }
    free(big);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(entries_come_back_whole_and_in_order),
        TEST(a_flood_loses_only_stream_text_and_counts_it),
        TEST(what_fits_the_spool_is_read_back_whole),
        TEST(displays_that_fill_everything_leave_replies_and_are_counted),
        TEST(what_fills_the_log_goes_and_not_what_is_small),
        TEST(what_everybody_has_read_goes_before_anything_that_is_missed),
        TEST(long_replies_that_fill_everything_leave_their_headers),
        TEST(ends_that_nobody_waits_for_any_more_make_room),
        TEST(a_log_full_of_awaited_replies_is_not_looked_through_for_each_one_more),
        TEST(readers_that_come_and_go_cost_no_look_through_the_log_for_each_entry),
        TEST(where_the_spool_refuses_a_large_display_costs_no_reply),
        TEST(short_replies_that_fill_everything_end_the_cursors_that_lag),
        TEST(without_a_disk_the_log_lives_in_its_memory),
        TEST(the_quota_of_a_principal_bounds_all_its_logs),
        TEST(a_cursor_in_the_middle_of_dropped_text_goes_on_behind_it),
        TEST(markers_of_one_cell_are_one),
        TEST(an_entry_larger_than_the_memory_is_spooled_at_once),
        TEST(where_the_spool_refuses_the_newest_entry_is_still_offered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
