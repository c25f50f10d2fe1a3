/* Kernels: how each one ended, and signals to them. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>

#include <cmocka.h>

#include "err.h"
#include "world.h"

static struct answer a; /* large */

/* ---- exits ---- */

static void the_exit_of_a_kernel_is_told_with_its_code(void **state)
{
    struct world *w = *state;

    world_start(w, world_create(w), 3, 2, "exit7");
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
    assert_int_equal(a.exited.kernel, 3);
    assert_int_equal(a.exited.generation, 2);
    assert_int_equal(a.exited.exit_code, 7);
    assert_int_equal(a.exited.signo, 0);
    assert_int_equal(a.exited.requested, 0);
    assert_int_equal(a.exited.out_of_memory, 0);
}

static void the_exit_of_a_kernel_is_told_with_its_signal(void **state)
{
    struct world *w = *state;

    world_start(w, world_create(w), 1, 1, "segv");
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.exited.exit_code, -1);
    assert_int_equal(a.exited.signo, SIGBUS);
}

static void a_kernel_that_kills_itself_did_not_run_out_of_memory(void **state)
{
    struct world *w = *state;

    world_start(w, world_create(w), 1, 1, "suicide");
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.exited.signo, SIGKILL);
    assert_int_equal(a.exited.out_of_memory, 0);
}

static void a_kernel_that_init_takes_along_says_so(void **state)
{
    struct world *w = *state;

    for (unsigned dying = 0; dying < 2; dying++) {
        fake.init_is_dying = (int)dying;
        world_start(w, world_create(w), 1, 1, "suicide");
        world_fresh(&a);
        world_next(w, &a);
        assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
        assert_int_equal(a.exited.sandbox_ends, dying);
    }
    fake.init_is_dying = 0;
}

static void out_of_memory_is_told_before_the_exit_with_limit_and_peak(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);
    pid_t pid;

    world_start(w, sandbox, 1, 1, "wait");
    pid = sessions_find(&w->launcher.sessions, sandbox)->kernels[0].pid;
    fake_oom();
    kill(pid, SIGKILL);
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_OUT_OF_MEMORY);
    assert_int_equal(a.oom.kills, 1);
    assert_int_equal(a.oom.kernel_ends, 1);
    assert_int_equal(a.oom.memory_limit_bytes, 2048);
    assert_int_equal(a.oom.memory_peak_bytes, 200);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
    assert_int_equal(a.exited.out_of_memory, 1);
    assert_int_equal(a.exited.memory_limit_bytes, 2048);
    assert_int_equal(a.exited.memory_peak_bytes, 200);
}

static void the_limit_may_kill_a_child_and_the_kernel_lives(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);
    struct launch_status m = { sandbox, 0 };

    world_start(w, sandbox, 1, 1, "wait");
    fake_oom();
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_OUT_OF_MEMORY);
    assert_int_equal(a.oom.kernel_ends, 0);
    world_call(w, LAUNCH_STATUS, &m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_STATUS);
    assert_int_equal(a.status.oom_kills, 1);
    assert_int_equal(a.status.sandbox, sandbox);
}

static void a_kernel_that_is_seen_to_end_only_at_the_second_look_is_told_again(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);

    world_start(w, sandbox, 1, 1, "wait");
    fake_oom();
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.oom.kernel_ends, 0);
    struct session *s = sessions_find(&w->launcher.sessions, sandbox);
    assert_true(s->memory_again_ms != 0);
    kill(s->kernels[0].pid, SIGKILL);
    s->memory_again_ms = 1; /* before its exit can be seen */
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_OUT_OF_MEMORY);
    assert_int_equal(a.oom.kills, 1);
    assert_int_equal(a.oom.kernel_ends, 1);
    assert_int_equal(s->oom_unsure, 0);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
    assert_int_equal(a.exited.out_of_memory, 1);
}

static void a_kernel_that_takes_long_to_go_was_killed_by_the_limit_nevertheless(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);

    for (uint32_t late = 0; late < 2; late++) {
        world_start(w, sandbox, 1, late + 1, "wait");
        struct session *s = sessions_find(&w->launcher.sessions, sandbox);
        s->kernels[0].out_of_memory = (int)late; /* as seen when the counter rose */
        s->oom_ms = 1;
        kill(s->kernels[0].pid, SIGKILL);
        world_fresh(&a);
        world_next(w, &a);
        assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
        assert_int_equal(a.exited.out_of_memory, late);
    }
}

static void refused_tasks_are_told_once_a_second(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);

    world_start(w, sandbox, 1, 1, "wait");
    fake_refuse_task();
    world_fresh(&a);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_TASKS_REFUSED);
    assert_int_equal(a.tasks.sandbox, sandbox);
    assert_int_equal(a.tasks.refused, 1);
    assert_int_equal(a.tasks.pids_limit, 256);
    assert_true(sessions_find(&w->launcher.sessions, sandbox)->tasks_again_ms != 0);
    for (int i = 0; i < 100; i++)
        fake_refuse_task();
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_TASKS_REFUSED);
    assert_int_equal(a.tasks.refused, 101);
}

/* ---- SIGNAL ---- */

static void a_signal_reaches_the_kernel(void **state)
{
    struct world *w = *state;
    struct launch_signal m = { world_create(w), 1, 1, SIGINT, 1 };

    world_start(w, m.sandbox, 1, 1, "wait");
    world_fresh(&a);
    world_call(w, LAUNCH_SIGNAL, &m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_SIGNAL);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
    assert_int_equal(a.exited.signo, SIGINT);
    assert_int_equal(a.exited.requested, 0);
    world_call(w, LAUNCH_SIGNAL, &m, NULL, 0, &a);
    world_assert_error(&a, HC_EGONE, "does not run");
}

static void a_signal_to_the_process_alone_reaches_it_too(void **state)
{
    struct world *w = *state;
    struct launch_signal m = { world_create(w), 1, 1, SIGUSR1, 0 };

    world_start(w, m.sandbox, 1, 1, "wait");
    world_fresh(&a);
    world_call(w, LAUNCH_SIGNAL, &m, NULL, 0, &a);
    world_next(w, &a);
    assert_int_equal(a.exited.signo, SIGUSR1);
}

static void other_signals_end_the_gateway(void **state)
{
    struct world *w = *state;
    struct launch_signal m = { world_create(w), 1, 1, 0, 0 };

    world_start(w, m.sandbox, 1, 1, "wait");
    for (unsigned signo = 0; signo < 32; signo++) {
        if (signo == SIGINT || signo == SIGTERM || signo == SIGQUIT || signo == SIGKILL ||
            signo == SIGUSR1 || signo == SIGUSR2)
            continue;
        m.signo = signo;
        world_ask(w, LAUNCH_SIGNAL, &m, NULL, 0);
        world_assert_gateway_ended(w, 1);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_exit_of_a_kernel_is_told_with_its_code),
        T(the_exit_of_a_kernel_is_told_with_its_signal),
        T(a_kernel_that_kills_itself_did_not_run_out_of_memory),
        T(a_kernel_that_init_takes_along_says_so),
        T(refused_tasks_are_told_once_a_second),
        T(out_of_memory_is_told_before_the_exit_with_limit_and_peak),
        T(a_kernel_that_is_seen_to_end_only_at_the_second_look_is_told_again),
        T(a_kernel_that_takes_long_to_go_was_killed_by_the_limit_nevertheless),
        T(the_limit_may_kill_a_child_and_the_kernel_lives),
        T(a_signal_reaches_the_kernel),
        T(a_signal_to_the_process_alone_reaches_it_too),
        T(other_signals_end_the_gateway),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
