/* The table of profiles: what the writer makes the reader takes, and nothing else. */
#include "sessionprofile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "limit.h"

static void fill(struct profile *p, const char *name)
{
    *p = (struct profile){
        .limits = LAUNCH_LIMITS_DEFAULT,
        .maxima = LAUNCH_LIMITS_DEFAULT,
        .times = { 1000, 0, 5000 },
        .most = { 2000, 0, 5000 },
        .idle_ms = PROFILE_UNSET,
        .home = PROFILE_HOME_TMPFS,
        .data_some = 1,
        .kernels_some = 1,
        .data = "a,b",
        .kernels = "python3,other",
        .isolation = ISOLATION_HARDENED,
        .walls = HOSTWALL_BIT(HOSTWALL_LANDLOCK),
    };
    p->maxima.memory_bytes *= 2;
    snprintf(p->name, sizeof p->name, "%s", name);
}

static char *text_of(const struct profiles *t)
{
    autobuf struct buf out;
    struct err e = { 0 };

    buf_init(&out, PROFILES_TEXT);
    assert_int_equal(profiles_write(t, &out, &e), 0);
    return view_dup(buf_view(&out));
}

static void a_table_comes_back_as_it_was(void **state)
{
    autofree struct profiles *t = xcalloc(1, sizeof *t);
    autofree struct profiles *back = NULL;
    struct err e = { 0 };

    (void)state;
    fill(&t->at[0], "small");
    fill(&t->at[1], "large");
    t->at[1].idle_ms = 7;
    t->at[1].data_some = t->at[1].kernels_some = 0;
    t->at[1].data[0] = t->at[1].kernels[0] = '\0';
    t->count = 2;
    autofree char *text = text_of(t);
    assert_int_equal(profiles_read(view_cstr(text), &back, &e), 0);
    assert_int_equal(back->count, 2);
    autofree char *again = text_of(back);
    assert_string_equal(text, again);
    assert_memory_equal(&back->at[0].maxima, &t->at[0].maxima, sizeof t->at[0].maxima);
    assert_string_equal(back->at[0].kernels, "python3,other");
    assert_int_equal(back->at[1].idle_ms, 7);
    assert_ptr_equal(profiles_find(back, view_cstr("large")), &back->at[1]);
    assert_null(profiles_find(back, view_cstr("larg")));
    assert_null(profiles_find(NULL, view_cstr("large")));
}

static void no_text_is_no_table(void **state)
{
    struct profiles *t = (struct profiles *)1;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(profiles_read(view_cstr(""), &t, &e), 0);
    assert_null(t);
}

static void assert_refused(const char *from, const char *to)
{
    autofree struct profiles *t = xcalloc(1, sizeof *t);
    struct profiles *got = NULL;
    struct err e = { 0 };

    fill(&t->at[0], "small");
    t->count = 1;
    autofree char *text = text_of(t);
    char *at = strstr(text, from);
    char changed[4096];
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    if (profiles_read(view_cstr(changed), &got, &e) == 0)
        fail_msg("%s for %s was taken", to, from);
    assert_null(got);
}

/* It comes from a process without power; whatever that says, nobody gets more than a row allows. */
static void what_the_writer_does_not_make_is_refused(void **state)
{
    static const char *const changes[][2] = {
        { "small", "" },
        { "small", "default" },
        { "small", "a/b" },
        { "small", "-a" },
        { "memory_bytes", "memory" },
        { "=2147483648-", "=1-" },
        { "-4294967296", "-1" },
        { "-4294967296", "-18446744073709551616" },
        { "-4294967296", "-99999999999999999" },
        { "pids=256-256", "pids=0256-256" },
        { "pids=256-256", "pids=-256" },
        { "cell_ms=1000-2000", "cell_ms=3000-2000" },
        { "cell_ms=1000-2000", "cell_ms=0-2000" },
        { "home=tmpfs", "home=ram" },
        { "sized=0", "sized=2" },
        { "data=a,b", "data=a,,b" },
        { "data=a,b", "data=a," },
        { "data=a,b", "data=../a" },
        { "kernels=python3", "kernels=py/thon3" },
        { "isolation=2", "isolation=3" },
        { "walls=", "walls=9223372036854775808" },
        { ";", "" },
        { ";", ";x" },
        { ";", ";;" },
        { " home", "  home" },
    };

    (void)state;
    for (unsigned i = 0; i < sizeof changes / sizeof *changes; i++)
        assert_refused(changes[i][0], changes[i][1]);
}

static void every_prefix_of_a_table_is_refused(void **state)
{
    autofree struct profiles *t = xcalloc(1, sizeof *t);
    struct profiles *got = NULL;

    (void)state;
    fill(&t->at[0], "small");
    t->count = 1;
    autofree char *text = text_of(t);
    for (size_t n = 1; n < strlen(text); n++) {
        struct err e = { 0 };

        assert_true(profiles_read((struct view){ (const uint8_t *)text, n }, &got, &e) < 0);
    }
}

static void a_name_that_is_there_twice_is_refused(void **state)
{
    autofree struct profiles *t = xcalloc(1, sizeof *t);
    struct profiles *got = NULL;
    struct err e = { 0 };

    (void)state;
    fill(&t->at[0], "small");
    fill(&t->at[1], "small");
    t->count = 2;
    autofree char *text = text_of(t);
    assert_true(profiles_read(view_cstr(text), &got, &e) < 0);
    assert_non_null(strstr(e.msg, "number 2"));
}

static void a_profile_refuses_what_it_demands_and_nothing_else(void **state)
{
    const hostwall_set landlock = HOSTWALL_BIT(HOSTWALL_LANDLOCK),
                       seccomp = HOSTWALL_BIT(HOSTWALL_SECCOMP);
    struct profile p;

    (void)state;
    fill(&p, "p");
    assert_int_equal(profile_refused(&p, landlock | seccomp), landlock | seccomp);
    p.isolation = ISOLATION_NAMESPACES;
    assert_int_equal(profile_refused(&p, landlock | seccomp), landlock);
    p.isolation = ISOLATION_PROCESS;
    p.walls = 0;
    assert_int_equal(profile_refused(&p, UINT64_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_comes_back_as_it_was),
        cmocka_unit_test(no_text_is_no_table),
        cmocka_unit_test(what_the_writer_does_not_make_is_refused),
        cmocka_unit_test(every_prefix_of_a_table_is_refused),
        cmocka_unit_test(a_name_that_is_there_twice_is_refused),
        cmocka_unit_test(a_profile_refuses_what_it_demands_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
