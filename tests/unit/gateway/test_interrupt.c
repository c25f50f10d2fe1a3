/* The rules of interrupts: for every moment, what the kernel is sent, and when. */
#include "interrupt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "err.h"
#include "query.h"

enum { NOW = 100000 };

struct world {
    struct interrupt *i;
    struct query q;
    struct interrupt_moment m;
};

/* A run that the kernel has not said busy for, on an idle kernel that has answered. */
static struct world *world(enum interrupt_way way)
{
    static struct world w;

    w = (struct world){ .i = &w.q.interrupt, .q = { .number = 7, .id = "run", .is_run = 1 } };
    w.m = (struct interrupt_moment){
        .way = way, .can_take = 1, .may_run = 1, .target = &w.q, .now_ms = NOW
    };
    return &w;
}

static enum interrupt_act ask(struct world *w)
{
    return interrupt_ask(w->i, &w->m);
}

static enum interrupt_act at(struct world *w, uint64_t ms)
{
    w->m.now_ms = NOW + ms;
    return interrupt_check(w->i, &w->m);
}

static enum interrupt_act busy(struct world *w)
{
    w->q.busy = 1;
    return interrupt_busy(w->i, &w->m);
}

static void with_nothing_to_interrupt_no_signal_is_sent(void **state)
{
    static const struct {
        enum interrupt_way way;
        int works, can_take;
        enum interrupt_act want;
    } rows[] = {
        { INTERRUPT_BY_SIGNAL, 0, 1, INTERRUPT_NOTHING }, /* it would end some kernels */
        { INTERRUPT_BY_NAME, 0, 1, INTERRUPT_NOTHING },
        { INTERRUPT_BY_MESSAGE, 0, 1, INTERRUPT_SEND }, /* no harm */
        { INTERRUPT_BY_SIGNAL, 1, 1, INTERRUPT_SEND },  /* the callback of a widget */
        { INTERRUPT_BY_NAME, 1, 1, INTERRUPT_SEND },
        { INTERRUPT_BY_MESSAGE, 1, 1, INTERRUPT_SEND },
        { INTERRUPT_BY_SIGNAL, 1, 0, INTERRUPT_NOTHING }, /* it starts */
        { INTERRUPT_BY_MESSAGE, 0, 0, INTERRUPT_NOTHING },
    };

    (void)state;
    for (size_t n = 0; n < sizeof rows / sizeof rows[0]; n++) {
        struct world *w = world(rows[n].way);
        w->m.target = NULL;
        w->m.works = rows[n].works;
        w->m.can_take = rows[n].can_take;
        assert_int_equal(ask(w), rows[n].want);
        assert_false(interrupt_is_pending(w->i));
        assert_int_equal(at(w, 60000), INTERRUPT_NOTHING);
    }
}

static void a_run_that_is_not_busy_yet_is_signalled_when_it_is(void **state)
{
    static const enum interrupt_way ways[] = { INTERRUPT_BY_SIGNAL, INTERRUPT_BY_MESSAGE };

    (void)state;
    for (size_t n = 0; n < 2; n++) {
        struct world *w = world(ways[n]);
        assert_int_equal(ask(w), INTERRUPT_WAIT);
        assert_true(interrupt_waits(w->i));
        assert_int_equal(at(w, 200), INTERRUPT_WAIT);
        assert_int_equal(busy(w), INTERRUPT_SEND);
        assert_false(interrupt_waits(w->i));
        assert_int_equal(busy(w), INTERRUPT_NOTHING); /* once */
        assert_int_equal(at(w, 60000), INTERRUPT_NOTHING);
    }
}

static void a_busy_run_is_signalled_at_once_and_again_only_when_asked_again(void **state)
{
    struct world *w = world(INTERRUPT_BY_SIGNAL);

    (void)state;
    w->q.busy = 1;
    assert_int_equal(ask(w), INTERRUPT_SEND);
    assert_int_equal(at(w, 60000), INTERRUPT_NOTHING);
    assert_int_equal(ask(w), INTERRUPT_SEND);
}

static void the_busy_of_another_run_brings_nothing(void **state)
{
    struct world *w = world(INTERRUPT_BY_SIGNAL);
    struct query other = { .number = 8, .busy = 1 };

    (void)state;
    assert_int_equal(ask(w), INTERRUPT_WAIT);
    w->m.target = &other;
    assert_false(interrupt_awaits_busy(&other.interrupt));
    assert_int_equal(interrupt_busy(&other.interrupt, &w->m), INTERRUPT_NOTHING);
    w->m.target = &w->q;
    assert_int_equal(busy(w), INTERRUPT_SEND);
}

