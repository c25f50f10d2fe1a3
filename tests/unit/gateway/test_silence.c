/* Runs that a kernel threw away without a word: which are ended, and which never. */
#include "silence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "query.h"

enum { SENT = 10000, DUE = SENT + SILENCE_ASK_MS };

struct world {
    struct queries *q;
    struct silence s;
};

static int set_up(void **state)
{
    static struct world w;

    w = (struct world){ .q = queries_new() };
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    w->q = queries_free(w->q);
    return 0;
}

static struct query *add(struct world *w, uint64_t seat, const char *type, uint64_t sent_ms)
{
    struct query what = { .seat = seat, .channel = JMSG_SHELL, .header = VIEW_STR("{}") };

    what.is_run = strcmp(type, "execute_request") == 0;
    what.reached = 1;
    what.sent_us = sent_ms * 1000;
    snprintf(what.type, sizeof what.type, "%s", type);
    return queries_add(w->q, &what);
}

static struct query *add_run(struct world *w, uint64_t seat)
{
    return add(w, seat, "execute_request", SENT);
}

static void says_busy(struct query *r)
{
    r->busy = 1;
    run_busy(&r->run);
}

/* The kernel answers until nothing more is asked; how often it did. */
static unsigned answer_all(struct world *w, uint64_t now)
{
    unsigned n = 1;

    while (silence_answered(&w->s, w->q, now))
        n++;
    return n;
}

static void
a_run_is_ignored_once_more_questions_were_answered_than_may_stand_before_it(void **state)
{
    struct world *w = *state;
    struct query *r = add_run(w, 1);

    assert_false(silence_look(&w->s, w->q, DUE - 1)); /* nothing is asked of a normal cell */
    assert_true(silence_look(&w->s, w->q, DUE));
    assert_false(
        silence_is_ignored(&w->s, r, DUE + 100000)); /* who answers nothing may still take it */
    assert_true(silence_answered(&w->s, w->q, DUE + 1));
    assert_false(silence_is_ignored(&w->s, r, DUE + 100000));
    assert_true(silence_answered(&w->s, w->q, DUE + 2));
    assert_false(silence_answered(&w->s, w->q, DUE + 3));
    assert_false(silence_look(&w->s, w->q, DUE + 3)); /* and no more is asked */
    assert_false(silence_is_ignored(&w->s, r, DUE + 3 + SILENCE_GRACE_MS - 1));
    assert_true(silence_is_ignored(&w->s, r, DUE + 3 + SILENCE_GRACE_MS));
}

static void requests_before_it_take_questions_of_their_own(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 5; i++)
        add(w, 1, "complete_request", SENT);
    add_run(w, 1);
    assert_true(silence_look(&w->s, w->q, DUE));
    assert_int_equal(answer_all(w, DUE), 6 + 2);
}

static void requests_that_were_forgotten_unread_count_until_a_round_was_answered(void **state)
{
    struct world *w = *state;

    for (unsigned i = 0; i < QUERIES_SEAT_MAX + 10; i++)
        add(w, 1, "complete_request", SENT);
    struct query *r = add_run(w, 1);
    assert_true(silence_look(&w->s, w->q, DUE));
    assert_int_equal(answer_all(w, DUE), QUERIES_SEAT_MAX + 11 + 2);
    assert_true(silence_is_ignored(&w->s, r, DUE + SILENCE_GRACE_MS));
    run_end(&r->run, RUN_LOST);
    add_run(w, 2);
    assert_true(silence_look(&w->s, w->q, DUE));
    assert_int_equal(answer_all(w, DUE), QUERIES_SEAT_MAX + 1 + 2);
}

static void what_waits_behind_a_running_cell_is_not_asked_about(void **state)
{
    struct world *w = *state;
    struct query *works = add_run(w, 2);

    add_run(w, 1);
    says_busy(works);
    assert_false(silence_look(&w->s, w->q, DUE + 100000));
    works->idle = 1;
    run_idle(&works->run, DUE);
    assert_true(silence_look(&w->s, w->q, DUE + 100000)); /* its code is over */
    works->idle = 0;
    works->busy = 0;
    works->heard = 1;
    w->s = (struct silence){ 0 };
    assert_false(silence_look(&w->s, w->q, DUE + 100000));
}

