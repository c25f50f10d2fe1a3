/* The file of --profiles: what it may say, and where an error says it is. */
#include "profilefile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"

#define MIB (UINT64_C(1) << 20)

static const struct profilefile_base base = {
    .limits = LAUNCH_LIMITS_DEFAULT,
    .times = { .cell_ms = 60000 },
    .data = "weather,prices",
};

static struct profiles *read_text(const char *text)
{
    struct profiles *t = NULL;
    struct err e = { 0 };

    if (profilefile_read(view_cstr(text), &base, &t, &e) < 0)
        fail_msg("%s", e.msg);
    return t;
}

static void everything_that_a_profile_may_say_is_taken(void **state)
{
    autofree struct profiles *t = read_text(
        "{\"note\": \"x\", \"profiles\": {\"small\": {\"note\": \"n\","
        " \"limits\": {\"memory_mb\": 256, \"cpus\": 0.5, \"pids\": 32, \"disk_mb\": 8, "
        "\"tmp_mb\": 7,"
        "  \"shm_mb\": 6, \"inodes\": 100, \"fds\": 128, \"output_mb\": 5, \"cell_timeout\": 2.5,"
        "  \"stdin_timeout\": 3, \"max_lifetime\": 4, \"cull_idle_timeout\": 5},"
        " \"maxima\": {\"memory_mb\": 512, \"cpus\": 2, \"max_lifetime\": 40},"
        " \"home\": \"tmpfs\", \"data\": [\"prices\"], \"kernels\": [\"python3\", \"r\"],"
        " \"isolation\": \"hardened\", \"walls\": [\"landlock\"]}}}");
    const struct profile *p = &t->at[0];

    (void)state;
    assert_int_equal(t->count, 1);
    assert_string_equal(p->name, "small");
    assert_int_equal(p->limits.memory_bytes, 256 * MIB);
    assert_int_equal(p->maxima.memory_bytes, 512 * MIB);
    assert_int_equal(p->limits.cpu_millis, 500);
    assert_int_equal(p->maxima.cpu_millis, 2000);
    assert_int_equal(p->limits.pids, 32);
    assert_int_equal(p->maxima.pids, 32);
    assert_int_equal(p->limits.home_bytes, 8 * MIB);
    assert_int_equal(p->limits.tmp_bytes, 7 * MIB);
    assert_int_equal(p->limits.shm_bytes, 6 * MIB);
    assert_int_equal(p->limits.inodes, 100);
    assert_int_equal(p->limits.nofile, 128);
    assert_int_equal(p->limits.output_bytes, 5 * MIB);
    assert_int_equal(p->times[PROFILE_CELL], 2500);
    assert_int_equal(p->most[PROFILE_CELL], 2500);
    assert_int_equal(p->times[PROFILE_STDIN], 3000);
    assert_int_equal(p->times[PROFILE_LIFE], 4000);
    assert_int_equal(p->most[PROFILE_LIFE], 40000);
    assert_int_equal(p->idle_ms, 5000);
    assert_int_equal(p->home, PROFILE_HOME_TMPFS);
    assert_int_equal(p->home_sized, 1);
    assert_string_equal(p->data, "prices");
    assert_string_equal(p->kernels, "python3,r");
    assert_int_equal(p->isolation, ISOLATION_HARDENED);
    assert_int_equal(p->walls, HOSTWALL_BIT(HOSTWALL_LANDLOCK));
}

static void what_a_profile_leaves_open_it_has_from_the_server(void **state)
{
    autofree struct profiles *t =
        read_text("{\"profiles\": {\"a\": {}, \"b\": {\"limits\": {\"memory_mb\": 128}},"
                  " \"c\": {\"maxima\": {\"stdin_timeout\": 9}}, \"d\": {\"home\": \"tmpfs\"}}}");

    (void)state;
    assert_memory_equal(&t->at[0].limits, &base.limits, sizeof base.limits);
    assert_memory_equal(&t->at[0].maxima, &base.limits, sizeof base.limits);
    assert_int_equal(t->at[0].times[PROFILE_CELL], 60000);
    assert_int_equal(t->at[0].idle_ms, PROFILE_UNSET);
    assert_int_equal(t->at[0].data_some, 0);
    assert_int_equal(t->at[0].kernels_some, 0);
    assert_int_equal(t->at[1].limits.tmp_bytes, 16 * MIB); /* an eighth of the memory */
    assert_int_equal(t->at[1].limits.shm_bytes, 8 * MIB);
    assert_int_equal(t->at[1].maxima.tmp_bytes, 16 * MIB);
    assert_int_equal(t->at[2].times[PROFILE_STDIN], 9000); /* no session without one */
    assert_int_equal(t->at[3].limits.home_bytes, LAUNCH_HOME_MEMORY_DEFAULT);
    assert_int_equal(t->at[3].home_sized, 0);
}

