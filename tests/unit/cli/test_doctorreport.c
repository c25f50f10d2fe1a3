/* What doctor prints: the launcher's lines in, table and JSON out. */
#include "doctorreport.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "buf.h"
#include "err.h"

static void all_present(struct doctorreport *d)
{
    *d = (struct doctorreport){ .policy = { .level = ISOLATION_HARDENED } };
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        d->findings[i] = (struct finding){ .known = 1, .state = HOSTWALL_PRESENT };
}

static void set(struct doctorreport *d, enum hostwall wall, enum hostwall_state state,
                const char *detail)
{
    d->findings[wall].state = state;
    snprintf(d->findings[wall].detail, sizeof d->findings[wall].detail, "%s", detail);
}

static char *table(const struct doctorreport *d, unsigned width)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    doctorreport_table(d, width, f);
    fclose(f);
    return text;
}

static void a_line_of_the_launcher_is_taken(void **state)
{
    (void)state;
    struct doctorreport d = { .policy = { .level = ISOLATION_HARDENED } };
    struct err e = { 0 };

    assert_int_equal(doctorreport_line(&d, "landlock weaker 1234 ABI 2: less", &e), 0);
    assert_int_equal(d.findings[HOSTWALL_LANDLOCK].state, HOSTWALL_WEAKER);
    assert_int_equal(d.findings[HOSTWALL_LANDLOCK].us, 1234);
    assert_string_equal(d.findings[HOSTWALL_LANDLOCK].detail, "ABI 2: less");
    assert_int_equal(doctorreport_line(&d, "pidfd present 7 ", &e), 0);
    assert_string_equal(d.findings[HOSTWALL_PIDFD].detail, "");
}

static void other_lines_are_refused_and_change_nothing(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "landlock",
        "landlock weaker",
        "landlock weaker 12",
        "landlock weaker x y",
        "landlock strong 12 y",
        "lock weaker 12 y",
        "ts=2026 level=error event=x",
    };
    struct doctorreport d = { .policy = { .level = ISOLATION_HARDENED } };

    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err e = { 0 };

        assert_int_equal(doctorreport_line(&d, wrong[i], &e), -EPROTO);
        assert_false(d.findings[HOSTWALL_LANDLOCK].known);
    }
}

static void a_wall_that_nothing_was_said_about_is_missing(void **state)
{
    (void)state;
    struct doctorreport d;

    all_present(&d);
    d.findings[HOSTWALL_SECCOMP].known = 0;
    doctorreport_finish(&d);
    assert_int_equal(d.findings[HOSTWALL_SECCOMP].state, HOSTWALL_MISSING);
    assert_true(doctorreport_refused(&d) == HOSTWALL_BIT(HOSTWALL_SECCOMP));
}

static void the_table_of_a_good_host_has_no_advice(void **state)
{
    (void)state;
    struct doctorreport d;

    all_present(&d);
    char *text = table(&d, 100);
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        assert_non_null(strstr(text, hostwall_info((enum hostwall)i)->name));
    assert_non_null(strstr(text, "Level hardened: what it demands is there.\n"));
    assert_null(strstr(text, "MISSING"));
    assert_null(strstr(text, "  help "));
    assert_null(strstr(text, "  means "));
    free(text);
}

static void the_table_tells_of_a_missing_wall_what_it_means_and_what_helps(void **state)
{
    (void)state;
    struct doctorreport d;

    all_present(&d);
    set(&d, HOSTWALL_LANDLOCK, HOSTWALL_MISSING, "ENOSYS");
    char *text = table(&d, 1000);
    assert_non_null(strstr(text, "  MISSING  landlock "));
    assert_non_null(strstr(text, " found  ENOSYS\n"));
    assert_non_null(strstr(text, hostwall_info(HOSTWALL_LANDLOCK)->without));
    assert_non_null(strstr(text, hostwall_info(HOSTWALL_LANDLOCK)->remedy));
    assert_non_null(strstr(text, "Level hardened demands what is missing: landlock.\n"
                                 "`holdcell serve` refuses to start.\n"
                                 "--accept-missing landlock would serve without it.\n"));
    free(text);

    d.policy.accepted = HOSTWALL_BIT(HOSTWALL_LANDLOCK);
    text = table(&d, 1000);
    assert_non_null(strstr(text, "  accepted landlock "));
    assert_non_null(strstr(text, "what it demands is there, but for what is accepted as missing: "
                                 "landlock.\n"));
    assert_null(strstr(text, "would serve"));
    free(text);
}