static void the_interrupt_of_another_run_does_not_take_the_place_of_one_that_waits(void **state)
{
    struct world *w = world(INTERRUPT_BY_SIGNAL);
    struct query other = { .number = 8, .id = "other", .busy = 1, .is_run = 1 };

    (void)state;
    assert_int_equal(ask(w), INTERRUPT_WAIT);
    w->m.target = &other; /* sent later, taken first */
    assert_int_equal(interrupt_ask(&other.interrupt, &w->m), INTERRUPT_SEND);
    w->m.target = &w->q;
    assert_true(interrupt_waits(w->i));
    assert_int_equal(busy(w), INTERRUPT_SEND);
    w = world(INTERRUPT_BY_NAME);
    other.interrupt = (struct interrupt){ 0 };
    assert_int_equal(ask(w), INTERRUPT_NAME);
    interrupt_named(w->i, "m1");
    w->m.target = &other;
    assert_int_equal(interrupt_ask(&other.interrupt, &w->m), INTERRUPT_NAME);
    interrupt_named(&other.interrupt, "m2");
    interrupt_answered(w->i, "m2", 1);
    interrupt_answered(&other.interrupt, "m2", 1);
    assert_true(interrupt_waits(w->i) && !interrupt_waits(&other.interrupt));
    w->m.target = &w->q;
    w->q.busy = 1;
    assert_int_equal(at(w, INTERRUPT_ANSWER_MS), INTERRUPT_SEND);
}

static void by_name_each_is_sent_since_the_run_may_have_caught_the_one_before(void **state)
{
    struct world *w = world(INTERRUPT_BY_NAME);

    (void)state;
    assert_int_equal(ask(w), INTERRUPT_NAME);
    interrupt_named(w->i, "m1");
    assert_int_equal(ask(w), INTERRUPT_NAME);
    interrupt_named(w->i, "m2");
    interrupt_answered(w->i, "m1", 1);
    assert_true(interrupt_waits(w->i)); /* the second is not answered */
    interrupt_answered(w->i, "m2", 1);
    assert_false(interrupt_waits(w->i));
}

static void several_clients_that_interrupt_together_send_one_signal(void **state)
{
    struct world *w = world(INTERRUPT_BY_SIGNAL);

    (void)state;
    assert_int_equal(ask(w), INTERRUPT_WAIT);
    assert_int_equal(ask(w), INTERRUPT_NOTHING);
    assert_int_equal(busy(w), INTERRUPT_SEND);
}

static void a_named_one_that_the_kernel_took_is_not_followed_by_a_signal(void **state)
{
    struct world *w = world(INTERRUPT_BY_NAME);

    (void)state;
    assert_int_equal(ask(w), INTERRUPT_NAME);
    interrupt_named(w->i, "m1");
    interrupt_answered(w->i, "other", 1);
    assert_true(interrupt_waits(w->i));
    interrupt_answered(w->i, "m1", 1);
    assert_false(interrupt_waits(w->i));
    assert_int_equal(busy(w), INTERRUPT_NOTHING);
    assert_int_equal(at(w, 60000), INTERRUPT_NOTHING);
    assert_int_equal(ask(w), INTERRUPT_NAME); /* the user asks once more */
}

static void a_named_one_without_an_answer_in_time_is_followed_by_the_signal(void **state)
{
    struct world *w = world(INTERRUPT_BY_NAME);

    (void)state;
    w->q.busy = 1;
    assert_int_equal(ask(w), INTERRUPT_NAME);
    interrupt_named(w->i, "m1");
    assert_int_equal(at(w, INTERRUPT_ANSWER_MS - 1), INTERRUPT_WAIT);
    assert_int_equal(at(w, INTERRUPT_ANSWER_MS), INTERRUPT_SEND);
    assert_int_equal(at(w, 60000), INTERRUPT_NOTHING);
    interrupt_answered(w->i, "m1", 0); /* "too late" */
    assert_int_equal(at(w, 60000), INTERRUPT_NOTHING);
    /* The kernel has to have given up on it by then. */
    assert_true(INTERRUPT_TAKE_MS < INTERRUPT_ANSWER_MS);
}