#define P(text) "{\"profiles\": {\"p\": {" text "}}}"

static const struct {
    const char *text, *error;
} bad[] = {
    { "", "this is no JSON" },
    { "[]", "has to be a JSON object" },
    { "{", "line 1, column 1: this is no JSON" },
    { "{}", "profiles: is missing" },
    { "{\"profiles\": {}}", "profiles: there have to be 1 to 32" },
    { "{\"profiles\": []}", "profiles: has to be an object" },
    { "{\"profile\": {}}", "profile: there is no field" },
    { "{\"note\": 1, \"profiles\": {\"a\": {}}}", "note: has to be text" },
    { "{\"profiles\": {\"a\": {}, \"a\": {}}}", "a name is there twice" },
    { "{\"profiles\": {\"default\": {}}}", "profiles.default: this one is made by the options" },
    { "{\"profiles\": {\"../a\": {}}}", "profiles: a name has to be" },
    { "{\"profiles\": {\"\": {}}}", "profiles: a name has to be" },
    { "{\"profiles\": {\"a b\": {}}}", "and not (not shown)" },
    { "{\"profiles\": {\"a\": 1}}", "profiles.a: has to be an object" },
    { P("\"x\": 1"), "profiles.p.x: there is no field with this name" },
    { P("\"limits\": 1"), "profiles.p.limits: has to be an object" },
    { P("\"limits\": {\"memory\": 1}"), "profiles.p.limits.memory: there is no such limit" },
    { P("\"limits\": {\"memory_mb\": \"1\"}"),
      "profiles.p.limits.memory_mb: has to be a whole number from 64" },
    { P("\"limits\": {\"memory_mb\": 64.5}"),
      "profiles.p.limits.memory_mb: has to be a whole number" },
    { P("\"limits\": {\"memory_mb\": 63}"), "profiles.p.limits.memory_mb: has to be" },
    { P("\"limits\": {\"memory_mb\": 16777217}"), "profiles.p.limits.memory_mb: has to be" },
    { P("\"limits\": {\"memory_mb\": -1}"), "profiles.p.limits.memory_mb: has to be" },
    { P("\"limits\": {\"memory_mb\": null}"), "profiles.p.limits.memory_mb: has to be" },
    { P("\"limits\": {\"cpus\": 0.001}"), "profiles.p.limits.cpus: has to be a number from 0.01" },
    { P("\"limits\": {\"pids\": 15}"), "profiles.p.limits.pids: has to be" },
    { P("\"limits\": {\"pids\": 20, \"pids\": 20}"), "a name is there twice" },
    { P("\"limits\": {\"fds\": 1048577}"), "profiles.p.limits.fds: has to be" },
    { P("\"limits\": {\"cell_timeout\": 0}"),
      "profiles.p.limits.cell_timeout: has to be a number of seconds" },
    { P("\"limits\": {\"cull_idle_timeout\": 0}"),
      "profiles.p.limits.cull_idle_timeout: has to be" },
    { P("\"maxima\": {\"cull_idle_timeout\": 1}"),
      "profiles.p.maxima.cull_idle_timeout: there is no such" },
    { P("\"limits\": {\"memory_mb\": 512}, \"maxima\": {\"memory_mb\": 511}"),
      "profiles.p.limits.memory_mb: 512 is above the profile's maximum, 511" },
    { P("\"maxima\": {\"cpus\": 0.5}"),
      "profiles.p.maxima.cpus: 0.5 is below what sessions get without a wish, 1" },
    { P("\"maxima\": {\"pids\": 0}"), "profiles.p.maxima.pids: has to be" },
    { P("\"limits\": {\"max_lifetime\": 9}, \"maxima\": {\"max_lifetime\": 8}"),
      "profiles.p.limits.max_lifetime: 9 is above the profile's maximum, 8" },
    { P("\"maxima\": {\"cell_timeout\": 59}"),
      "profiles.p.maxima.cell_timeout: 60 is what sessions get, above the maximum, 59" },
    { P("\"limits\": {\"memory_mb\": 64, \"tmp_mb\": 64}"),
      "profiles.p.limits.tmp_mb: file systems in" },
    { P("\"limits\": {\"memory_mb\": 64, \"shm_mb\": 64}"),
      "profiles.p.limits.shm_mb: file systems in" },
    { P("\"home\": \"tmpfs\", \"limits\": {\"memory_mb\": 64, \"disk_mb\": 64}"),
      "profiles.p.limits.disk_mb: file systems in" },
    { P("\"home\": \"ram\""), "profiles.p.home: has to be" },
    { P("\"home\": \"tmpfs\\u0000\""), "profiles.p.home: has to be" },
    { P("\"data\": \"weather\""), "profiles.p.data: has to be a list" },
    { P("\"data\": [\"news\"]"), "profiles.p.data: the server has no 'news'" },
    { P("\"data\": [\"weather\", \"weather\"]"), "profiles.p.data: number 2 is there twice" },
    { P("\"data\": [\"../x\"]"), "profiles.p.data: number 1 is no name" },
    { P("\"kernels\": []"), "profiles.p.kernels: has to be a list of 1 to 16" },
    { P("\"kernels\": [\"a b\"]"), "profiles.p.kernels: number 1 is no name" },
    { P("\"kernels\": [\"a\", \"a\"]"), "profiles.p.kernels: number 2 is there twice" },
    { P("\"isolation\": \"oci\""), "profiles.p.isolation: has to be" },
    { P("\"isolation\": 2"), "profiles.p.isolation: has to be" },
    { P("\"walls\": [\"moat\"]"), "profiles.p.walls: number 1 is no wall" },
    { P("\"walls\": [\"swap\"]"), "profiles.p.walls: 'swap' can be demanded by nobody" },
    { P("\"walls\": [\"landlock\", \"landlock\"]"), "profiles.p.walls: number 2 is there twice" },
    { P("\"note\": {}"), "profiles.p.note: has to be text" },
    { P("") "x", "this is no JSON" },
};

