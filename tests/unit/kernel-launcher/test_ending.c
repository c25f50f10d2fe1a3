/* The ways out: STOP, the end of init, deadlines. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>

#include <cmocka.h>

#include "clock.h"
#include "err.h"
#include "sandbox.h"
#include "world.h"

static struct answer a; /* large */

/* ---- STOP ---- */

static void stop_of_a_kernel_is_answered_when_its_group_is_gone(void **state)
{
    struct world *w = *state;
    struct launch_stop m = { world_create(w), 1, 1 };

    world_start(w, m.sandbox, 1, 1, "wait");
    fake.busy = 5;
    world_fresh(&a);
    uint64_t request = world_ask(w, LAUNCH_STOP, &m, NULL, 0);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
    assert_int_equal(a.exited.requested, 1);
    assert_int_equal(a.exited.signo, SIGKILL);
    world_next(w, &a);
    assert_int_equal(a.head.request, request);
    assert_int_equal(a.head.verb, LAUNCH_STOP);
    assert_int_equal(fake.busy, 0);
    assert_int_equal(fake.alive, 1);
    world_start(w, m.sandbox, 1, 2, "wait");
}

static void stop_of_a_session_is_answered_when_all_is_gone(void **state)
{
    struct world *w = *state;
    struct launch_stop m = { world_create(w), 0, 0 };

    world_start(w, m.sandbox, 1, 1, "wait");
    world_start(w, m.sandbox, 2, 1, "wait");
    fake.busy = 5;
    world_fresh(&a);
    uint64_t request = world_ask(w, LAUNCH_STOP, &m, NULL, 0);
    for (int i = 0; i < 2; i++) {
        world_next(w, &a);
        assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
        assert_int_equal(a.exited.requested, 1);
    }
    world_next(w, &a);
    assert_int_equal(a.head.request, request);
    assert_int_equal(a.head.verb, LAUNCH_STOP);
    assert_int_equal(fake.alive, 0);
    assert_int_equal(w->launcher.sessions.count, 0);
    world_call(w, LAUNCH_STOP, &m, NULL, 0, &a);
    world_assert_error(&a, HC_EGONE, "no such sandbox");
}

static void two_stops_of_one_session_are_both_answered(void **state)
{
    struct world *w = *state;
    struct launch_stop m = { world_create(w), 0, 0 };

    uint64_t first = world_ask(w, LAUNCH_STOP, &m, NULL, 0);
    uint64_t second = world_ask(w, LAUNCH_STOP, &m, NULL, 0);
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.head.request, first);
    world_next(w, &a);
    assert_int_equal(a.head.request, second);
    assert_int_equal(a.head.verb, LAUNCH_STOP);
}

static void a_session_that_does_not_empty_is_quarantined_and_said_so(void **state)
{
    struct world *w = *state;
    struct launch_stop m = { world_create(w), 0, 0 };
    unsigned index = sessions_find(&w->launcher.sessions, m.sandbox)->index;

    fake.never_empty = 1;
    world_fresh(&a);
    world_call(w, LAUNCH_STOP, &m, NULL, 0, &a); /* takes the 5 s of the patience */
    world_assert_error(&a, ETIMEDOUT, "not gone in time");
    assert_true(fake.killed > 1);
    world_create(w);
    assert_true(fake.indexes & 1U << index); /* the new one got another index */
    assert_int_equal(fake.alive, 2);

    struct launch_list list = { 0 };
    world_call(w, LAUNCH_LIST, &list, NULL, 0, &a);
    assert_true(a.listed.sandbox != m.sandbox);
    fake.never_empty = 0; /* and when it is gone, that is said as well */
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_SANDBOX_GONE);
    assert_true(a.gone.sandbox == m.sandbox);
    assert_int_equal(fake.alive, 1);
}

static void a_stop_of_what_never_was_is_an_error(void **state)
{
    struct world *w = *state;
    struct launch_stop m = { world_create(w), 2, 1 };

    world_fresh(&a);
    world_call(w, LAUNCH_STOP, &m, NULL, 0, &a);
    world_assert_error(&a, HC_EGONE, "kernel 2-1");
    m = (struct launch_stop){ 12345, 0, 0 };
    world_call(w, LAUNCH_STOP, &m, NULL, 0, &a);
    world_assert_error(&a, HC_EGONE, "no such sandbox");
}

/* ---- the end by itself ---- */

static void the_end_of_init_ends_the_session(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);

    world_start(w, sandbox, 1, 1, "wait");
    kill(sandbox_init_pid(sessions_find(&w->launcher.sessions, sandbox)->sandbox), SIGKILL);
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_SANDBOX_GONE);
    assert_true(view_equals(a.gone.reason, "init ended"));
    assert_int_equal(fake.alive, 0);
}

static void a_deadline_ends_the_session(void **state)
{
    struct world *w = *state;
    struct launch_deadline m = { world_create(w), clock_ms() + 30 };

    world_start(w, m.sandbox, 1, 1, "wait");
    world_fresh(&a);
    world_call(w, LAUNCH_DEADLINE, &m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_DEADLINE);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
    assert_int_equal(a.exited.requested, 1);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_SANDBOX_GONE);
    assert_true(view_equals(a.gone.reason, "deadline"));
    assert_true(clock_ms() >= m.monotonic_ms);
}

static int no_session(struct world *w)
{
    return w->launcher.sessions.count == 0;
}

static void a_deadline_ends_the_session_when_no_gateway_lives(void **state)
{
    struct world *w = *state;
    struct launch_deadline m = { world_create(w), clock_ms() + 100 };

    world_start(w, m.sandbox, 1, 1, "wait");
    world_fresh(&a);
    world_call(w, LAUNCH_DEADLINE, &m, NULL, 0, &a);
    kill(w->launcher.gateway.pid, SIGKILL);
    world_until(w, world_gateway_dead);
    world_until(w, no_session);
    assert_int_equal(fake.alive, 0);
}