static void an_answer_that_waits_behind_output_is_waited_for_but_not_for_ever(void **state)
{
    struct world *w = world(INTERRUPT_BY_NAME);
    uint64_t ms = 0;

    (void)state;
    w->q.busy = 1;
    assert_int_equal(ask(w), INTERRUPT_NAME);
    interrupt_named(w->i, "m1");
    for (; ms < INTERRUPT_FLOW_MS; ms += 100) {
        w->m.output_ms = NOW + ms;
        assert_int_equal(at(w, ms), INTERRUPT_WAIT);
    }
    w->m.output_ms = NOW + ms;
    assert_int_equal(at(w, ms), INTERRUPT_SEND);
}

static void a_named_one_that_came_too_late_waits_for_busy(void **state)
{
    struct world *w = world(INTERRUPT_BY_NAME);

    (void)state;
    assert_int_equal(ask(w), INTERRUPT_NAME);
    interrupt_named(w->i, "m1");
    interrupt_answered(w->i, "m1", 0);
    assert_int_equal(at(w, 10), INTERRUPT_WAIT);
    assert_int_equal(busy(w), INTERRUPT_SEND);
}

static void a_run_that_cannot_say_busy_is_signalled_all_the_same(void **state)
{
    static const struct {
        enum interrupt_way way;
        unsigned wait;
    } rows[] = { { INTERRUPT_BY_NAME, INTERRUPT_BUSY_MS },
                 { INTERRUPT_BY_SIGNAL, INTERRUPT_BUSY_FOREIGN_MS } };

    (void)state;
    for (size_t n = 0; n < 2; n++) {
        struct world *w = world(rows[n].way);
        uint64_t from = 0;
        if (ask(w) == INTERRUPT_NAME)
            assert_int_equal(at(w, from = INTERRUPT_ANSWER_MS), INTERRUPT_WAIT);
        assert_int_equal(at(w, from + rows[n].wait - 1), INTERRUPT_WAIT);
        assert_int_equal(at(w, from + rows[n].wait), INTERRUPT_SEND);
        assert_int_equal(at(w, from + 60000), INTERRUPT_NOTHING);
        /* It was slow, not silent: the signal may have come before it could be taken. */
        assert_int_equal(busy(w), INTERRUPT_NOTHING);
        assert_int_equal(at(w, from + 60000 + INTERRUPT_BUSY_MS - 1), INTERRUPT_WAIT);
        assert_int_equal(at(w, from + 60000 + INTERRUPT_BUSY_MS), INTERRUPT_SEND);
        assert_int_equal(at(w, from + 90000), INTERRUPT_NOTHING);
    }
}

static void behind_another_cell_a_run_is_not_signalled_without_its_busy(void **state)
{
    struct world *w = world(INTERRUPT_BY_SIGNAL);

    (void)state;
    assert_int_equal(ask(w), INTERRUPT_WAIT);
    w->m.may_run = 0;
    assert_int_equal(at(w, 60000), INTERRUPT_WAIT);
    w->m.may_run = 1; /* its time begins now */
    assert_int_equal(at(w, 60000 + INTERRUPT_BUSY_FOREIGN_MS - 1), INTERRUPT_WAIT);
    assert_int_equal(at(w, 60000 + INTERRUPT_BUSY_FOREIGN_MS), INTERRUPT_SEND);
}

static void while_the_kernel_starts_nothing_is_sent_and_nothing_lost(void **state)
{
    static const enum interrupt_way ways[] = { INTERRUPT_BY_SIGNAL, INTERRUPT_BY_MESSAGE,
                                               INTERRUPT_BY_NAME };

    (void)state;
    for (size_t n = 0; n < 3; n++) {
        struct world *w = world(ways[n]);
        w->m.can_take = 0;
        assert_int_equal(ask(w), INTERRUPT_WAIT);
        assert_int_equal(at(w, 60000), INTERRUPT_WAIT);
        w->m.can_take = 1;
        assert_int_equal(busy(w), INTERRUPT_SEND);
    }
}

static void a_run_that_ended_takes_its_interrupt_with_it(void **state)
{
    struct world *w = world(INTERRUPT_BY_SIGNAL);
    struct query next = { .number = 8, .id = "next", .busy = 1, .is_run = 1 };

    (void)state;
    assert_int_equal(ask(w), INTERRUPT_WAIT);
    w->m.target = NULL;
    assert_int_equal(at(w, 200), INTERRUPT_NOTHING);
    assert_false(interrupt_is_pending(w->i));
    w->m.target = &next;
    assert_int_equal(interrupt_busy(&next.interrupt, &w->m), INTERRUPT_NOTHING);
    assert_int_equal(at(w, 60000), INTERRUPT_NOTHING);
    assert_int_equal(interrupt_ask(&next.interrupt, &w->m), INTERRUPT_SEND); /* of its own */
}

