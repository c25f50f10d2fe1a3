/* When a living kernel counts as unresponsive, and what is sent to find out. */
#include "liveness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 1000 };

/* One tick of a kernel that answers everything at once. */
static unsigned healthy_tick(struct liveness *l, int busy)
{
    unsigned due = liveness_tick(l, busy);

    if (due & LIVENESS_BEAT)
        liveness_beat(l, l->heart.sent);
    if (due & LIVENESS_ASK)
        liveness_answer(l);
    return due;
}

static void a_kernel_that_answers_is_well_and_gets_one_beat_a_tick(void **state)
{
    struct liveness l;
    unsigned asked = 0;

    (void)state;
    liveness_start(&l, 1);
    for (int i = 0; i < MANY; i++) {
        unsigned due = healthy_tick(&l, 0);
        assert_true(due & LIVENESS_BEAT);
        asked += (due & LIVENESS_ASK) != 0;
        assert_int_equal(liveness_loss(&l, 0), LIVENESS_WELL);
    }
    assert_in_range(asked, MANY / LIVENESS_ASK_TICKS - 1, MANY / LIVENESS_ASK_TICKS + 1);
}

static void a_beat_that_does_not_come_back_is_a_loss_after_two_whole_ticks(void **state)
{
    struct liveness l;

    (void)state;
    liveness_start(&l, 1);
    healthy_tick(&l, 0);
    liveness_tick(&l, 0); /* sent, never returned */
    assert_int_equal(liveness_loss(&l, 0), LIVENESS_WELL);
    liveness_tick(&l, 0);
    assert_int_equal(liveness_loss(&l, 0), LIVENESS_WELL);
    liveness_tick(&l, 0);
    assert_int_equal(liveness_loss(&l, 0), LIVENESS_NO_HEARTBEAT);
    assert_int_equal(liveness_loss(&l, 1), LIVENESS_NO_HEARTBEAT);
}

static void a_late_beat_makes_it_well_again(void **state)
{
    struct liveness l;

    (void)state;
    liveness_start(&l, 1);
    for (int i = 0; i < 5; i++)
        liveness_tick(&l, 0);
    assert_int_equal(liveness_loss(&l, 0), LIVENESS_NO_HEARTBEAT);
    liveness_beat(&l, 1);
    assert_int_equal(liveness_loss(&l, 0), LIVENESS_WELL);
}

static void a_silent_kernel_is_not_filled_with_messages(void **state)
{
    struct liveness l;
    unsigned beats = 0, asked = 0;

    (void)state;
    liveness_start(&l, 1);
    for (int i = 0; i < MANY; i++) {
        unsigned due = liveness_tick(&l, 0);
        beats += (due & LIVENESS_BEAT) != 0;
        asked += (due & LIVENESS_ASK) != 0;
    }
    assert_int_equal(beats, LIVENESS_UNANSWERED_MAX);
    assert_int_equal(asked, LIVENESS_UNANSWERED_MAX);
}

static void a_beat_that_was_not_sent_or_is_old_is_ignored(void **state)
{
    struct liveness l;

    (void)state;
    liveness_start(&l, 1);
    healthy_tick(&l, 0);
    liveness_tick(&l, 0);
    liveness_beat(&l, 0);
    liveness_beat(&l, 1); /* returned before */
    liveness_beat(&l, 3);
    liveness_beat(&l, UINT64_MAX);
    liveness_tick(&l, 0);
    liveness_tick(&l, 0);
    assert_int_equal(liveness_loss(&l, 0), LIVENESS_NO_HEARTBEAT);
}

static void a_kernel_that_never_beat_is_not_judged_unless_it_owes_one(void **state)
{
    struct liveness foreign, ours;

    (void)state;
    liveness_start(&foreign, 0);
    liveness_start(&ours, 1);
    for (int i = 0; i < 20; i++) {
        liveness_tick(&foreign, 0);
        liveness_tick(&ours, 0);
    }
    assert_int_equal(liveness_loss(&foreign, 0), LIVENESS_WELL);
    assert_int_equal(liveness_loss(&ours, 0), LIVENESS_NO_HEARTBEAT);
}

