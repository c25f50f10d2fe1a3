/* Profiles: what the launcher lets a session have by them, whatever a gateway asks for. */
#include "policy.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "clock.h"
#include "err.h"
#include "sandbox_fake.h"
#include "world.h"

#define MIB UINT64_C(1048576)

static struct answer a;

static struct profile small_profile(void)
{
    struct profile p = {
        .name = "small",
        .limits = LAUNCH_LIMITS_DEFAULT,
        .maxima = LAUNCH_LIMITS_DEFAULT,
        .idle_ms = PROFILE_UNSET,
        .home = PROFILE_HOME_TMPFS,
        .home_sized = 1,
        .kernels_some = 1,
        .kernels = "other",
        .times = { 0, 0, 1000 },
        .most = { 0, 0, 1000 },
    };

    p.limits.memory_bytes = 128 * MIB;
    p.maxima.memory_bytes = 256 * MIB;
    p.limits.home_bytes = p.maxima.home_bytes = 4 * MIB;
    p.limits.tmp_bytes = p.maxima.tmp_bytes = 4 * MIB;
    p.limits.shm_bytes = p.maxima.shm_bytes = 4 * MIB;
    return p;
}

static int take(struct world *w, const struct profile *p, struct err *e)
{
    autofree struct profiles *t = xcalloc(1, sizeof *t);
    autobuf struct buf text;

    buf_init(&text, PROFILES_TEXT);
    t->count = 1;
    t->at[0] = *p;
    assert_int_equal(profiles_write(t, &text, e), 0);
    return policy_take(&w->launcher, buf_view(&text), e);
}

static void take_small(struct world *w)
{
    const struct profile p = small_profile();
    struct err e = { 0 };

    if (take(w, &p, &e) < 0)
        fail_msg("%s", e.msg);
}

static uint64_t create(struct world *w, const struct launch_create *m)
{
    world_fresh(&a);
    world_call(w, LAUNCH_CREATE, m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_CREATE);
    world_close(a.fds, 2);
    return w->launcher.sessions.slot[0]->id;
}

static void a_session_gets_what_its_profile_has(void **state)
{
    struct world *w = *state;
    const struct launch_create m = { .profile = VIEW_STR("small") };

    take_small(w);
    create(w, &m);
    const struct session *s = w->launcher.sessions.slot[0];
    assert_int_equal(s->limits.memory_bytes, 128 * MIB);
    assert_int_equal(s->limits.home_bytes, 4 * MIB);
    assert_string_equal(s->profile, "small");
    assert_int_equal(fake.files.home, SANDBOX_HOME_MEMORY);
}

static void no_gateway_gets_more_than_the_maxima_of_the_profile_that_it_names(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("small"), .limits.memory_bytes = 256 * MIB };

    take_small(w);
    create(w, &m);
    assert_int_equal(w->launcher.sessions.slot[0]->limits.memory_bytes, 256 * MIB);
    m.limits.memory_bytes++;
    world_fresh(&a);
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, HC_ELIMIT, "limit memory_bytes: 268435457 is above the maximum");
}

static void a_kernelspec_that_the_profile_has_not_is_not_started(void **state)
{
    struct world *w = *state;
    const struct launch_create m = { .profile = VIEW_STR("small") };
    struct launch_start start = {
        .kernel = 1, .generation = 1, .spec_name = VIEW_STR("python3"), .argv = VIEW_STR("x\0")
    };
    int fds[7];

    take_small(w);
    start.sandbox = create(w, &m);
    unsigned n = world_start_fds(fds, 0);
    world_call(w, LAUNCH_START_KERNEL, &start, fds, n, &a);
    world_assert_error(&a, EACCES, "kernelspec 'python3' is not one of profile 'small'");
    world_close(fds, n);
}

