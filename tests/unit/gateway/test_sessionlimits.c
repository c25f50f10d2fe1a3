/* Which limits a session gets, and how they are written. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "buf.h"
#include "err.h"
#include "jsonwrite.h"
#include "limitsjson.h"
#include "sessionlimits.h"
#include "timelimits.h"

#define MIB (UINT64_C(1) << 20)

static const struct launch_limits none;

static struct launch_limits choose(const struct launch_limits *asked,
                                   const struct launch_limits *own)
{
    struct launch_limits all = LAUNCH_LIMITS_DEFAULT, ret;
    struct err e = { 0 };

    if (limits_choose(asked, own, &all, &all, &ret, &e) != 0)
        fail_msg("%s", e.msg);
    return ret;
}

static void who_asks_for_nothing_gets_what_all_have(void **state)
{
    struct launch_limits all = LAUNCH_LIMITS_DEFAULT, got = choose(&none, &none);

    (void)state;
    all.home_bytes = 0; /* which the launcher has by itself */
    assert_memory_equal(&got, &all, sizeof all);
}

static void a_principal_has_its_own(void **state)
{
    struct launch_limits own = { .memory_bytes = 512 * MIB, .pids = 20 }, got = choose(&none, &own);

    (void)state;
    assert_int_equal(got.memory_bytes, 512 * MIB);
    assert_int_equal(got.pids, 20);
    assert_int_equal(got.cpu_millis, 1000);
}

static void a_request_goes_up_to_the_maximum_of_the_profile_or_the_principals_own(void **state)
{
    const struct launch_limits all = LAUNCH_LIMITS_DEFAULT, asked = { .pids = 600 };
    struct launch_limits most = all, own = { 0 }, ret;
    struct err e = { 0 };

    (void)state;
    most.pids = 600;
    assert_int_equal(limits_choose(&none, &own, &all, &most, &ret, &e), 0);
    assert_int_equal(ret.pids, 256);
    assert_int_equal(limits_choose(&asked, &own, &all, &most, &ret, &e), 0);
    assert_int_equal(ret.pids, 600);
    most.pids = 599;
    assert_int_equal(limits_choose(&asked, &own, &all, &most, &ret, &e), -EINVAL);
    assert_string_equal(e.msg, "limits.pids: 600 is above 599, which is yours");
    own.pids = 300; /* above what the profile gives without a wish, below its maximum */
    assert_int_equal(limits_choose(&none, &own, &all, &most, &ret, &e), 0);
    assert_int_equal(ret.pids, 256);
    assert_int_equal(limits_choose(&asked, &own, &all, &most, &ret, &e), -EINVAL);
    assert_string_equal(e.msg, "limits.pids: 600 is above 300, which is yours");
    own.pids = 1000; /* a principal's limits never raise a profile's */
    assert_int_equal(limits_choose(&asked, &own, &all, &most, &ret, &e), -EINVAL);
    assert_string_equal(e.msg, "limits.pids: 600 is above 599, which is yours");
}

static void a_request_goes_downwards_only(void **state)
{
    struct launch_limits all = LAUNCH_LIMITS_DEFAULT, own = { .pids = 20 }, ret;
    struct launch_limits asked = { .memory_bytes = 2048 * MIB, .cpu_millis = 500, .pids = 20 };
    struct err e = { 0 };

    (void)state;
    ret = choose(&asked, &own);
    assert_int_equal(ret.cpu_millis, 500);
    asked.pids = 21;
    assert_int_equal(limits_choose(&asked, &own, &all, &all, &ret, &e), -EINVAL);
    assert_string_equal(e.msg, "limits.pids: 21 is above 20, which is yours");
    asked = (struct launch_limits){ .cpu_millis = 1001 };
    assert_int_equal(limits_choose(&asked, &own, &all, &all, &ret, &e), -EINVAL);
    assert_string_equal(e.msg, "limits.cpus: 1.001 is above 1, which is yours");
    asked = (struct launch_limits){ .memory_bytes = 2049 * MIB };
    assert_int_equal(limits_choose(&asked, &own, &all, &all, &ret, &e), -EINVAL);
    assert_string_equal(e.msg, "limits.memory_mb: 2049 is above 2048, which is yours");
}

