/* The table of walls, what a level demands of it, and the verdict. */
#include "hostwalls.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"

static const struct hostwall_policy hardened = { .level = ISOLATION_HARDENED },
                                    namespaces = { .level = ISOLATION_NAMESPACES };

static void every_wall_has_a_name_of_its_own_and_all_its_texts(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++) {
        const struct hostwall_info *w = hostwall_info((enum hostwall)i);
        enum hostwall found;

        assert_non_null(w->name);
        assert_int_equal(strspn(w->name, "abcdefghijklmnopqrstuvwxyz-"), strlen(w->name));
        assert_true(strlen(w->name) < 27); /* the column of the table */
        assert_int_equal(hostwall_of(w->name, &found), 0);
        assert_int_equal(found, i);
        assert_true(strlen(w->purpose) > 10 && strlen(w->without) > 10 && strlen(w->remedy) > 10);
    }
}

static void only_what_sessions_can_be_built_without_is_acceptable(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        assert_int_equal(hostwall_info((enum hostwall)i)->acceptable,
                         i == HOSTWALL_LANDLOCK || i == HOSTWALL_SECCOMP);
}

static void a_level_demands_what_the_one_before_it_does(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        if (hostwall_demanded(&namespaces, (enum hostwall)i))
            assert_true(hostwall_demanded(&hardened, (enum hostwall)i));
    assert_true(hostwall_demanded(&hardened, HOSTWALL_LANDLOCK) &&
                hostwall_demanded(&hardened, HOSTWALL_SECCOMP));
    assert_false(hostwall_demanded(&namespaces, HOSTWALL_LANDLOCK));
    assert_false(hostwall_demanded(&namespaces, HOSTWALL_SECCOMP));
    assert_true(hostwall_demanded(&namespaces, HOSTWALL_MEMORY_LIMIT));
    assert_false(hostwall_demanded(&hardened, HOSTWALL_DISK_HOME));
}

static void settings_of_the_host_are_never_demanded(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        if (hostwall_info((enum hostwall)i)->group == HOSTWALLS_OF_HOST)
            assert_false(hostwall_demanded(&hardened, (enum hostwall)i));
}

static void what_is_missing_and_demanded_is_refused_unless_accepted(void **state)
{
    (void)state;
    struct hostwall_policy p = hardened;
    const hostwall_set missing = HOSTWALL_BIT(HOSTWALL_LANDLOCK) |
                                 HOSTWALL_BIT(HOSTWALL_DISK_HOME) | HOSTWALL_BIT(HOSTWALL_PROC);
    struct err e = { 0 };

    assert_true(hostwall_refused(&p, missing) ==
                (HOSTWALL_BIT(HOSTWALL_LANDLOCK) | HOSTWALL_BIT(HOSTWALL_PROC)));
    assert_int_equal(hostwall_policy_accept(&p, "landlock", &e), 0);
    assert_true(hostwall_refused(&p, missing) == HOSTWALL_BIT(HOSTWALL_PROC));
    assert_int_equal(hostwall_policy_accept(&p, "landlock,seccomp", &e), 0);
    assert_true(p.accepted == (HOSTWALL_BIT(HOSTWALL_LANDLOCK) | HOSTWALL_BIT(HOSTWALL_SECCOMP)));
    assert_int_equal(hostwall_policy_accept(&p, NULL, &e), 0);
    assert_true(p.accepted == 0 && hostwall_refused(&p, 0) == 0);
}

static void what_options_need_is_demanded_whatever_the_level(void **state)
{
    (void)state;
    struct hostwall_policy p = namespaces;

    p.wanted = HOSTWALL_BIT(HOSTWALL_DISK_HOME);
    assert_true(hostwall_demanded(&p, HOSTWALL_DISK_HOME));
    assert_false(hostwall_demanded(&p, HOSTWALL_IDMAPPED_MOUNT));
    assert_true(hostwall_refused(&p, HOSTWALL_BIT(HOSTWALL_DISK_HOME) |
                                         HOSTWALL_BIT(HOSTWALL_IDMAPPED_MOUNT)) ==
                HOSTWALL_BIT(HOSTWALL_DISK_HOME));
}

