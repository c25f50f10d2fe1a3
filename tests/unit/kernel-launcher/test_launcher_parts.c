/* The small parts of the launcher: limits, kernelspecs, log texts, the table. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "err.h"
#include "kernelspec.h"
#include "launcher_options.h"
#include "limit.h"
#include "session.h"
#include "session_limits.h"

/* ---- limits ---- */

static const struct launch_limits defaults = { 1000, 100, 50, 10, 6, 7, 8, 9, 10 };

static void no_wish_means_the_default(void **state)
{
    (void)state;
    struct launch_limits wanted = { 0 }, got;

    assert_int_equal(session_limits_choose(&wanted, &defaults, &defaults, &got, NULL), 0);
    assert_memory_equal(&got, &defaults, sizeof got);
}

static void every_limit_has_a_maximum_and_a_name(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LIMITS; i++) {
        const struct limit *l = &limit_rows[i];
        struct launch_limits wanted = { 0 }, got = { 0 };
        struct err e = { 0 };

        limit_set(&wanted, l, limit_get(&defaults, l) + 1);
        assert_int_equal(session_limits_choose(&wanted, &defaults, &defaults, &got, &e),
                         -HC_ELIMIT);
        assert_non_null(strstr(e.msg, l->member));
        assert_int_equal(got.memory_bytes, 0); /* untouched */
    }
}

static void every_limit_has_a_minimum(void **state)
{
    (void)state;
    struct launch_limits maxima = { 0 };

    for (unsigned i = 0; i < LIMITS; i++)
        limit_set(&maxima, &limit_rows[i], limit_rows[i].most);
    for (unsigned i = 0; i < LIMITS; i++) {
        const struct limit *l = &limit_rows[i];
        struct launch_limits wanted = { 0 }, got = { 0 };
        struct err e = { 0 };

        limit_set(&wanted, l, l->least);
        assert_int_equal(session_limits_choose(&wanted, &defaults, &maxima, &got, &e), 0);
        assert_int_equal(limit_get(&got, l), l->least);
        if (l->least == 1) /* less is none: the default */
            continue;
        limit_set(&wanted, l, l->least - 1);
        got.memory_bytes = 0;
        assert_int_equal(session_limits_choose(&wanted, &defaults, &maxima, &got, &e), -HC_ELIMIT);
        assert_non_null(strstr(e.msg, l->member));
        assert_non_null(strstr(e.msg, "minimum"));
        assert_int_equal(got.memory_bytes, 0);
    }
}

static void a_maximum_never_lies_below_its_default(void **state)
{
    (void)state;
    struct launch_limits maxima = { .memory_bytes = 5000, .pids = 1 };

    session_limits_cover(&maxima, &defaults);
    assert_int_equal(maxima.memory_bytes, 5000);
    assert_int_equal(maxima.pids, defaults.pids);
    assert_int_equal(maxima.home_bytes, defaults.home_bytes);
}

/* ---- kernelspecs ---- */

