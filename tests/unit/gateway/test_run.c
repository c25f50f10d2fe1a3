/* Runs and their queries: no end state is a lie, and each run has one. */
#include "run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "query.h"

static void ok_needs_the_reply_and_the_idle_in_any_order(void **state)
{
    (void)state;
    for (int reply_first = 0; reply_first < 2; reply_first++) {
        struct run r = { 0 };
        run_busy(&r);
        assert_int_equal(r.state, RUN_RUNNING);
        if (reply_first)
            run_reply(&r, "ok", "", 10);
        else
            run_idle(&r, 10);
        assert_false(run_ended(&r));
        if (reply_first)
            run_idle(&r, 11);
        else
            run_reply(&r, "ok", "", 11);
        assert_int_equal(r.state, RUN_OK);
    }
}

static void the_reply_says_how_it_ended(void **state)
{
    static const struct {
        const char *status, *ename;
        int interrupted;
        enum run_state want;
    } rows[] = {
        { "ok", "", 0, RUN_OK },
        { "ok", "", 1, RUN_OK }, /* the interrupt missed: the cell ran to its end */
        { "error", "ValueError", 0, RUN_ERROR },
        { "error", "ValueError", 1, RUN_ERROR },
        { "error", "KeyboardInterrupt", 0, RUN_ERROR }, /* the code raised it itself */
        { "error", "KeyboardInterrupt", 1, RUN_INTERRUPTED },
        { "aborted", "", 0, RUN_ABORTED },
        { "abort", "", 1, RUN_ABORTED },
        { "", "", 0, RUN_ERROR }, /* a reply without a status is not "ok" */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run r = { 0 };
        run_busy(&r);
        if (rows[i].interrupted)
            run_interrupt(&r, 5);
        run_reply(&r, rows[i].status, rows[i].ename, 10);
        run_idle(&r, 10);
        assert_int_equal(r.state, rows[i].want);
    }
}

static void an_idle_without_a_reply_ends_after_the_grace_time(void **state)
{
    (void)state;
    for (int interrupted = 0; interrupted < 2; interrupted++) {
        struct run r = { 0 };
        run_busy(&r);
        if (interrupted)
            run_interrupt(&r, 90);
        run_idle(&r, 100);
        assert_int_equal(run_check(&r, 100 + RUN_IDLE_GRACE_MS - 1), RUN_WAIT);
        assert_int_equal(run_check(&r, 100 + RUN_IDLE_GRACE_MS), RUN_ENDED);
        assert_int_equal(r.state, interrupted ? RUN_INTERRUPTED : RUN_LOST);
        assert_true(run_wants_reply(&r));
        /* What comes later changes nothing. */
        run_reply(&r, "ok", "", 5000);
        assert_int_equal(r.state, interrupted ? RUN_INTERRUPTED : RUN_LOST);
    }
}

static void a_reply_whose_idle_is_lost_ends_with_what_it_said(void **state)
{
    struct run r = { 0 };

    (void)state;
    run_busy(&r);
    run_reply(&r, "error", "ValueError", 100);
    assert_int_equal(run_check(&r, 100 + RUN_REPLY_GRACE_MS - 1), RUN_WAIT);
    assert_int_equal(run_check(&r, 100 + RUN_REPLY_GRACE_MS), RUN_ENDED);
    assert_int_equal(r.state, RUN_ERROR);
}

static unsigned repeats(struct run *r)
{
    unsigned n = 0;

    for (uint64_t now = 0; now < 60000; now += 100) {
        if (run_check(r, now) == RUN_INTERRUPT_AGAIN) {
            run_interrupt(r, now);
            n++;
        }
    }
    return n;
}

static void an_interrupt_is_repeated_but_not_for_ever(void **state)
{
    struct run queued = { 0 }, running = { 0 };

    (void)state;
    run_interrupt(&queued, 0); /* before the kernel took the request */
    assert_int_equal(repeats(&queued), 3);
    run_busy(&running);
    run_interrupt(&running, 0);
    assert_int_equal(repeats(&running), 1);
    struct run ended = { 0 };
    run_interrupt(&ended, 0);
    run_end(&ended, RUN_KILLED);
    assert_int_equal(repeats(&ended), 0);
}