static void a_cell_that_begins_meanwhile_makes_the_answers_count_for_nothing(void **state)
{
    struct world *w = *state;
    struct query *r = add_run(w, 1), *other = add_run(w, 2);

    assert_true(silence_look(&w->s, w->q, DUE));
    assert_true(silence_answered(&w->s, w->q, DUE));
    says_busy(other);
    assert_false(silence_answered(&w->s, w->q, DUE));
    assert_false(silence_look(&w->s, w->q, DUE));
    assert_false(silence_is_ignored(&w->s, r, DUE + 100000));
    run_end(&other->run, RUN_OK);
    other->replied = other->idle = 1;
    assert_true(silence_look(&w->s, w->q, DUE));
    assert_int_equal(answer_all(w, DUE), 1 + 2);
}

static void a_run_that_says_anything_is_never_ignored(void **state)
{
    struct world *w = *state;

    for (int what = 0; what < 5; what++) {
        struct query *r = add_run(w, 1);
        assert_true(silence_look(&w->s, w->q, DUE));
        answer_all(w, DUE);
        assert_true(silence_is_ignored(&w->s, r, DUE + SILENCE_GRACE_MS));
        r->busy = what == 0;
        r->replied = what == 1;
        r->idle = what == 2;
        r->doubtful = what == 3;
        r->heard = what == 4; /* some kernels forget the busy */
        assert_false(silence_is_ignored(&w->s, r, DUE + SILENCE_GRACE_MS));
        queries_clear(w->q);
    }
}

static void some_runs_are_not_asked_about(void **state)
{
    struct world *w = *state;
    struct query *r = add_run(w, 1);

    snprintf(r->subshell, sizeof r->subshell, "s");
    assert_false(silence_look(&w->s, w->q, DUE));
    r->subshell[0] = '\0';
    r->inherited = 1;
    assert_false(silence_look(&w->s, w->q, DUE));
    r->inherited = 0;
    r->reached = 0; /* it may be in a socket of ours still */
    assert_false(silence_look(&w->s, w->q, DUE));
    r->reached = 1;
    r->bytes = 64 << 20; /* or on its way */
    assert_false(silence_look(&w->s, w->q, DUE + 16000));
    assert_true(silence_look(&w->s, w->q, DUE + 16384));
}

static void a_run_that_came_after_the_questions_has_a_round_of_its_own(void **state)
{
    struct world *w = *state;
    struct query *r = add_run(w, 1);

    assert_true(silence_look(&w->s, w->q, DUE));
    struct query *late = add(w, 1, "execute_request", DUE);
    answer_all(w, DUE);
    assert_true(silence_is_ignored(&w->s, r, DUE + SILENCE_GRACE_MS));
    assert_false(silence_is_ignored(&w->s, late, DUE + 100000));
    run_end(&r->run, RUN_LOST);
    assert_false(silence_look(&w->s, w->q, DUE + SILENCE_ASK_MS - 1));
    assert_false(silence_is_ignored(&w->s, late, DUE + 100000));
    assert_true(silence_look(&w->s, w->q, DUE + SILENCE_ASK_MS));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_run_is_ignored_once_more_questions_were_answered_than_may_stand_before_it),
        TEST(requests_before_it_take_questions_of_their_own),
        TEST(requests_that_were_forgotten_unread_count_until_a_round_was_answered),
        TEST(what_waits_behind_a_running_cell_is_not_asked_about),
        TEST(a_cell_that_begins_meanwhile_makes_the_answers_count_for_nothing),
        TEST(a_run_that_says_anything_is_never_ignored),
        TEST(some_runs_are_not_asked_about),
        TEST(a_run_that_came_after_the_questions_has_a_round_of_its_own),
    };

    return cmocka_run_group_tests_name("silence", tests, NULL, NULL);
}