static void what_the_gateway_before_sent_has_begun(void **state)
{
    struct world *w = world(INTERRUPT_BY_SIGNAL);

    (void)state;
    w->q.inherited = 1;
    assert_int_equal(ask(w), INTERRUPT_SEND);
    w = world(INTERRUPT_BY_NAME);
    w->q.inherited = 1;
    assert_int_equal(ask(w), INTERRUPT_NAME);
    interrupt_named(w->i, "m1");
    assert_int_equal(at(w, INTERRUPT_ANSWER_MS), INTERRUPT_SEND);
}

static void a_client_that_sends_a_message_itself_needs_no_second_one(void **state)
{
    static const struct {
        enum interrupt_way way;
        int busy;
        enum interrupt_act want;
    } rows[] = {
        { INTERRUPT_BY_SIGNAL, 1, INTERRUPT_NOTHING },
        { INTERRUPT_BY_MESSAGE, 1, INTERRUPT_NOTHING },
        { INTERRUPT_BY_SIGNAL, 0, INTERRUPT_WAIT }, /* its own came too early */
        { INTERRUPT_BY_MESSAGE, 0, INTERRUPT_WAIT },
        { INTERRUPT_BY_NAME, 1, INTERRUPT_NAME }, /* our runtime heeds none without a name */
        { INTERRUPT_BY_NAME, 0, INTERRUPT_NAME },
    };

    (void)state;
    for (size_t n = 0; n < sizeof rows / sizeof rows[0]; n++) {
        struct world *w = world(rows[n].way);
        w->m.sent_by_client = 1;
        w->q.busy = rows[n].busy;
        assert_int_equal(ask(w), rows[n].want);
    }
    struct world *w = world(INTERRUPT_BY_MESSAGE);
    w->m.sent_by_client = 1;
    w->m.target = NULL;
    assert_int_equal(ask(w), INTERRUPT_NOTHING);
    w = world(INTERRUPT_BY_NAME);
    w->m.sent_by_client = w->m.works = 1;
    w->m.target = NULL;
    assert_int_equal(ask(w), INTERRUPT_SEND);
}

static void a_run_without_a_name_of_its_own_is_signalled_at_busy(void **state)
{
    struct world *w = world(INTERRUPT_BY_NAME);

    (void)state;
    w->q.id[0] = '\0';
    assert_int_equal(ask(w), INTERRUPT_WAIT);
    assert_int_equal(busy(w), INTERRUPT_SEND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_nothing_to_interrupt_no_signal_is_sent),
        cmocka_unit_test(a_run_that_is_not_busy_yet_is_signalled_when_it_is),
        cmocka_unit_test(a_busy_run_is_signalled_at_once_and_again_only_when_asked_again),
        cmocka_unit_test(the_busy_of_another_run_brings_nothing),
        cmocka_unit_test(the_interrupt_of_another_run_does_not_take_the_place_of_one_that_waits),
        cmocka_unit_test(by_name_each_is_sent_since_the_run_may_have_caught_the_one_before),
        cmocka_unit_test(several_clients_that_interrupt_together_send_one_signal),
        cmocka_unit_test(a_named_one_that_the_kernel_took_is_not_followed_by_a_signal),
        cmocka_unit_test(a_named_one_without_an_answer_in_time_is_followed_by_the_signal),
        cmocka_unit_test(an_answer_that_waits_behind_output_is_waited_for_but_not_for_ever),
        cmocka_unit_test(a_named_one_that_came_too_late_waits_for_busy),
        cmocka_unit_test(a_run_that_cannot_say_busy_is_signalled_all_the_same),
        cmocka_unit_test(behind_another_cell_a_run_is_not_signalled_without_its_busy),
        cmocka_unit_test(while_the_kernel_starts_nothing_is_sent_and_nothing_lost),
        cmocka_unit_test(a_run_that_ended_takes_its_interrupt_with_it),
        cmocka_unit_test(what_the_gateway_before_sent_has_begun),
        cmocka_unit_test(a_client_that_sends_a_message_itself_needs_no_second_one),
        cmocka_unit_test(a_run_without_a_name_of_its_own_is_signalled_at_busy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
