/* Who of those that are away keeps a place, and what is remembered of the others. */
#include "seat_park.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct park_limits limits = { .places = 4, .sockets = 2, .held = 1000 };

static struct park_place idle(uint64_t since)
{
    return (struct park_place){ .since_ms = since, .returns = 1 };
}

static struct park_place at_work(uint64_t since)
{
    return (struct park_place){ .since_ms = since, .returns = 1, .runs = 1, .sockets = 1 };
}

static void within_the_limits_nobody_loses_anything(void **state)
{
    (void)state;
    const struct park_place all[] = { at_work(1), at_work(2), idle(3), idle(4) };
    size_t who = 99;

    assert_int_equal(park_choose(all, 4, &limits, &who), PARK_NONE);
    assert_int_equal(park_choose(all, 0, &limits, &who), PARK_NONE);
    assert_int_equal(who, 99);
}

static void the_place_of_one_that_waits_for_nothing_goes_first(void **state)
{
    (void)state;
    const struct park_place all[] = { at_work(1), at_work(2), idle(9), idle(8), idle(10) };
    size_t who;

    assert_int_equal(park_choose(all, 5, &limits, &who), PARK_PLACE);
    assert_int_equal(who, 3); /* the longest away of those */
}

static void ends_that_were_not_given_come_before_cells_under_way(void **state)
{
    (void)state;
    struct park_place unread = idle(9);
    unread.unread = 1;
    struct park_place running = at_work(1);
    running.sockets = 0;
    const struct park_place all[] = { running, running, unread, running, running };
    size_t who;

    assert_int_equal(park_choose(all, 5, &limits, &who), PARK_PLACE);
    assert_int_equal(who, 2);
}

static void above_the_sockets_the_longest_away_keeps_its_place(void **state)
{
    (void)state;
    const struct park_place all[] = { at_work(5), at_work(3), at_work(4), idle(1) };
    size_t who;

    assert_int_equal(park_choose(all, 4, &limits, &who), PARK_SOCKETS);
    assert_int_equal(who, 1);
}

static void one_that_nobody_comes_back_for_goes_whole(void **state)
{
    (void)state;
    struct park_place nobody = at_work(9);
    nobody.returns = 0;
    const struct park_place all[] = { at_work(5), at_work(3), nobody };
    size_t who;

    assert_int_equal(park_choose(all, 3, &limits, &who), PARK_PLACE);
    assert_int_equal(who, 2);
}

static void messages_that_wait_are_bounded_over_all(void **state)
{
    (void)state;
    struct park_place holds = { .since_ms = 2, .returns = 1, .runs = 1, .held = 600 };
    const struct park_place all[] = { idle(1), holds, holds };
    size_t who;

    assert_int_equal(park_choose(all, 3, &limits, &who), PARK_SOCKETS);
    assert_int_equal(who, 1);
}

/* ---- graves ---- */

static void who_lost_a_place_is_known_once_with_its_runs(void **state)
{
    (void)state;
    struct graves *g = graves_new();

    graves_add(g, "one");
    graves_add_run(g, VIEW_STR("first"));
    graves_add_run(g, VIEW_STR("second"));
    graves_add(g, "two");
    struct grave *r = graves_take(g, "one");
    assert_non_null(r);
    assert_memory_equal(r->runs->header, "first", 5);
    assert_memory_equal(r->runs->next->header, "second", 6);
    assert_null(r->runs->next->next);
    grave_free(r);
    assert_null(graves_take(g, "one"));
    assert_null(graves_take(g, "three"));
    r = graves_take(g, "two");
    assert_null(r->runs);
    grave_free(r);
    assert_int_equal(graves_bytes(g), 0);
    graves_free(g);
}

static void beyond_the_bounds_it_is_known_that_it_was_there(void **state)
{
    (void)state;
    struct graves *g = graves_new();
    char sid[32];
    static uint8_t header[GRAVE_HEADER_MAX];

    for (int i = 0; i < 2 * GRAVES_MAX; i++) {
        snprintf(sid, sizeof sid, "client-%d", i);
        graves_add(g, sid);
        graves_add_run(g, (struct view){ header, i % 2 ? sizeof header : 10 });
        assert_true(graves_bytes(g) <= GRAVES_BYTES);
    }
    struct grave *r = graves_take(g, "client-0");
    assert_non_null(r);
    assert_null(r->sid);
    grave_free(r);
    assert_null(graves_take(g, "client-0"));
    assert_null(graves_take(g, "somebody else"));
    r = graves_take(g, "client-2047");
    assert_int_equal(r->runs->n, sizeof header);
    grave_free(r);
    graves_free(g);
}

static void long_ids_are_bounded_by_their_bytes(void **state)
{
    (void)state;
    struct graves *g = graves_new();
    char sid[2048];

    for (int i = 0; i < GRAVES_MAX; i++) {
        snprintf(sid, sizeof sid, "%01500d", i);
        graves_add(g, sid);
    }
    assert_true(graves_bytes(g) <= GRAVES_BYTES);
    graves_free(g);
}

static void runs_that_cannot_be_kept_are_counted(void **state)
{
    (void)state;
    struct graves *g = graves_new();
    static uint8_t header[GRAVE_HEADER_MAX + 1];

    graves_add(g, "one");
    graves_add_run(g, (struct view){ header, sizeof header });
    for (int i = 0; i < 200; i++)
        graves_add_run(g, (struct view){ header, GRAVE_HEADER_MAX });
    assert_true(graves_bytes(g) <= GRAVES_BYTES / 4);
    struct grave *r = graves_take(g, "one");
    unsigned named = 0;
    for (const struct grave_run *run = r->runs; run != NULL; run = run->next)
        named++;
    assert_int_equal(named + r->unnamed, 201);
    assert_true(named > 0 && r->unnamed > 1);
    grave_free(r);
    graves_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_the_limits_nobody_loses_anything),
        cmocka_unit_test(the_place_of_one_that_waits_for_nothing_goes_first),
        cmocka_unit_test(ends_that_were_not_given_come_before_cells_under_way),
        cmocka_unit_test(above_the_sockets_the_longest_away_keeps_its_place),
        cmocka_unit_test(one_that_nobody_comes_back_for_goes_whole),
        cmocka_unit_test(messages_that_wait_are_bounded_over_all),
        cmocka_unit_test(who_lost_a_place_is_known_once_with_its_runs),
        cmocka_unit_test(beyond_the_bounds_it_is_known_that_it_was_there),
        cmocka_unit_test(long_ids_are_bounded_by_their_bytes),
        cmocka_unit_test(runs_that_cannot_be_kept_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