/* As one is whose gateway died before it was told of it. */
static void a_session_that_no_gateway_asks_about_has_a_deadline(void **state)
{
    struct world *w = *state;
    const uint64_t before = clock_ms();
    struct launch_deadline m = { world_create(w), 0 };
    const struct session *s = sessions_find(&w->launcher.sessions, m.sandbox);

    assert_in_range(s->deadline_ms, before + 1, clock_ms() + 600000);
    world_fresh(&a);
    world_call(w, LAUNCH_DEADLINE, &m, NULL, 0, &a);
    assert_int_equal(s->deadline_ms, 0); /* its gateway is there, and wants none */
}

static void a_deadline_can_be_taken_away(void **state)
{
    struct world *w = *state;
    struct launch_deadline m = { world_create(w), clock_ms() + 20 };
    uint64_t end = clock_ms() + 100;

    world_fresh(&a);
    world_call(w, LAUNCH_DEADLINE, &m, NULL, 0, &a);
    m.monotonic_ms = 0;
    world_call(w, LAUNCH_DEADLINE, &m, NULL, 0, &a);
    while (clock_ms() < end)
        launcher_turn(&w->launcher, 10);
    assert_int_equal(fake.alive, 1);
}

static void a_deadline_beyond_the_maximum_is_refused(void **state)
{
    struct world *w = *state;
    struct launch_deadline m = { world_create(w), clock_ms() + w->config.deadline_max_ms + 60000 };

    world_fresh(&a);
    world_call(w, LAUNCH_DEADLINE, &m, NULL, 0, &a);
    world_assert_error(&a, HC_ELIMIT, "deadline");
}

/* What lies in its socket it could not read. */
static void a_gateway_that_was_paused_too_is_no_silent_one(void **state)
{
    struct world *w = *state;
    const struct launch_list list = { 0 };

    world_create(w);
    uint64_t request = world_ask(w, LAUNCH_LIST, &list, NULL, 0);
    for (int i = 0; i < 3; i++)
        launcher_turn(&w->launcher, 0);
    fake.ahead_s += 3600;
    for (int i = 0; i < 3; i++)
        launcher_turn(&w->launcher, 0);
    assert_false(world_gateway_dead(w));
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.head.request, request);
}

static pid_t other;

static int other_was_told(struct world *w)
{
    (void)w;
    return fake.reaped == other;
}

/* One that waits for a disk: who made it hears of its end. */
static void the_end_of_any_other_child_is_told_to_the_sandboxes(void **state)
{
    struct world *w = *state;

    world_create(w);
    other = fork();
    assert_true(other >= 0);
    if (other == 0)
        _exit(0);
    world_until(w, other_was_told);
}

/* The gateway moved the deadline on in time: its message lay in the socket meanwhile. */
static void a_deadline_that_passes_while_a_sandbox_is_built_is_no_end(void **state)
{
    struct world *w = *state;
    const struct launch_create create = { .profile = VIEW_STR("default") };
    struct launch_deadline m = { world_create(w), clock_ms() + 5000 };

    world_fresh(&a);
    world_call(w, LAUNCH_DEADLINE, &m, NULL, 0, &a);
    fake.create_s = 15; /* longer than it has */
    m.monotonic_ms += 600000;
    world_ask(w, LAUNCH_CREATE, &create, NULL, 0);
    world_ask(w, LAUNCH_DEADLINE, &m, NULL, 0);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_CREATE);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_DEADLINE);
    world_close(a.fds, a.head.fds);
    assert_int_equal(fake.alive, 2);
    assert_true(sessions_find(&w->launcher.sessions, m.sandbox)->deadline_ms >= m.monotonic_ms);
}

static void time_in_which_the_launcher_was_paused_does_not_count(void **state)
{
    struct world *w = *state;
    struct launch_deadline m = { world_create(w), clock_ms() + 5000 };

    world_fresh(&a);
    world_call(w, LAUNCH_DEADLINE, &m, NULL, 0, &a);
    fake.ahead_s += 3600;
    for (int i = 0; i < 3; i++)
        launcher_turn(&w->launcher, 0);
    assert_int_equal(fake.alive, 1);
    /* But it is not given away: the rest of it, and some seconds for the gateway to speak. */
    fake.ahead_s += 1; /* less than what counts as a pause */
    assert_in_range(sessions_find(&w->launcher.sessions, m.sandbox)->deadline_ms - clock_ms(), 1000,
                    20000);
    for (int i = 0; i < 20; i++, fake.ahead_s++)
        launcher_turn(&w->launcher, 0);
    world_until(w, no_session);
    assert_int_equal(fake.alive, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(stop_of_a_kernel_is_answered_when_its_group_is_gone),
        T(stop_of_a_session_is_answered_when_all_is_gone),
        T(two_stops_of_one_session_are_both_answered),
        T(a_session_that_does_not_empty_is_quarantined_and_said_so),
        T(a_stop_of_what_never_was_is_an_error),
        T(the_end_of_init_ends_the_session),
        T(a_deadline_ends_the_session),
        T(a_deadline_ends_the_session_when_no_gateway_lives),
        T(a_session_that_no_gateway_asks_about_has_a_deadline),
        T(a_deadline_can_be_taken_away),
        T(a_gateway_that_was_paused_too_is_no_silent_one),
        T(the_end_of_any_other_child_is_told_to_the_sandboxes),
        T(a_deadline_that_passes_while_a_sandbox_is_built_is_no_end),
        T(time_in_which_the_launcher_was_paused_does_not_count),
        T(a_deadline_beyond_the_maximum_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