static void what_an_interrupt_ends_after_the_deadline_is_timed_out_and_nothing_else(void **state)
{
    static const struct {
        const char *status, *ename;
        enum run_state want;
    } rows[] = {
        { "error", "KeyboardInterrupt", RUN_TIMED_OUT },
        { "abort", "", RUN_TIMED_OUT },
        { "ok", "", RUN_OK }, /* it ended just then */
        { "error", "ValueError", RUN_ERROR },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run r = { 0 };
        run_busy(&r);
        run_overdue(&r, 5);
        run_reply(&r, rows[i].status, rows[i].ename, 10);
        run_idle(&r, 10);
        assert_int_equal(r.state, rows[i].want);
    }
    struct run silent = { 0 };
    run_busy(&silent);
    run_overdue(&silent, 5);
    assert_int_equal(repeats(&silent), 0); /* the ladder has its own */
    run_idle(&silent, 60000);
    assert_int_equal(run_check(&silent, 60000 + RUN_IDLE_GRACE_MS), RUN_ENDED);
    assert_int_equal(silent.state, RUN_TIMED_OUT);
    assert_true(run_wants_reply(&silent));
}

static void a_death_ends_a_run_once(void **state)
{
    struct run r = { 0 };

    (void)state;
    run_busy(&r);
    run_end(&r, RUN_KERNEL_DIED);
    run_end(&r, RUN_LOST);
    run_reply(&r, "ok", "", 1);
    run_idle(&r, 1);
    assert_int_equal(r.state, RUN_KERNEL_DIED);
}

/* ---- queries ---- */

static struct query *add(struct queries *q, uint64_t seat, const char *id, const char *type)
{
    struct query what = { .seat = seat, .channel = JMSG_SHELL, .header = VIEW_STR("{}") };

    snprintf(what.id, sizeof what.id, "%s", id);
    snprintf(what.session, sizeof what.session, "s%u", (unsigned)seat);
    snprintf(what.type, sizeof what.type, "%s", type);
    what.is_run = strcmp(type, "execute_request") == 0;
    return queries_add(q, &what);
}

static void numbers_rise_and_are_never_used_twice(void **state)
{
    struct queries *q = queries_new();

    (void)state;
    assert_int_equal(add(q, 1, "a", "execute_request")->number, 1);
    assert_int_equal(queries_next_number(q), 2);
    queries_count_from(q, 10);
    assert_int_equal(add(q, 1, "b", "execute_request")->number, 11);
    queries_count_from(q, 5); /* lower than what was given out */
    assert_int_equal(add(q, 1, "c", "execute_request")->number, 12);
    queries_clear(q);
    assert_int_equal(add(q, 1, "d", "execute_request")->number, 13);
    q = queries_free(q);
}

/* What the gateway before this one sent keeps the number that it had there, in whatever order it comes. */
static void who_keeps_its_number_of_before_takes_none_of_the_others(void **state)
{
    struct queries *q = queries_new();

    (void)state;
    struct query *later = add(q, 1, "later", "execute_request");
    queries_renumber(q, later, 7);
    assert_int_equal(later->number, 7);
    struct query *earlier = add(q, 1, "earlier", "execute_request");
    assert_int_equal(earlier->number, 8);
    queries_renumber(q, earlier, 4);
    assert_int_equal(earlier->number, 4);
    assert_int_equal(queries_next_number(q),
                     8); /* the number that it had for a moment is free again */
    assert_int_equal(add(q, 1, "new", "execute_request")->number, 8);
    assert_int_equal(later->number, 7);
    q = queries_free(q);
}

static void a_reply_is_believed_once_and_only_when_asked_for(void **state)
{
    struct queries *q = queries_new();
    int second;

    (void)state;
    struct query *r = add(q, 1, "a", "execute_request");
    assert_null(queries_match_reply(q, 1, JMSG_SHELL, "b", "execute_reply", &second));
    assert_null(queries_match_reply(q, 2, JMSG_SHELL, "a", "execute_reply", &second));
    assert_null(queries_match_reply(q, 1, JMSG_CONTROL, "a", "execute_reply", &second));
    assert_ptr_equal(queries_match_reply(q, 1, JMSG_SHELL, "a", "execute_reply", &second), r);
    assert_false(second);
    r->replied = 1;
    assert_ptr_equal(queries_match_reply(q, 1, JMSG_SHELL, "a", "execute_reply", &second), r);
    assert_true(second);
    /* Another kind of message for the same request is no second reply. */
    assert_ptr_equal(queries_match_reply(q, 1, JMSG_SHELL, "a", "usage_reply", &second), r);
    assert_false(second);
    q = queries_free(q);
}