static void a_bad_file_is_refused_with_the_path_of_the_field(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct profiles *t = NULL;
        struct err e = { 0 };

        assert_int_equal(profilefile_read(view_cstr(bad[i].text), &base, &t, &e), -EINVAL);
        assert_null(t);
        if (strstr(e.msg, bad[i].error) == NULL)
            fail_msg("%s: %s", bad[i].text, e.msg);
    }
}

static void more_profiles_than_there_may_be_are_refused(void **state)
{
    autobuf struct buf text;

    (void)state;
    buf_init(&text, 1 << 16);
    assert_int_equal(buf_add_str(&text, "{\"profiles\": {\"p0\": {}"), 0);
    for (int i = 1; i < PROFILES_MAX; i++)
        assert_int_equal(buf_addf(&text, ", \"p%d\": {}", i), 0);
    struct profiles *t = NULL;
    struct err e = { 0 };
    autofree char *most = view_dup(buf_view(&text));
    char all[4096];
    snprintf(all, sizeof all, "%s}}", most);
    assert_int_equal(profilefile_read(view_cstr(all), &base, &t, &e), 0);
    assert_int_equal(t->count, PROFILES_MAX);
    free(t);
    t = NULL;
    snprintf(all, sizeof all, "%s, \"more\": {}}}", most);
    assert_int_equal(profilefile_read(view_cstr(all), &base, &t, &e), -EINVAL);
    assert_non_null(strstr(e.msg, "1 to 32"));
}

static void a_file_that_is_too_large_is_refused(void **state)
{
    autofree char *text = xcalloc(1, PROFILES_FILE + 2);
    struct profiles *t = NULL;
    struct err e = { 0 };

    (void)state;
    memset(text, ' ', PROFILES_FILE + 1);
    assert_int_equal(profilefile_read(view_cstr(text), &base, &t, &e), -EINVAL);
    assert_non_null(strstr(e.msg, "more than 262144 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_that_a_profile_may_say_is_taken),
        cmocka_unit_test(what_a_profile_leaves_open_it_has_from_the_server),
        cmocka_unit_test(a_bad_file_is_refused_with_the_path_of_the_field),
        cmocka_unit_test(more_profiles_than_there_may_be_are_refused),
        cmocka_unit_test(a_file_that_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