static void no_deadline_lies_behind_the_lifetime_of_the_profile(void **state)
{
    struct world *w = *state;
    const struct launch_create m = { .profile = VIEW_STR("small") };

    take_small(w);
    const uint64_t id = create(w, &m);
    const struct session *s = w->launcher.sessions.slot[0];
    const uint64_t end = s->life_end_ms;
    assert_true(end > clock_ms());
    assert_int_equal(s->deadline_ms, end);
    const uint64_t asked[] = { 0, end + 1, end - 1 }, expected[] = { end, end, end - 1 };
    for (unsigned i = 0; i < 3; i++) {
        struct launch_deadline d = { .sandbox = id, .monotonic_ms = asked[i] };

        world_call(w, LAUNCH_DEADLINE, &d, NULL, 0, &a);
        assert_int_equal(a.head.verb, LAUNCH_DEADLINE);
        assert_int_equal(s->deadline_ms, expected[i]);
    }
}

static void assert_not_taken(struct world *w, const struct profile *p, const char *why)
{
    struct err e = { 0 };

    assert_true(take(w, p, &e) < 0);
    if (strstr(e.msg, why) == NULL)
        fail_msg("%s", e.msg);
    assert_non_null(profiles_find(w->launcher.profiles, view_cstr("small"))); /* the old table */
}

static void what_the_host_has_not_is_refused_by_profile_and_field(void **state)
{
    struct world *w = *state;
    struct profile p = small_profile();

    take_small(w);
    snprintf(p.name, sizeof p.name, "strict");
    p.isolation = ISOLATION_HARDENED;
    w->config.keeper.missing = HOSTWALL_BIT(HOSTWALL_LANDLOCK);
    assert_not_taken(w, &p, "profiles.strict.isolation: this host has no wall 'landlock'");
    p.isolation = ISOLATION_NAMESPACES;
    p.walls = HOSTWALL_BIT(HOSTWALL_LANDLOCK);
    assert_not_taken(w, &p, "profiles.strict.walls: this host has no wall 'landlock'");
    p.walls = 0;
    p.home = PROFILE_HOME_DISK;
    assert_not_taken(w, &p, "profiles.strict.home: no home can lie on this host's disk");
    p.home = PROFILE_HOME_AUTO;
    p.data_some = 1;
    snprintf(p.data, sizeof p.data, "elsewhere");
    assert_not_taken(w, &p, "profiles.strict.data: there is no data directory 'elsewhere'");
}