static void constant_ids_are_answered_oldest_first(void **state)
{
    struct queries *q = queries_new();
    int second;

    (void)state;
    struct query *first = add(q, 1, "const", "execute_request");
    struct query *next = add(q, 1, "const", "execute_request");
    assert_ptr_equal(queries_match_reply(q, 1, JMSG_SHELL, "const", "execute_reply", &second),
                     first);
    first->replied = 1;
    assert_ptr_equal(queries_match_reply(q, 1, JMSG_SHELL, "const", "execute_reply", &second),
                     next);
    assert_ptr_equal(queries_match_status(q, "const", "s1"), first);
    first->idle = 1;
    assert_ptr_equal(queries_match_status(q, "const", "s1"), next);
    q = queries_free(q);
}

static void a_finished_query_is_forgotten_and_its_run_counted_out_once(void **state)
{
    struct queries *q = queries_new();

    (void)state;
    struct query *r = add(q, 1, "a", "execute_request");
    assert_int_equal(queries_runs(q), 1);
    run_busy(&r->run);
    r->replied = 1;
    run_reply(&r->run, "ok", "", 1);
    assert_int_equal(queries_settle(q, r), 0);
    r->idle = 1;
    run_idle(&r->run, 2);
    assert_int_equal(queries_settle(q, r), 1);
    assert_int_equal(queries_runs(q), 0);
    assert_null(queries_first(q));
    /* comm messages have no reply: idle is their end. */
    r = add(q, 1, "c", "comm_msg");
    r->idle = 1;
    assert_int_equal(queries_settle(q, r), 1);
    /* A request whose reply has not come stays: a late one is still its own. */
    r = add(q, 1, "d", "complete_request");
    r->idle = 1;
    assert_int_equal(queries_settle(q, r), 0);
    q = queries_free(q);
}

static void the_first_of_a_shell_may_run_unless_something_else_is_known_to(void **state)
{
    struct queries *q = queries_new();

    (void)state;
    struct query *first = add(q, 1, "a", "execute_request");
    struct query *second = add(q, 2, "b", "execute_request");
    struct query *other = add(q, 1, "c", "execute_request");
    snprintf(other->subshell, sizeof other->subshell, "sub");
    queries_mark_next(q, 1);
    assert_true(first->is_next && !second->is_next && other->is_next);
    /* A message of a widget is handled before it. */
    struct query *comm = add(q, 1, "d", "comm_msg");
    queries_mark_next(q, 1);
    assert_true(first->is_next);
    comm->busy = 1;
    queries_mark_next(q, 1);
    assert_true(!first->is_next && other->is_next);
    comm->idle = 1;
    queries_mark_next(q, 1);
    assert_true(first->is_next);
    first->busy = 1;
    run_busy(&first->run);
    queries_mark_next(q, 1);
    assert_true(!first->is_next && !second->is_next);
    first->idle = first->replied = 1;
    run_end(&first->run, RUN_OK);
    queries_mark_next(q, 1);
    assert_true(second->is_next);
    q = queries_free(q);
}

static void a_run_behind_another_one_is_not_what_a_signal_would_hit(void **state)
{
    struct queries *q = queries_new();

    (void)state;
    struct query *first = add(q, 1, "a", "execute_request");
    struct query *second = add(q, 2, "b", "execute_request");
    struct query *comm = add(q, 1, "c", "comm_msg");
    queries_mark_next(q, 1);
    assert_true(query_may_run(first) && !query_may_run(second));
    comm->busy = 1; /* the callback of a widget */
    queries_mark_next(q, 1);
    assert_true(!query_may_run(first) && !query_may_run(second));
    first->busy = 1;
    run_busy(&first->run);
    queries_mark_next(q, 1);
    assert_true(query_may_run(first) && !query_may_run(second));
    second->inherited = 1; /* nobody knows */
    assert_true(query_may_run(second));
    q = queries_free(q);
}

