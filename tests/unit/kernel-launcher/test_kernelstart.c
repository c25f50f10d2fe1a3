/*
 * A start takes as long as the session lets it: everybody else is served meanwhile,
 * and whatever happens on the way, the request is answered once and truly.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "clock.h"
#include "err.h"
#include "world.h"

static struct answer a; /* large */

/* START_KERNEL of kernel 1 that stays on its way. */
static uint64_t begin(struct world *w, uint64_t sandbox, uint32_t generation, uint32_t flags)
{
    struct launch_start m = {
        .sandbox = sandbox,
        .kernel = 1,
        .generation = generation,
        .flags = flags,
        .spec_name = VIEW_STR("python3"),
        .argv = { (const uint8_t *)"wait", 5 },
    };
    int fds[7];
    unsigned n = world_start_fds(fds, flags != 0);

    fake.hold_starts = 1;
    uint64_t request = world_ask(w, LAUNCH_START_KERNEL, &m, fds, n);
    world_close(fds, n);
    return request;
}

static struct kernelproc *kernel_of(struct world *w, uint64_t sandbox)
{
    return &sessions_find(&w->launcher.sessions, sandbox)->kernels[0];
}

static int is_starting(struct world *w)
{
    return sessions_after(&w->launcher.sessions, 0)->kernels[0].state == KERNEL_STARTING;
}

static void expect_start_error(struct world *w, uint64_t request, int code, const char *part)
{
    world_next(w, &a);
    assert_int_equal(a.head.request, request);
    world_assert_error(&a, code, part);
}

static void others_are_served_while_a_kernel_is_on_its_way(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);
    uint64_t request = begin(w, sandbox, 1, 0);

    world_until(w, is_starting);
    fake.hold_starts = 0;
    world_start(w, world_create(w), 1, 1, "wait"); /* another session, before the answer */
    fake_let_go();
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.head.request, request);
    assert_int_equal(a.head.verb, LAUNCH_START_KERNEL);
    assert_int_equal(a.started.sandbox, sandbox);
    assert_int_equal(a.head.fds, 1); /* its run folder */
    world_close(a.fds, 1);
    assert_int_equal(kernel_of(w, sandbox)->state, KERNEL_RUNNING);
}

static void requests_for_a_kernel_on_its_way_are_answered_by_its_state(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);
    struct launch_signal sig = { sandbox, 1, 1, SIGINT, 0 };
    struct launch_kernel_ref seal = { sandbox, 1, 1 };
    struct launch_list list = { 0 };
    struct launch_kernel_info info;

    begin(w, sandbox, 1, 0);
    world_fresh(&a);
    world_call(w, LAUNCH_SIGNAL, &sig, NULL, 0, &a);
    world_assert_error(&a, EAGAIN, "not started yet");
    world_call(w, LAUNCH_SEAL, &seal, NULL, 0, &a);
    world_assert_error(&a, EAGAIN, "not started yet");
    world_call(w, LAUNCH_LIST, &list, NULL, 0, &a);
    assert_int_equal(a.listed.kernels.n, sizeof info);
    memcpy(&info, a.listed.kernels.p, sizeof info);
    assert_int_equal(info.running, 1);
    assert_int_equal(info.generation, 1);
    begin(w, sandbox, 2, 0); /* nobody in his right mind starts it twice */
    world_assert_gateway_ended(w, 1);
}

static void time_in_which_all_were_paused_is_none_of_the_start(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);
    uint64_t request = begin(w, sandbox, 1, LAUNCH_SOCKETS_FD);

    world_until(w, is_starting);
    fake.ahead_s = 3600;
    for (int i = 0; i < 3; i++)
        launcher_turn(&w->launcher, 0);
    assert_true(is_starting(w));
    fake_let_go();
    fake.hold_starts = 0;
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.head.request, request);
    assert_int_equal(a.head.verb, LAUNCH_START_KERNEL);
}

static void a_start_that_takes_too_long_is_killed_and_said_so(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);

    w->config.start_max_ms = 50;
    world_fresh(&a);
    expect_start_error(w, begin(w, sandbox, 1, LAUNCH_SOCKETS_FD), ETIMEDOUT, "in time");
    fake_forget_held();
    fake.hold_starts = 0;
    w->config.start_max_ms = 20000;
    world_start(w, sandbox, 1, 2,
                "exit7"); /* the next one is fine, and no exit of the first is told */
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
    assert_int_equal(a.exited.generation, 2);
}

static void a_start_that_cannot_be_killed_at_once_is_killed_again(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);

    w->config.start_max_ms = 20;
    fake.kill_has_no_effect = 1;
    uint64_t request = begin(w, sandbox, 1, LAUNCH_SOCKETS_FD);
    world_until(w, is_starting);
    while (kernel_of(w, sandbox)->give_up_code == 0)
        launcher_turn(&w->launcher, 5);
    world_create(w); /* served all the same */
    fake.kill_has_no_effect = 0;
    world_fresh(&a);
    expect_start_error(w, request, ETIMEDOUT, "in time");
}