static void what_no_level_demands_is_missing_in_small_letters(void **state)
{
    (void)state;
    struct doctorreport d;

    all_present(&d);
    set(&d, HOSTWALL_DISK_HOME, HOSTWALL_MISSING, "no mkfs.ext4");
    assert_true(doctorreport_refused(&d) == 0);
    char *text = table(&d, 100);
    assert_non_null(strstr(text, "  missing  disk-home "));
    assert_null(strstr(text, "MISSING"));
    free(text);

    d.policy.wanted = HOSTWALL_BIT(HOSTWALL_DISK_HOME); /* but an option of the server does */
    assert_true(doctorreport_refused(&d) == HOSTWALL_BIT(HOSTWALL_DISK_HOME));
    text = table(&d, 100);
    assert_non_null(strstr(text, "  MISSING  disk-home "));
    assert_non_null(
        strstr(text, "Level hardened with these options demands what is missing: disk-home.\n"));
    free(text);
}

static void lines_of_the_table_keep_to_the_width(void **state)
{
    (void)state;
    static const unsigned widths[] = { 1, 60, 80, 100, 133 };
    struct doctorreport d;

    all_present(&d);
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        set(&d, (enum hostwall)i, HOSTWALL_MISSING,
            "some words that say what was found on this very host");
    for (unsigned i = 0; i < sizeof widths / sizeof *widths; i++) {
        unsigned most = widths[i] < 60 ? 60 : widths[i];
        char *text = table(&d, widths[i]);
        char *rest = text, *line;

        assert_non_null(strstr(text, "\nLevel "));
        while ((line = strsep(&rest, "\n")) != NULL && strncmp(line, "Level ", 6) != 0)
            if (strlen(line) > most) /* one word alone may be longer than its column */
                assert_null(strchr(line + 9 + 27 + 2 + 7, ' '));
        free(text);
    }
}

static void the_json_has_all_for_a_program(void **state)
{
    (void)state;
    struct doctorreport d;
    struct err e = { 0 };
    json_error_t where;
    autobuf struct buf text;

    all_present(&d);
    set(&d, HOSTWALL_LANDLOCK, HOSTWALL_MISSING, "a \"quoted\" \xff word");
    set(&d, HOSTWALL_SECCOMP, HOSTWALL_MISSING, "");
    d.policy.accepted = HOSTWALL_BIT(HOSTWALL_SECCOMP) | HOSTWALL_BIT(HOSTWALL_PROC);
    buf_init(&text, 1 << 20);
    assert_int_equal(doctorreport_json(&d, &text, &e), 0);
    struct view v = buf_view(&text);
    json_t *j = json_loadb((const char *)v.p, v.n, JSON_REJECT_DUPLICATES, &where);

    assert_non_null(j);
    assert_true(json_is_false(json_object_get(j, "ok")));
    assert_string_equal(json_string_value(json_object_get(j, "level")), "hardened");
    assert_int_equal(json_array_size(json_object_get(j, "refused")), 1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(j, "refused"), 0)),
                        "landlock");
    assert_int_equal(json_array_size(json_object_get(j, "accepted")), 1);
    json_t *walls = json_object_get(j, "walls");
    assert_int_equal(json_array_size(walls), HOSTWALL_COUNT);
    json_t *one = json_array_get(walls, HOSTWALL_LANDLOCK);
    assert_string_equal(json_string_value(json_object_get(one, "name")), "landlock");
    assert_string_equal(json_string_value(json_object_get(one, "state")), "missing");
    assert_true(json_is_true(json_object_get(one, "demanded")));
    assert_true(json_is_true(json_object_get(one, "acceptable")));
    assert_int_equal(json_object_size(one), 10);
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_of_the_launcher_is_taken),
        cmocka_unit_test(other_lines_are_refused_and_change_nothing),
        cmocka_unit_test(a_wall_that_nothing_was_said_about_is_missing),
        cmocka_unit_test(the_table_of_a_good_host_has_no_advice),
        cmocka_unit_test(the_table_tells_of_a_missing_wall_what_it_means_and_what_helps),
        cmocka_unit_test(what_no_level_demands_is_missing_in_small_letters),
        cmocka_unit_test(lines_of_the_table_keep_to_the_width),
        cmocka_unit_test(the_json_has_all_for_a_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