static void a_request_whose_idle_was_lost_does_not_keep_a_run_from_being_next(void **state)
{
    struct queries *q = queries_new();

    (void)state;
    struct query *info = add(q, 1, "i", "kernel_info_request");
    struct query *comm = add(q, 2, "c", "comm_msg");
    struct query *run = add(q, 1, "r", "execute_request");
    info->busy = 1;
    queries_mark_next(q, 100000);
    assert_true(query_works(info, 100000) && !run->is_next); /* without a reply it may work on */
    info->replied = 1;
    info->replied_ms = 100000;
    queries_mark_next(q, 100000 + RUN_REPLY_GRACE_MS - 1);
    assert_false(run->is_next);
    queries_mark_next(q, 100000 + RUN_REPLY_GRACE_MS);
    assert_true(run->is_next && !query_works(info, 100000 + RUN_REPLY_GRACE_MS));
    comm->busy = 1; /* it has no reply */
    queries_mark_next(q, 900000);
    assert_false(run->is_next);
    comm->idle = run->busy = run->replied = 1; /* the end of a run has rules of its own */
    assert_true(query_works(run, 900000));
    q = queries_free(q);
}

static void a_new_process_has_runs_of_new_numbers_that_nobody_interrupted(void **state)
{
    struct queries *q = queries_new();

    (void)state;
    add(q, 1, "a", "execute_request");
    struct query *old = add(q, 1, "b", "execute_request");
    uint64_t number = old->number;
    old->interrupt.stage = STAGE_HELD;
    queries_clear(q);
    assert_null(queries_first(q));
    assert_int_equal(queries_runs(q), 0);
    struct query *fresh = add(q, 1, "b", "execute_request");
    assert_int_equal(fresh->number, number + 1);
    assert_null(queries_by_number(q, number));
    assert_false(interrupt_is_pending(&fresh->interrupt));
    q = queries_free(q);
}

static void more_subshells_than_there_are_places_cost_only_themselves(void **state)
{
    struct queries *q = queries_new();
    unsigned marked = 0;
    char id[32];

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "%u", i);
        struct query *r = add(q, 1, id, "execute_request");
        snprintf(r->subshell, sizeof r->subshell, "%u", i);
    }
    queries_mark_next(q, 1);
    for (struct query *r = queries_first(q); r != NULL; r = queries_next(q, r))
        marked += r->is_next != 0;
    assert_true(marked > 0 && marked < 200);
    q = queries_free(q);
}

static void a_seat_with_too_many_open_runs_has_to_wait(void **state)
{
    struct queries *q = queries_new();
    char id[32];

    (void)state;
    for (unsigned i = 0; i < QUERIES_SEAT_MAX; i++) {
        snprintf(id, sizeof id, "%u", i);
        assert_true(queries_room(q, 1, JMSG_SHELL, 2));
        assert_non_null(add(q, 1, id, "execute_request"));
    }
    assert_false(queries_room(q, 1, JMSG_SHELL, 2));
    assert_null(add(q, 1, "more", "execute_request"));
    assert_true(queries_room(q, 2, JMSG_SHELL, 2));
    assert_true(queries_room(q, 1, JMSG_CONTROL, 2)); /* an interrupt, say */
    struct query *r = queries_first(q);
    run_end(&r->run, RUN_LOST);
    queries_settle(q, r);
    assert_true(queries_room(q, 1, JMSG_SHELL, 2));
    assert_non_null(add(q, 1, "more", "execute_request"));
    assert_int_equal(queries_runs(q), QUERIES_SEAT_MAX);
    q = queries_free(q);
}

static void requests_that_nobody_answers_are_forgotten_oldest_first(void **state)
{
    struct queries *q = queries_new();
    char id[32];

    (void)state;
    for (unsigned i = 0; i < 3 * QUERIES_SEAT_MAX; i++) {
        snprintf(id, sizeof id, "%u", i);
        assert_non_null(add(q, 1, id, "kernel_info_request"));
    }
    assert_int_equal(queries_count(q, 1), QUERIES_SEAT_MAX);
    assert_string_equal(queries_first(q)->id, "2048");
    q = queries_free(q);
}