static void a_start_that_fails_late_gives_its_number_back(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);

    fake.end_error = ENOENT;
    uint64_t request = begin(w, sandbox, 5, 0);
    world_until(w, is_starting);
    fake_let_go();
    world_fresh(&a);
    expect_start_error(w, request, ENOENT, "exec");
    fake.end_error = 0;
    world_start(w, sandbox, 1, 5, "wait");
}

/* The waiter of its status must be the one that reaps it: sandbox_start_end() of the
 * fake aborts when somebody else did. */
static void a_child_that_dies_on_its_way_is_left_to_its_start(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);

    fake.end_error = EPERM;
    uint64_t request = begin(w, sandbox, 1, LAUNCH_SOCKETS_FD);
    world_until(w, is_starting);
    kill(kernel_of(w, sandbox)->pid, SIGKILL);
    world_fresh(&a);
    expect_start_error(w, request, EPERM, "exec");
}

static void a_kernel_that_dies_just_before_exec_is_told_as_started_and_ended(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);
    uint64_t request = begin(w, sandbox, 1, LAUNCH_SOCKETS_FD);

    world_until(w, is_starting);
    kill(kernel_of(w, sandbox)->pid, SIGKILL);
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.head.request, request);
    assert_int_equal(a.head.verb, LAUNCH_START_KERNEL);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
    assert_int_equal(a.exited.signo, SIGKILL);
}

static void stop_of_a_kernel_on_its_way_answers_both(void **state)
{
    struct world *w = *state;
    struct launch_stop m = { world_create(w), 1, 1 };
    uint64_t start = begin(w, m.sandbox, 1, LAUNCH_SOCKETS_FD);
    uint64_t stop = world_ask(w, LAUNCH_STOP, &m, NULL, 0);

    world_fresh(&a);
    expect_start_error(w, start, ECANCELED, "stopped on its way");
    world_next(w, &a); /* and no exit between them */
    assert_int_equal(a.head.request, stop);
    assert_int_equal(a.head.verb, LAUNCH_STOP);
    fake_forget_held();
    fake.hold_starts = 0;
    world_start(w, m.sandbox, 1, 2, "wait");
}

static void stop_of_the_session_answers_a_start_on_its_way(void **state)
{
    struct world *w = *state;
    struct launch_stop m = { world_create(w), 0, 0 };
    uint64_t start = begin(w, m.sandbox, 1, 0);
    uint64_t stop = world_ask(w, LAUNCH_STOP, &m, NULL, 0);

    world_fresh(&a);
    expect_start_error(w, start, HC_EGONE, "the session ends");
    world_next(w, &a);
    assert_int_equal(a.head.request, stop);
    assert_int_equal(a.head.verb, LAUNCH_STOP);
    assert_int_equal(fake.alive, 0);
}

static int is_running(struct world *w)
{
    return sessions_after(&w->launcher.sessions, 0)->kernels[0].state == KERNEL_RUNNING;
}

static void a_start_outlives_the_gateway_that_asked(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);
    struct launch_signal sig = { sandbox, 1, 1, SIGTERM, 0 };

    begin(w, sandbox, 1, 0);
    world_until(w, is_starting);
    kill(w->launcher.gateway.pid, SIGKILL);
    world_until(w, world_gateway_dead);
    world_attach(w);
    fake_let_go();
    world_until(w, is_running);
    world_fresh(&a);
    world_call(w, LAUNCH_SIGNAL, &sig, NULL, 0,
               &a); /* the first packet that comes: no stray answer */
    assert_int_equal(a.head.verb, LAUNCH_SIGNAL);
}

static void a_start_that_fails_for_the_next_gateway_is_told_as_an_exit(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);

    fake.end_error = ENOEXEC;
    begin(w, sandbox, 3, LAUNCH_SOCKETS_FD);
    world_until(w, is_starting);
    kill(w->launcher.gateway.pid, SIGKILL);
    world_until(w, world_gateway_dead);
    world_attach(w); /* it took the kernel for running */
    fake_let_go();
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
    assert_int_equal(a.exited.generation, 3);
    assert_int_equal(a.exited.exit_code, 127);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(others_are_served_while_a_kernel_is_on_its_way),
        T(requests_for_a_kernel_on_its_way_are_answered_by_its_state),
        T(time_in_which_all_were_paused_is_none_of_the_start),
        T(a_start_that_takes_too_long_is_killed_and_said_so),
        T(a_start_that_cannot_be_killed_at_once_is_killed_again),
        T(a_start_that_fails_late_gives_its_number_back),
        T(a_child_that_dies_on_its_way_is_left_to_its_start),
        T(a_kernel_that_dies_just_before_exec_is_told_as_started_and_ended),
        T(stop_of_a_kernel_on_its_way_answers_both),
        T(stop_of_the_session_answers_a_start_on_its_way),
        T(a_start_outlives_the_gateway_that_asked),
        T(a_start_that_fails_for_the_next_gateway_is_told_as_an_exit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