static void file_systems_shrink_with_the_memory_they_are_made_of(void **state)
{
    struct launch_limits asked = { .memory_bytes = 256 * MIB }, got = choose(&asked, &none);

    (void)state;
    assert_int_equal(got.home_bytes, 0); /* if it is made of memory at all, the launcher knows */
    assert_int_equal(got.tmp_bytes, 32 * MIB);
    assert_int_equal(got.shm_bytes, 16 * MIB);
    asked.home_bytes = 100 * MIB; /* who says it means it */
    assert_int_equal(choose(&asked, &none).home_bytes, 100 * MIB);
    struct launch_limits own = { .home_bytes = 200 * MIB };
    asked = (struct launch_limits){ .memory_bytes = 2048 * MIB };
    assert_int_equal(choose(&asked, &own).home_bytes, 200 * MIB);
    assert_int_equal(choose(&asked, &none).tmp_bytes, 256 * MIB);
}

static void files_in_memory_leave_some_of_it(void **state)
{
    struct launch_limits all = LAUNCH_LIMITS_DEFAULT, ret = { 0 };
    struct launch_limits own = { .memory_bytes = 256 * MIB };
    struct err e = { 0 };

    (void)state;
    /* A principal with less memory: nobody spoke of the sizes. */
    assert_int_equal(choose(&none, &own).tmp_bytes, 32 * MIB);
    assert_int_equal(choose(&none, &own).shm_bytes, 16 * MIB);
    own.tmp_bytes = 64 * MIB; /* 64 + 128 of 256 - 64 */
    assert_int_equal(choose(&none, &own).tmp_bytes, 64 * MIB);
    assert_int_equal(choose(&none, &own).shm_bytes, 128 * MIB);
    own.tmp_bytes++;
    assert_int_equal(choose(&none, &own).shm_bytes, 16 * MIB);
    struct launch_limits asked = { .memory_bytes = 256 * MIB, .tmp_bytes = 176 * MIB };
    assert_int_equal(choose(&asked, &none).tmp_bytes, 176 * MIB);
    assert_int_equal(choose(&asked, &none).shm_bytes, 16 * MIB);
    asked.tmp_bytes = 177 * MIB;
    assert_int_equal(limits_choose(&asked, &none, &all, &all, &ret, &e), -EINVAL);
    assert_string_equal(e.msg, "limits.tmp_mb: /tmp and /dev/shm would be 193 MiB of the session's "
                               "memory, and 192 is the most of 256");
    assert_int_equal(ret.memory_bytes, 0);
    asked = (struct launch_limits){ .memory_bytes = 100 * MIB, .shm_bytes = 100 * MIB };
    assert_int_equal(limits_choose(&asked, &none, &all, &all, &ret, &e), -EINVAL);
    assert_ptr_equal(strstr(e.msg, "limits.shm_mb: "), e.msg);
}

static struct time_limits times; /* what read_json() gave */

static int read_json(const char *json, struct launch_limits *ret, struct err *e)
{
    json_t *document = json_loads(json, 0, NULL);
    int rc;

    assert_non_null(document);
    rc = limitsjson_read(document, ret, &times, e);
    json_decref(document);
    return rc;
}