static void a_kernel_of_one_thread_is_not_lost_at_the_end_of_a_long_cell(void **state)
{
    struct liveness l;

    (void)state;
    liveness_start(&l, 0);
    for (int i = 0; i < 10; i++)
        healthy_tick(&l, 0);
    for (int i = 0; i < MANY; i++)
        liveness_tick(&l, 1);
    assert_int_equal(liveness_loss(&l, 1), LIVENESS_NO_HEARTBEAT); /* said beside "busy" */
    assert_int_equal(liveness_loss(&l, 0), LIVENESS_WELL);         /* the cell has just ended */
    liveness_tick(&l, 0);
    assert_int_equal(liveness_loss(&l, 0), LIVENESS_WELL);
    liveness_beat(&l, l.heart.sent);
    assert_int_equal(liveness_loss(&l, 0), LIVENESS_WELL);
}

static void nothing_is_asked_on_control_while_the_kernel_is_busy(void **state)
{
    struct liveness l;

    (void)state;
    liveness_start(&l, 1);
    for (int i = 0; i < MANY; i++) {
        assert_false(healthy_tick(&l, 1) & LIVENESS_ASK);
        assert_int_equal(liveness_loss(&l, 1), LIVENESS_WELL);
    }
}

static void a_control_channel_that_falls_silent_is_a_loss_of_an_idle_kernel_only(void **state)
{
    struct liveness l;

    (void)state;
    liveness_start(&l, 1);
    for (int i = 0; i < 10; i++)
        healthy_tick(&l, 0);
    for (int i = 0; i < 10; i++) {
        if (liveness_tick(&l, 0) & LIVENESS_BEAT)
            liveness_beat(&l, l.heart.sent);
    }
    assert_int_equal(liveness_loss(&l, 0), LIVENESS_NO_CONTROL);
    assert_int_equal(liveness_loss(&l, 1), LIVENESS_WELL);
    liveness_answer(&l);
    assert_int_equal(liveness_loss(&l, 0), LIVENESS_WELL);
}

static void a_kernel_that_never_answers_on_control_is_not_judged_by_it(void **state)
{
    struct liveness l;

    (void)state;
    liveness_start(&l, 0);
    for (int i = 0; i < MANY; i++) {
        if (liveness_tick(&l, 0) & LIVENESS_BEAT)
            liveness_beat(&l, l.heart.sent);
        assert_int_equal(liveness_loss(&l, 0), LIVENESS_WELL);
    }
}

static void a_loss_has_a_text_that_names_the_channel(void **state)
{
    (void)state;
    assert_string_equal(liveness_text(LIVENESS_WELL), "");
    assert_non_null(strstr(liveness_text(LIVENESS_NO_HEARTBEAT), "heartbeat"));
    assert_non_null(strstr(liveness_text(LIVENESS_NO_CONTROL), "control"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_that_answers_is_well_and_gets_one_beat_a_tick),
        cmocka_unit_test(a_beat_that_does_not_come_back_is_a_loss_after_two_whole_ticks),
        cmocka_unit_test(a_late_beat_makes_it_well_again),
        cmocka_unit_test(a_silent_kernel_is_not_filled_with_messages),
        cmocka_unit_test(a_beat_that_was_not_sent_or_is_old_is_ignored),
        cmocka_unit_test(a_kernel_that_never_beat_is_not_judged_unless_it_owes_one),
        cmocka_unit_test(a_kernel_of_one_thread_is_not_lost_at_the_end_of_a_long_cell),
        cmocka_unit_test(nothing_is_asked_on_control_while_the_kernel_is_busy),
        cmocka_unit_test(a_control_channel_that_falls_silent_is_a_loss_of_an_idle_kernel_only),
        cmocka_unit_test(a_kernel_that_never_answers_on_control_is_not_judged_by_it),
        cmocka_unit_test(a_loss_has_a_text_that_names_the_channel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
