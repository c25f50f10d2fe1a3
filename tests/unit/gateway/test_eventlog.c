/* The event log against a plain model: nothing but stream text is ever missing,
 * and each missing byte is counted. */
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
            got->stream += out.dropped;
            got->stream_bytes += out.dropped_bytes;
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
    assert_true(use.stream_dropped > 0);
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
    assert_int_equal(eventlog_use(f->log).stream_dropped, 0);
    assert_true(eventlog_use(f->log).spool > 0);
}

static void replies_that_fill_everything_end_the_cursors_that_lag(void **state)
{
    struct fixture *f = *state;
    struct model put = { 0 }, got = { 0 };
    struct eventlog_cursor start = eventlog_end(f->log);
    int rc;

    fill(f->log, 3000, 3, &put, 100);
    struct eventlog_use use = eventlog_use(f->log);
    assert_true(use.memory <= small.memory && use.spool <= small.spool);
    read_all(f->log, start, &got, &rc);
    assert_int_equal(rc, -HC_EGONE);
    struct eventlog_cursor c = eventlog_end(f->log);
    struct event out;
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
        TEST(replies_that_fill_everything_end_the_cursors_that_lag),
        TEST(without_a_disk_the_log_lives_in_its_memory),
        TEST(the_quota_of_a_principal_bounds_all_its_logs),
        TEST(a_cursor_in_the_middle_of_dropped_text_goes_on_behind_it),
        TEST(markers_of_one_cell_are_one),
        TEST(an_entry_larger_than_the_memory_is_spooled_at_once),
        TEST(where_the_spool_refuses_the_newest_entry_is_still_offered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
