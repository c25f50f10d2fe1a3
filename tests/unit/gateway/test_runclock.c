/* Deadlines of a run: what counts, and that each rung comes at its time and once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runclock.h"

static const struct time_limits cell_only = { .cell_ms = 10000 };
static const struct time_limits both = { .cell_ms = 10000, .stdin_ms = 3000 };
static const struct time_limits stdin_only = { .stdin_ms = 3000 };
static const struct time_limits none;

/* The first time from `from` on at which a rung is due. */
static uint64_t due_at(const struct runclock *c, const struct time_limits *l, uint64_t from)
{
    for (uint64_t now = from; now < from + 100000; now += 100) {
        struct runclock copy = *c;
        if (runclock_check(&copy, l, now) != RUNCLOCK_WAIT)
            return now;
    }
    return 0;
}

static void each_rung_comes_once_and_at_its_time(void **state)
{
    struct runclock c = { 0 };
    struct {
        uint64_t at;
        enum runclock_rung rung;
    } seen[8];
    unsigned count = 0;

    (void)state;
    runclock_run(&c, 1000);
    for (uint64_t now = 1000; now < 40000; now += 200) {
        enum runclock_rung rung = runclock_check(&c, &cell_only, now);
        if (rung == RUNCLOCK_WAIT)
            continue;
        assert_true(count < 8);
        seen[count].at = now;
        seen[count++].rung = rung;
    }
    assert_int_equal(count, 3);
    assert_int_equal(seen[0].rung, RUNCLOCK_INTERRUPT);
    assert_true(seen[0].at == 11000);
    assert_int_equal(seen[1].rung, RUNCLOCK_INTERRUPT_AGAIN);
    assert_true(seen[1].at == 13000);
    assert_int_equal(seen[2].rung, RUNCLOCK_END);
    assert_true(seen[2].at == 16000);
    assert_int_equal(c.why, RUNCLOCK_CELL);
}

static void a_rung_that_was_missed_is_not_made_up_for(void **state)
{
    struct runclock c = { 0 };

    (void)state;
    runclock_run(&c, 1000);
    assert_int_equal(runclock_check(&c, &cell_only, 11000), RUNCLOCK_INTERRUPT);
    assert_int_equal(runclock_check(&c, &cell_only, 16000), RUNCLOCK_END);
    assert_int_equal(runclock_check(&c, &cell_only, 16001), RUNCLOCK_WAIT);
}

static void a_queued_run_and_one_without_limits_are_never_due(void **state)
{
    struct runclock queued = { 0 }, running = { 0 };

    (void)state;
    assert_true(due_at(&queued, &both, 1000) == 0);
    runclock_run(&running, 1000);
    assert_true(due_at(&running, &none, 1000) == 0);
    /* It was another run that ran: nothing of that counts. */
    runclock_withdraw(&running);
    assert_true(due_at(&running, &both, 1000) == 0);
    runclock_run(&running, 50000);
    assert_true(due_at(&running, &both, 50000) == 60000);
}

static void it_is_no_use_to_say_busy_again(void **state)
{
    struct runclock c = { 0 };

    (void)state;
    for (uint64_t now = 1000; now < 9000; now += 200)
        runclock_run(&c, now);
    assert_true(due_at(&c, &cell_only, 9000) == 11000);
}

static void waiting_for_an_answer_counts_for_the_question_and_not_for_the_cell(void **state)
{
    struct runclock c = { 0 };

    (void)state;
    runclock_run(&c, 1000);
    runclock_ask(&c, 2000);
    assert_true(due_at(&c, &both, 2000) == 5000);
    assert_int_equal(runclock_check(&c, &both, 5000), RUNCLOCK_INTERRUPT);
    assert_int_equal(c.why, RUNCLOCK_STDIN);

    c = (struct runclock){ 0 };
    runclock_run(&c, 1000);
    runclock_ask(&c, 2000);
    runclock_answer(&c, 4500);
    assert_true(due_at(&c, &both, 4500) == 13500);
}

static void questions_are_no_way_out_of_the_cells_time(void **state)
{
    struct runclock c = { 0 };

    (void)state;
    /* A client that answers each question in time, for ever. */
    runclock_run(&c, 1000);
    uint64_t now = 1000;
    enum runclock_rung rung = RUNCLOCK_WAIT;
    while (rung == RUNCLOCK_WAIT && now < 100000) {
        runclock_ask(&c, now);
        now += 2000;
        runclock_answer(&c, now);
        rung = runclock_check(&c, &both, now);
    }
    assert_true(now >= 14000 && now <= 16000);
    assert_int_equal(c.why, RUNCLOCK_CELL);

    /* A question that is asked again is as old as before. */
    c = (struct runclock){ 0 };
    runclock_run(&c, 1000);
    for (now = 2000; now < 4000; now += 100)
        runclock_ask(&c, now);
    assert_true(due_at(&c, &both, 4000) == 5000);

    /* Where questions have no limit they count for the cell. */
    c = (struct runclock){ 0 };
    runclock_run(&c, 1000);
    runclock_ask(&c, 2000);
    assert_true(due_at(&c, &cell_only, 2000) == 11000);
}