static void who_is_gone_leaves_its_runs_and_what_the_kernel_works_on(void **state)
{
    struct queries *q = queries_new();

    (void)state;
    struct query *run = add(q, 1, "run", "execute_request");
    add(q, 1, "asked", "comm_info_request");
    struct query *works = add(q, 1, "works", "comm_msg");
    works->busy = 1;
    struct query *other = add(q, 2, "other", "comm_info_request");
    queries_leave(q, 1, 0);
    assert_ptr_equal(queries_first(q), run);
    assert_ptr_equal(queries_next(q, run), works);
    assert_ptr_equal(queries_next(q, works), other);
    assert_null(queries_next(q, other));
    assert_int_equal(queries_forgotten(q), 1);
    /* Unless they are too many: a kernel may call busy what it likes. */
    for (unsigned seat = 3; seat < 3 + QUERIES_LEFT_MAX / 1000; seat++) {
        for (unsigned i = 0; i < 1000; i++)
            add(q, seat, "x", "comm_msg")->busy = 1;
    }
    queries_leave(q, 3, 0);
    assert_int_equal(queries_count(q, 3), 1000);
    for (unsigned i = 0; i < 1000; i++)
        add(q, 9, "x", "comm_msg")->busy = 1;
    queries_leave(q, 3, 0);
    assert_in_range(queries_count(q, 3), 1, 999);
    q = queries_free(q);
}

static struct query *add_long(struct queries *q, uint64_t seat, const char *type, size_t header)
{
    uint8_t *bytes = calloc(1, header);
    struct query what = { .seat = seat, .channel = JMSG_SHELL, .header = { bytes, header } };

    snprintf(what.type, sizeof what.type, "%s", type);
    what.is_run = strcmp(type, "execute_request") == 0;
    struct query *r = queries_add(q, &what);
    free(bytes);
    return r;
}

static void long_headers_are_forgotten_by_their_bytes(void **state)
{
    struct queries *q = queries_new();
    enum { HEADER = 60000, MOST = QUERIES_SEAT_BYTES / HEADER };

    (void)state;
    for (unsigned i = 0; i < 3 * MOST; i++)
        assert_non_null(add_long(q, 1, "complete_request", HEADER));
    assert_int_equal(queries_count(q, 1), MOST);
    assert_int_equal(queries_first(q)->number, 2 * MOST + 1);
    assert_non_null(add_long(q, 2, "complete_request", HEADER));
    assert_int_equal(queries_count(q, 1), MOST);
    /* One that is more than all that may be kept is taken alone. */
    assert_non_null(add_long(q, 3, "complete_request", QUERIES_SEAT_BYTES + 1));
    assert_int_equal(queries_count(q, 3), 1);
    q = queries_free(q);
}

static void runs_with_long_headers_have_to_wait_and_none_is_forgotten(void **state)
{
    struct queries *q = queries_new();
    enum { HEADER = 60000, MOST = QUERIES_SEAT_BYTES / HEADER };

    (void)state;
    for (unsigned i = 0; i < MOST; i++) {
        assert_true(queries_room(q, 1, JMSG_SHELL, HEADER));
        assert_non_null(add_long(q, 1, "execute_request", HEADER));
    }
    assert_false(queries_room(q, 1, JMSG_SHELL, HEADER));
    assert_null(add_long(q, 1, "execute_request", HEADER));
    assert_null(add_long(q, 1, "complete_request", HEADER));
    assert_int_equal(queries_count(q, 1), MOST);
    assert_int_equal(queries_runs(q), MOST);
    run_end(&queries_first(q)->run, RUN_LOST);
    assert_true(queries_room(q, 1, JMSG_SHELL, HEADER)); /* what has ended gives way */
    assert_non_null(add_long(q, 1, "execute_request", HEADER));
    q = queries_free(q);
}

/* By removing in any order: the order of what is left stays. */
static void each_seat_has_its_own_in_their_order(void **state)
{
    struct queries *q = queries_new();
    struct query *r[6];

    (void)state;
    for (unsigned i = 0; i < 6; i++)
        r[i] =
            add(q, 1 + (i % 2) * 256, "same", "kernel_info_request"); /* two seats of one bucket */
    queries_remove(q, r[2]);
    queries_remove(q, r[4]);
    assert_int_equal(queries_count(q, 1), 1);
    assert_int_equal(queries_count(q, 257), 3);
    queries_remove(q, r[0]);
    assert_int_equal(queries_count(q, 1), 0);
    assert_non_null(add(q, 1, "again", "kernel_info_request"));
    assert_int_equal(queries_count(q, 1), 1);
    queries_remove(q, r[5]);
    queries_remove(q, r[1]);
    assert_ptr_equal(queries_first(q), r[3]);
    assert_int_equal(queries_count(q, 257), 1);
    q = queries_free(q);
}