static void what_cannot_be_accepted_is_told_why(void **state)
{
    (void)state;
    static const struct {
        const char *names, *text;
    } wrong[] = {
        { "lock", "'lock' is no wall" },
        { "", "'' is no wall" },
        { "landlock,", "'' is no wall" },
        { "landlock,,seccomp", "'' is no wall" },
        { "proc", "'proc' cannot be accepted as missing: no session can be built without it" },
        { "seccomp,disk-home", "'disk-home' cannot be accepted as missing: no level demands it" },
    };

    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct hostwall_policy p = { .level = ISOLATION_HARDENED, .accepted = 7 };
        struct err e = { 0 };

        assert_int_equal(hostwall_policy_accept(&p, wrong[i].names, &e), -EINVAL);
        assert_string_equal(e.msg, wrong[i].text);
        assert_true(p.accepted == 7);
    }
    struct hostwall_policy p = hardened;
    char long_name[300];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_int_equal(hostwall_policy_accept(&p, long_name, NULL), -EINVAL);
}

static void levels_are_known_by_name_and_two_are_names_only(void **state)
{
    (void)state;
    enum isolation level = ISOLATION_NEVER;
    struct err e = { 0 };

    assert_int_equal(isolation_of("namespaces", &level, &e), 0);
    assert_int_equal(level, ISOLATION_NAMESPACES);
    assert_int_equal(isolation_of("hardened", &level, &e), 0);
    assert_int_equal(level, ISOLATION_HARDENED);
    assert_int_equal(isolation_of("oci", &level, &e), -ENOTSUP);
    assert_string_equal(e.msg, "level 'oci' does not work yet");
    assert_int_equal(isolation_of("process", &level, &e), -ENOTSUP);
    assert_string_equal(e.msg, "level 'process' has no walls: nothing is served so");
    assert_int_equal(isolation_of("Hardened", &level, &e), -EINVAL);
    assert_string_equal(e.msg, "'Hardened' is none of namespaces, hardened");
    assert_int_equal(level, ISOLATION_HARDENED);
}

static void a_refusal_names_wall_meaning_and_the_option_that_accepts_it(void **state)
{
    (void)state;
    char text[800];

    hostwall_refusal(HOSTWALL_LANDLOCK, "ENOSYS", text, sizeof text);
    assert_non_null(strstr(text, "wall 'landlock' is missing: ENOSYS; without it: "));
    assert_non_null(strstr(text, hostwall_info(HOSTWALL_LANDLOCK)->without));
    assert_non_null(strstr(text, "--accept-missing landlock"));
    hostwall_refusal(HOSTWALL_PROC, "EPERM", text, sizeof text);
    assert_non_null(strstr(text, "no option accepts that; what helps: "));
    assert_non_null(strstr(text, hostwall_info(HOSTWALL_PROC)->remedy));
    assert_null(strstr(text, "--accept-missing"));
    hostwall_refusal(HOSTWALL_PROC, "EPERM", text, 20); /* cut, and ended */
    assert_int_equal(strlen(text), 19);
}

static void a_set_is_printed_as_a_list_that_fits(void **state)
{
    (void)state;
    char text[64];

    hostwall_set_print(0, text, sizeof text);
    assert_string_equal(text, "");
    hostwall_set_print(HOSTWALL_BIT(HOSTWALL_SECCOMP) | HOSTWALL_BIT(HOSTWALL_LANDLOCK), text,
                       sizeof text);
    assert_string_equal(text, "seccomp, landlock");
    hostwall_set_print(~UINT64_C(0), text, sizeof text);
    assert_int_equal(strlen(text), sizeof text - 1);
}

static void states_go_to_names_and_back(void **state)
{
    (void)state;
    for (unsigned i = HOSTWALL_PRESENT; i <= HOSTWALL_ABSENT; i++) {
        enum hostwall_state s;

        assert_int_equal(hostwall_state_of(hostwall_state_name((enum hostwall_state)i), &s), 0);
        assert_int_equal(s, i);
    }
    enum hostwall_state s;
    assert_int_equal(hostwall_state_of("there", &s), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wall_has_a_name_of_its_own_and_all_its_texts),
        cmocka_unit_test(only_what_sessions_can_be_built_without_is_acceptable),
        cmocka_unit_test(a_level_demands_what_the_one_before_it_does),
        cmocka_unit_test(settings_of_the_host_are_never_demanded),
        cmocka_unit_test(what_is_missing_and_demanded_is_refused_unless_accepted),
        cmocka_unit_test(what_options_need_is_demanded_whatever_the_level),
        cmocka_unit_test(what_cannot_be_accepted_is_told_why),
        cmocka_unit_test(levels_are_known_by_name_and_two_are_names_only),
        cmocka_unit_test(a_refusal_names_wall_meaning_and_the_option_that_accepts_it),
        cmocka_unit_test(a_set_is_printed_as_a_list_that_fits),
        cmocka_unit_test(states_go_to_names_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