static void make(const char *dir, const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void link_to(const char *target, const char *dir, const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(symlink(target, path), 0);
}

static void a_kernelspec_lies_beneath_its_directory(void **state)
{
    (void)state;
    char one[] = "/tmp/holdcell-unit-XXXXXX", two[] = "/tmp/holdcell-unit-XXXXXX", path[128];
    char command[256];
    int fd = -1;

    assert_non_null(mkdtemp(one));
    assert_non_null(mkdtemp(two));
    make(one, "kernels");
    make(one, "kernels/plain");
    make(one, "elsewhere");
    make(two, "kernels");
    make(two, "kernels/second");
    link_to("../elsewhere", one, "kernels/inside");
    link_to("/etc", one, "kernels/absolute");
    link_to("../../../etc", one, "kernels/outside");
    link_to("/proc/self/root", one, "kernels/magic");
    snprintf(path, sizeof path, "%s:%s", one, two);

    static const struct {
        unsigned dir;
        const char *name;
        int expected;
    } rows[] = {
        { 0, "plain", 0 },         { 1, "second", 0 },       { 0, "second", -ENOENT },
        { 2, "plain", -ENOENT },   { 0, "inside", 0 },       { 0, "absolute", -EXDEV },
        { 0, "outside", -EXDEV },  { 0, "..", -EINVAL },     { 0, ".", -EINVAL },
        { 0, "a/b", -EINVAL },     { 0, "", -EINVAL },       { 0, "missing", -ENOENT },
        { 0, "..plain", -ENOENT }, { 0, "pl ain", -EINVAL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int rc = kernelspec_open(path, rows[i].dir, rows[i].name, &fd, NULL);

        if (rc != rows[i].expected)
            fail_msg("%u '%s': %d", rows[i].dir, rows[i].name, rc);
        if (rc == 0)
            close(fd);
    }
    assert_true(kernelspec_open(path, 0, "magic", &fd, NULL) < 0);
    snprintf(command, sizeof command, "rm -r %s %s", one, two);
    assert_int_equal(system(command), 0);
}

/* ---- the table ---- */

static void an_index_is_free_again_after_its_session(void **state)
{
    (void)state;
    struct sessions t;

    sessions_init(&t, 2);
    struct session *a = sessions_add(&t), *b = sessions_add(&t);
    assert_int_equal(a->index, 0);
    assert_int_equal(b->index, 1);
    assert_true(a->id != 0 && b->id != 0 && a->id != b->id);
    assert_null(sessions_add(&t));
    uint64_t old = a->id;
    sessions_remove(&t, a);
    assert_null(sessions_find(&t, old));
    a = sessions_add(&t);
    assert_int_equal(a->index, 0);
    assert_true(a->id != old);
    sessions_free(&t);
}

static void leaves_and_stops_are_bounded(void **state)
{
    (void)state;
    struct sessions t;
    struct stops stops = { 0 };

    sessions_init(&t, 1);
    struct session *s = sessions_add(&t);
    for (unsigned i = 0; i < SESSION_LEAVES_MAX; i++)
        assert_non_null(session_leaf_add(s, 1, i + 1, 0));
    assert_null(session_leaf_add(s, 2, 1, 0));
    assert_non_null(session_leaf_add(s, 1, 1, 0)); /* is there already */
    session_leaf_remove(s, session_leaf(s, 1, 3));
    assert_null(session_leaf(s, 1, 3));
    assert_non_null(session_leaf(s, 1, SESSION_LEAVES_MAX));
    assert_non_null(session_leaf_add(s, 2, 1, 0));
    for (unsigned i = 0; i < SESSION_STOPS_MAX; i++)
        assert_int_equal(stops_add(&stops, i + 1), 0);
    assert_int_equal(stops_add(&stops, 99), -HC_ELIMIT);
    sessions_free(&t);
}

/* ---- options ---- */

static void options_that_are_missing_or_wrong_are_named(void **state)
{
    (void)state;
    struct launcher_options o;
    struct err e = { 0 };
    char name[] = "l", init[] = "--init=/i", runtime[] = "--runtime=/r", slot[] = "--slot=512";
    char sweep[] = "--sweep", memory[] = "--memory-mb=7";
    char *none[] = { name, NULL };
    char *wrong[] = { name, init, runtime, slot, NULL };
    char *lacks[] = { name, init, runtime, NULL };
    char *sweeps[] = { name, init, runtime, sweep, memory, NULL };
    struct launch_limits limits = defaults;

    assert_int_equal(launcher_options_read(1, none, &o, &e), -EINVAL);
    assert_non_null(strstr(e.msg, "--init"));
    assert_int_equal(launcher_options_read(4, wrong, &o, &e), -EINVAL);
    assert_non_null(strstr(e.msg, "--slot"));
    assert_int_equal(launcher_options_read(3, lacks, &o, &e), -EINVAL);
    assert_non_null(strstr(e.msg, "--gateway"));
    assert_int_equal(launcher_options_read(5, sweeps, &o, &e), 0);
    launcher_options_limits(o.defaults, &limits);
    assert_int_equal(limits.memory_bytes, 7 << 20);
    assert_int_equal(limits.pids, defaults.pids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_wish_means_the_default),
        cmocka_unit_test(every_limit_has_a_maximum_and_a_name),
        cmocka_unit_test(every_limit_has_a_minimum),
        cmocka_unit_test(a_maximum_never_lies_below_its_default),
        cmocka_unit_test(a_kernelspec_lies_beneath_its_directory),
        cmocka_unit_test(an_index_is_free_again_after_its_session),
        cmocka_unit_test(leaves_and_stops_are_bounded),
        cmocka_unit_test(options_that_are_missing_or_wrong_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