static void an_interrupt_is_meant_for_what_runs_not_for_what_waits_behind_it(void **state)
{
    struct queries *q = queries_new();

    (void)state;
    struct query *a = add(q, 1, "a", "execute_request");
    struct query *b = add(q, 2, "b", "execute_request");
    struct query *sub = add(q, 1, "c", "execute_request");
    snprintf(sub->subshell, sizeof sub->subshell, "sub");
    queries_interrupt(q, 7);
    assert_int_equal(a->run.interrupts, 1); /* not taken yet: the oldest of its shell */
    assert_int_equal(b->run.interrupts, 0);
    assert_int_equal(sub->run.interrupts, 1);
    run_busy(&b->run); /* b runs, whatever was sent first */
    queries_interrupt(q, 8);
    assert_int_equal(a->run.interrupts, 1);
    assert_int_equal(b->run.interrupts, 1);
    q = queries_free(q);
}

static void an_interrupt_after_the_reply_is_meant_for_the_run_behind(void **state)
{
    struct queries *q = queries_new();

    (void)state;
    assert_null(queries_target(q));
    struct query *sub = add(q, 1, "c", "execute_request");
    snprintf(sub->subshell, sizeof sub->subshell, "sub");
    assert_null(queries_target(q)); /* no signal reaches a subshell */
    struct query *a = add(q, 1, "a", "execute_request");
    struct query *b = add(q, 2, "b", "execute_request");
    assert_ptr_equal(queries_target(q), a);
    run_busy(&a->run);
    assert_ptr_equal(queries_target(q), a);
    run_reply(&a->run, "ok", "", 5);
    assert_ptr_equal(queries_target(q), b); /* a's idle is still to come, its code is over */
    queries_interrupt(q, 7);
    assert_int_equal(a->run.interrupts, 0);
    assert_int_equal(b->run.interrupts, 1);
    run_idle(&b->run, 8);
    assert_null(queries_target(q));
    assert_ptr_equal(queries_by_number(q, b->number), b);
    assert_null(queries_by_number(q, b->number + 1));
    q = queries_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ok_needs_the_reply_and_the_idle_in_any_order),
        cmocka_unit_test(the_reply_says_how_it_ended),
        cmocka_unit_test(an_idle_without_a_reply_ends_after_the_grace_time),
        cmocka_unit_test(a_reply_whose_idle_is_lost_ends_with_what_it_said),
        cmocka_unit_test(an_interrupt_is_repeated_but_not_for_ever),
        cmocka_unit_test(what_an_interrupt_ends_after_the_deadline_is_timed_out_and_nothing_else),
        cmocka_unit_test(an_interrupt_after_the_reply_is_meant_for_the_run_behind),
        cmocka_unit_test(a_death_ends_a_run_once),
        cmocka_unit_test(numbers_rise_and_are_never_used_twice),
        cmocka_unit_test(who_keeps_its_number_of_before_takes_none_of_the_others),
        cmocka_unit_test(a_reply_is_believed_once_and_only_when_asked_for),
        cmocka_unit_test(constant_ids_are_answered_oldest_first),
        cmocka_unit_test(a_finished_query_is_forgotten_and_its_run_counted_out_once),
        cmocka_unit_test(the_first_of_a_shell_may_run_unless_something_else_is_known_to),
        cmocka_unit_test(a_run_behind_another_one_is_not_what_a_signal_would_hit),
        cmocka_unit_test(a_request_whose_idle_was_lost_does_not_keep_a_run_from_being_next),
        cmocka_unit_test(a_new_process_has_runs_of_new_numbers_that_nobody_interrupted),
        cmocka_unit_test(more_subshells_than_there_are_places_cost_only_themselves),
        cmocka_unit_test(a_seat_with_too_many_open_runs_has_to_wait),
        cmocka_unit_test(requests_that_nobody_answers_are_forgotten_oldest_first),
        cmocka_unit_test(who_is_gone_leaves_its_runs_and_what_the_kernel_works_on),
        cmocka_unit_test(long_headers_are_forgotten_by_their_bytes),
        cmocka_unit_test(runs_with_long_headers_have_to_wait_and_none_is_forgotten),
        cmocka_unit_test(each_seat_has_its_own_in_their_order),
        cmocka_unit_test(an_interrupt_is_meant_for_what_runs_not_for_what_waits_behind_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