static void each_question_has_its_own_time_where_cells_have_none(void **state)
{
    struct runclock c = { 0 };
    uint64_t now = 1000;

    (void)state;
    runclock_run(&c, now);
    for (int i = 0; i < 100; i++) {
        runclock_ask(&c, now);
        now += 2900;
        assert_int_equal(runclock_check(&c, &stdin_only, now), RUNCLOCK_WAIT);
        runclock_answer(&c, now);
    }
    assert_true(due_at(&c, &stdin_only, now) == 0);
}

static void an_answer_after_the_deadline_stops_no_ladder(void **state)
{
    struct runclock c = { 0 };

    (void)state;
    runclock_run(&c, 1000);
    runclock_ask(&c, 1000);
    assert_int_equal(runclock_check(&c, &both, 4000), RUNCLOCK_INTERRUPT);
    runclock_answer(&c, 4100);
    assert_int_equal(runclock_check(&c, &both, 6000), RUNCLOCK_INTERRUPT_AGAIN);
    assert_int_equal(runclock_check(&c, &both, 9000), RUNCLOCK_END);
    assert_int_equal(c.why, RUNCLOCK_STDIN);
}

static void a_time_in_which_all_were_stopped_does_not_count(void **state)
{
    struct runclock c = { 0 };

    (void)state;
    runclock_run(&c, 1000);
    runclock_shift(&c, 600000);
    assert_true(due_at(&c, &cell_only, 601000) == 611000);
    assert_int_equal(runclock_check(&c, &cell_only, 611000), RUNCLOCK_INTERRUPT);
    runclock_shift(&c, 600000);
    assert_int_equal(runclock_check(&c, &cell_only, 1211100), RUNCLOCK_WAIT);
    assert_int_equal(runclock_check(&c, &cell_only, 1213000), RUNCLOCK_INTERRUPT_AGAIN);
    c = (struct runclock){ 0 };
    runclock_shift(&c, 600000);
    assert_true(c.since_ms == 0 && c.asked_ms == 0);
}

static void the_next_gateway_goes_on_with_the_time_and_gives_a_moment_first(void **state)
{
    uint8_t note[RUNCLOCK_BYTES];
    struct runclock c = { 0 }, next;

    (void)state;
    runclock_run(&c, 1000);
    runclock_ask(&c, 4000);
    runclock_answer(&c, 6000);
    runclock_pack(&c, note);
    runclock_adopt(&next, note, 7000);
    assert_true(due_at(&next, &both, 7000) == 13000); /* 3 s before the question, 7 after it */

    runclock_adopt(&next, note, 90000);
    assert_true(due_at(&next, &both, 90000) == 90000 + RUNCLOCK_ADOPTED_MS);

    /* What is not begun, is not begun. */
    c = (struct runclock){ 0 };
    runclock_pack(&c, note);
    runclock_adopt(&next, note, 7000);
    assert_true(due_at(&next, &both, 7000) == 0);
}

static void whatever_a_note_says_the_run_ends(void **state)
{
    uint8_t note[RUNCLOCK_BYTES];

    (void)state;
    memset(note, 0xff, sizeof note);
    for (unsigned i = 0; i <= RUNCLOCK_BYTES; i += 8) {
        struct runclock c;
        if (i < RUNCLOCK_BYTES)
            memset(note + i, 0, 8);
        runclock_adopt(&c, note, 7000);
        runclock_run(&c, 7000);
        uint64_t due = due_at(&c, &both, 7000);
        assert_true(due >= 7000 + RUNCLOCK_ADOPTED_MS && due <= 7000 + 13000);
    }
}

static void limits_are_told_in_seconds(void **state)
{
    char text[TIME_TEXT];

    (void)state;
    assert_string_equal(time_text(60000, text), "60 s");
    assert_string_equal(time_text(500, text), "0.5 s");
    assert_string_equal(time_text(TIME_MOST_MS, text), "31622400 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rung_comes_once_and_at_its_time),
        cmocka_unit_test(a_rung_that_was_missed_is_not_made_up_for),
        cmocka_unit_test(a_queued_run_and_one_without_limits_are_never_due),
        cmocka_unit_test(it_is_no_use_to_say_busy_again),
        cmocka_unit_test(waiting_for_an_answer_counts_for_the_question_and_not_for_the_cell),
        cmocka_unit_test(questions_are_no_way_out_of_the_cells_time),
        cmocka_unit_test(each_question_has_its_own_time_where_cells_have_none),
        cmocka_unit_test(an_answer_after_the_deadline_stops_no_ladder),
        cmocka_unit_test(a_time_in_which_all_were_stopped_does_not_count),
        cmocka_unit_test(the_next_gateway_goes_on_with_the_time_and_gives_a_moment_first),
        cmocka_unit_test(whatever_a_note_says_the_run_ends),
        cmocka_unit_test(limits_are_told_in_seconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
