/* Checks of readiness: named, remembered for a while, told without their reasons. */
#include "health.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "err.h"
#include "jsonwrite.h"

struct probe {
    int looks, fails;
};

static int probe(void *arg, struct err *e)
{
    struct probe *p = arg;

    p->looks++;
    return p->fails ? err_set(e, EIO, "the secret reason") : 0;
}

static void assert_told(const struct health *h, const char *expected)
{
    autobuf struct buf b;
    struct jsonwrite w;

    buf_init(&b, 1000);
    w = jsonwrite_to(&b);
    health_write(h, &w);
    assert_int_equal(jsonwrite_finish(&w, NULL), 0);
    assert_int_equal(buf_add(&b, "", 1), 0);
    assert_string_equal((const char *)buf_view(&b).p, expected);
}

static void one_failing_check_makes_unready_and_is_named_without_its_reason(void **state)
{
    struct health *h = health_new();
    struct probe good = { 0 }, bad = { .fails = 1 };

    (void)state;
    health_add(h, "good", 0, probe, &good);
    health_add(h, "bad", 0, probe, &bad);
    assert_int_equal(health_ready(h, 1), 0);
    assert_told(h, "{\"status\":\"unready\",\"checks\":{\"good\":\"ok\",\"bad\":\"failed\"}}");
    bad.fails = 0;
    assert_int_equal(health_ready(h, 2), 1);
    assert_told(h, "{\"status\":\"ready\",\"checks\":{\"good\":\"ok\",\"bad\":\"ok\"}}");
    health_free(h);
}

static void who_asks_often_causes_one_look(void **state)
{
    struct health *h = health_new();
    struct probe slow = { 0 }, fast = { 0 };

    (void)state;
    health_add(h, "slow", 1000, probe, &slow);
    health_add(h, "fast", 0, probe, &fast);
    for (uint64_t now = 5; now < 1005; now += 5)
        assert_int_equal(health_ready(h, now), 1);
    assert_int_equal(slow.looks, 1);
    assert_int_equal(fast.looks, 200);
    slow.fails = 1;
    assert_int_equal(health_ready(h, 1004), 1); /* what was seen counts until the next look */
    assert_int_equal(health_ready(h, 1005), 0);
    health_free(h);
}

static void nothing_to_check_is_ready(void **state)
{
    (void)state;
    assert_int_equal(health_ready(NULL, 1), 1);
    assert_told(NULL, "{\"status\":\"ready\",\"checks\":{}}");
}

static void a_directory_is_tried_by_writing(void **state)
{
    char name[] = "/tmp/holdcell-health-XXXXXX";
    int fd, gone = -1;
    struct err e = { 0 };

    (void)state;
    assert_non_null(mkdtemp(name));
    fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(health_directory(&fd, &e), 0);
    assert_int_equal(rmdir(name), 0); /* nothing was left in it */
    assert_true(health_directory(&fd, &e) < 0);
    assert_true(health_directory(&gone, &e) < 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_failing_check_makes_unready_and_is_named_without_its_reason),
        cmocka_unit_test(who_asks_often_causes_one_look),
        cmocka_unit_test(nothing_to_check_is_ready),
        cmocka_unit_test(a_directory_is_tried_by_writing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