/* Until the end of the call the process may write no larger files. */
static int take_under(struct world *w, const struct profile *p, rlim_t file_bytes, struct err *e)
{
    struct rlimit before, r;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    r = (struct rlimit){ file_bytes, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
    int rc = take(w, p, e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    return rc;
}

static void a_limit_of_file_sizes_is_told_by_profile_and_field(void **state)
{
    struct world *w = *state;
    static const char *const words[] = {
        "profiles.other.limits.disk_mb: the limit of file sizes",
        "profiles.other.limits.tmp_mb: the limit of file sizes",
        "profiles.other.limits.shm_mb: the limit of file sizes",
    };

    take_small(w);
    for (unsigned i = 0; i < 3; i++) {
        struct profile p = small_profile();
        uint64_t *const fields[][2] = {
            { &p.limits.home_bytes, &p.maxima.home_bytes },
            { &p.limits.tmp_bytes, &p.maxima.tmp_bytes },
            { &p.limits.shm_bytes, &p.maxima.shm_bytes },
        };
        struct err e = { 0 };

        snprintf(p.name, sizeof p.name, "other");
        *fields[i][0] = *fields[i][1] = 5 * MIB;
        assert_int_equal(take_under(w, &p, 4 * MIB, &e), -EFBIG);
        if (strstr(e.msg, words[i]) == NULL)
            fail_msg("%s", e.msg);
        assert_non_null(
            profiles_find(w->launcher.profiles, view_cstr("small"))); /* the old table */
        assert_null(profiles_find(w->launcher.profiles, view_cstr("other")));
    }
    const struct profile fits = small_profile();
    struct err e = { 0 };
    assert_int_equal(take_under(w, &fits, 4 * MIB, &e), 0);
}

/* The session's end moves along, or the gateway's next word would bring the deadline back. */
static void time_that_was_lost_does_not_count_for_a_lifetime(void **state)
{
    enum { LOST = 5000 };
    struct world *w = *state;
    const struct launch_create m = { .profile = VIEW_STR("small") };

    take_small(w);
    const uint64_t id = create(w, &m);
    struct session *s = w->launcher.sessions.slot[0];
    const uint64_t end = s->life_end_ms;
    w->launcher.expected_ms = clock_ms() - LOST;
    assert_int_equal(launcher_turn(&w->launcher, 0), 1);
    assert_true(s->deadline_ms >= end + LOST);
    assert_int_equal(s->life_end_ms, s->deadline_ms);
    struct launch_deadline d = { .sandbox = id, .monotonic_ms = end + LOST };
    world_call(w, LAUNCH_DEADLINE, &d, NULL, 0, &a);
    assert_int_equal(s->deadline_ms, end + LOST);
}

/* Stopped for longer than the rest of its life: it has the same seconds as a deadline. */
static void a_lifetime_that_passed_meanwhile_has_some_seconds_more(void **state)
{
    struct world *w = *state;
    const struct launch_create m = { .profile = VIEW_STR("small") };

    take_small(w);
    create(w, &m);
    struct session *s = w->launcher.sessions.slot[0];
    const uint64_t now = clock_ms();
    s->life_end_ms = s->deadline_ms = now - 4000;
    w->launcher.expected_ms = now - 3000;
    assert_int_equal(launcher_turn(&w->launcher, 0), 1);
    assert_true(s->life_end_ms > now);
    assert_int_equal(s->life_end_ms, s->deadline_ms);
}

static void a_data_directory_of_others_is_refused(void **state)
{
    struct world *w = *state;
    struct profile p = small_profile();
    struct launch_create m = { .profile = VIEW_STR("small"), .data = VIEW_STR("first\0") };
    struct err e = { 0 };

    p.data_some = 1;
    assert_int_equal(take(w, &p, &e), 0);
    world_fresh(&a);
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, EACCES, "profile 'small' has no data directory 'first'");
    m.data = VIEW_STR("");
    m.data_all = 1; /* all that its profile has */
    create(w, &m);
    assert_int_equal(fake.files.data, 0);
}

static void the_list_tells_the_profile_and_another_table_changes_nothing_of_it(void **state)
{
    struct world *w = *state;
    const struct launch_create m = { .profile = VIEW_STR("small") };
    const struct launch_list all = { 0 };
    struct err e = { 0 };

    take_small(w);
    create(w, &m);
    assert_int_equal(policy_take(&w->launcher, view_cstr(""), &e), 0);
    world_call(w, LAUNCH_LIST, &all, NULL, 0, &a);
    const struct launch_listed *l = &a.listed;
    assert_true(view_equals(l->profile, "small"));
    assert_int_equal(l->limits.memory_bytes, 128 * MIB);
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, ENOENT, "profile");
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_session_gets_what_its_profile_has),
        T(no_gateway_gets_more_than_the_maxima_of_the_profile_that_it_names),
        T(a_kernelspec_that_the_profile_has_not_is_not_started),
        T(no_deadline_lies_behind_the_lifetime_of_the_profile),
        T(what_the_host_has_not_is_refused_by_profile_and_field),
        T(a_limit_of_file_sizes_is_told_by_profile_and_field),
        T(time_that_was_lost_does_not_count_for_a_lifetime),
        T(a_lifetime_that_passed_meanwhile_has_some_seconds_more),
        T(a_data_directory_of_others_is_refused),
        T(the_list_tells_the_profile_and_another_table_changes_nothing_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