static void a_bad_limit_is_named(void **state)
{
    static const struct {
        const char *json, *word;
    } rows[] = {
        { "{\"limits\": 1}", "limits must be an object" },
        { "{\"limits\": []}", "limits must be an object" },
        { "{\"limits\": {\"memory\": 1}}", "limits.memory is no limit" },
        { "{\"limits\": {\"shm_mb\": 0}}", "limits.shm_mb must be at least 1" },
        { "{\"limits\": {\"output_mb\": 0}}", "limits.output_mb must be at least 1" },
        { "{\"limits\": {\"memory_mb\": \"1\"}}", "limits.memory_mb must be a whole number" },
        { "{\"limits\": {\"memory_mb\": 100.5}}", "limits.memory_mb must be a whole number" },
        { "{\"limits\": {\"memory_mb\": true}}", "limits.memory_mb must be a whole number" },
        { "{\"limits\": {\"memory_mb\": 63}}", "limits.memory_mb must be at least 64" },
        { "{\"limits\": {\"memory_mb\": -1}}", "limits.memory_mb must be at least 64" },
        { "{\"limits\": {\"memory_mb\": 9223372036854775807}}", "limits.memory_mb is too large" },
        { "{\"limits\": {\"pids\": 4294967296}}", "limits.pids is too large" },
        { "{\"limits\": {\"pids\": 15}}", "limits.pids must be at least 16" },
        { "{\"limits\": {\"cpus\": 0}}", "limits.cpus must be at least 0.01" },
        { "{\"limits\": {\"cpus\": 1e300}}", "limits.cpus is too large" },
        { "{\"limits\": {\"cpus\": []}}", "limits.cpus must be a number" },
        { "{\"limits\": {\"cell_timeout\": \"60\"}}", "limits.cell_timeout must be a number" },
        { "{\"limits\": {\"cell_timeout\": 0}}", "limits.cell_timeout must be at least 0.1" },
        { "{\"limits\": {\"stdin_timeout\": -1}}", "limits.stdin_timeout must be at least 0.1" },
        { "{\"limits\": {\"max_lifetime\": 1e300}}", "limits.max_lifetime is too large" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct launch_limits l;
        struct err e = { 0 };
        assert_int_equal(read_json(rows[i].json, &l, &e), -EINVAL);
        if (strstr(e.msg, rows[i].word) == NULL)
            fail_msg("%s: %s", rows[i].json, e.msg);
    }
}

static void what_is_read_is_written_the_same(void **state)
{
    static const char text[] =
        "{\"memory_mb\":512,\"cpus\":0.25,\"pids\":100,\"disk_mb\":10,"
        "\"tmp_mb\":20,\"shm_mb\":5,\"inodes\":1000,\"fds\":64,\"output_mb\":7,"
        "\"cell_timeout\":60,\"stdin_timeout\":0.5}";
    struct launch_limits l;
    struct err e = { 0 };
    char json[300];
    struct buf out;

    (void)state;
    snprintf(json, sizeof json, "{\"limits\":%s}", text);
    assert_int_equal(read_json(json, &l, &e), 0);
    buf_init(&out, 1000);
    struct jsonwrite w = jsonwrite_to(&out);
    limitsjson_write(&w, &l, &times);
    assert_int_equal(jsonwrite_finish(&w, &e), 0);
    assert_true(view_equals(buf_view(&out), text));
    buf_clear(&out);
    w = jsonwrite_to(&out);
    l.cpu_millis = 10000;
    limitsjson_write(&w, &l, &times);
    assert_int_equal(jsonwrite_finish(&w, &e), 0);
    autofree char *shown = view_dup(buf_view(&out));
    assert_non_null(strstr(shown, "\"cpus\":10,"));
    buf_free(&out);
    assert_int_equal(read_json("{\"limits\": null}", &l, &e) | read_json("{}", &l, &e), 0);
    assert_memory_equal(&l, &none, sizeof l);
    assert_true(times.cell_ms == 0 && times.stdin_ms == 0 && times.life_ms == 0);
}

static void times_go_downwards_only_and_have_no_maximum_where_there_is_no_limit(void **state)
{
    const struct time_limits all = { .cell_ms = 60000 }, own = { .cell_ms = 30000 }, nobody = { 0 };
    struct time_limits asked = { .cell_ms = 30000, .life_ms = 999000 }, got;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(time_limits_choose(&nobody, &nobody, &all, &all, &got, &e), 0);
    assert_true(got.cell_ms == 60000 && got.stdin_ms == 0 && got.life_ms == 0);
    assert_int_equal(time_limits_choose(&nobody, &own, &all, &all, &got, &e), 0);
    assert_true(got.cell_ms == 30000);
    assert_int_equal(time_limits_choose(&asked, &own, &all, &all, &got, &e), 0);
    assert_true(got.cell_ms == 30000 && got.life_ms == 999000);
    asked.cell_ms = 30500;
    assert_int_equal(time_limits_choose(&asked, &own, &all, &all, &got, &e), -EINVAL);
    assert_string_equal(e.msg, "limits.cell_timeout: 30.5 is above 30, which is yours");
    assert_int_equal(time_limits_choose(&asked, &nobody, &all, &all, &got, &e), 0);
}

/* 1.001 * 1000 is below 1001 in binary. */
static void thousandths_are_rounded(void **state)
{
    struct launch_limits l;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(read_json("{\"limits\": {\"cpus\": 1.001}}", &l, &e), 0);
    assert_int_equal(l.cpu_millis, 1001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_for_nothing_gets_what_all_have),
        cmocka_unit_test(a_principal_has_its_own),
        cmocka_unit_test(a_request_goes_downwards_only),
        cmocka_unit_test(files_in_memory_leave_some_of_it),
        cmocka_unit_test(file_systems_shrink_with_the_memory_they_are_made_of),
        cmocka_unit_test(a_bad_limit_is_named),
        cmocka_unit_test(what_is_read_is_written_the_same),
        cmocka_unit_test(a_request_goes_up_to_the_maximum_of_the_profile_or_the_principals_own),
        cmocka_unit_test(thousandths_are_rounded),
        cmocka_unit_test(times_go_downwards_only_and_have_no_maximum_where_there_is_no_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
