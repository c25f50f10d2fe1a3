/* What a gateway may ask of the launcher, in which state, and what it is told. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "clock.h"
#include "err.h"
#include "sandbox.h"
#include "world.h"

static struct answer a; /* large */

static void fresh(void)
{
    memset(&a, 0, sizeof a);
}

static void assert_error(int code, const char *part)
{
    char text[LAUNCH_TEXT_MAX + 1] = "";

    assert_int_equal(a.head.verb, LAUNCH_ERROR);
    memcpy(text, a.error.text.p, a.error.text.n);
    if (a.head.error != code || strstr(text, part) == NULL)
        fail_msg("error %d '%s', expected %d '%s'", a.head.error, text, code, part);
}

/* Turns until the launcher has ended the gateway, and checks that sandboxes stay. */
static void assert_gateway_ended(struct world *w, int sandboxes)
{
    world_until(w, world_gateway_dead);
    assert_int_equal(fake.alive, sandboxes);
    world_attach(w);
}

static void stop_session(struct world *w, uint64_t sandbox)
{
    struct launch_stop m = { .sandbox = sandbox };
    uint64_t request = world_ask(w, LAUNCH_STOP, &m, NULL, 0);

    do
        world_next(w, &a);
    while (a.head.request == 0);
    assert_int_equal(a.head.request, request);
    assert_int_equal(a.head.verb, LAUNCH_STOP);
}

/* ---- CREATE ---- */

static void create_answers_with_two_descriptors_and_the_limits_in_force(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("default"), .limits.memory_bytes = 3000 };

    fresh();
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_CREATE);
    assert_int_equal(a.head.fds, 2);
    world_close(a.fds, 2);
    assert_true(a.created.sandbox != 0);
    assert_int_equal(a.created.limits.memory_bytes, 3000);
    assert_int_equal(a.created.limits.pids, w->config.defaults.pids);
}

static void a_limit_above_the_maximum_is_refused_by_name(void **state)
{
    struct launch_create m = { .profile = VIEW_STR("default"), .limits.memory_bytes = 4097 };

    fresh();
    world_call(*state, LAUNCH_CREATE, &m, NULL, 0, &a);
    assert_error(HC_ELIMIT, "memory_bytes");
    assert_int_equal(fake.alive, 0);
}

static void an_unknown_profile_is_an_error(void **state)
{
    struct launch_create m = { .profile = VIEW_STR("other") };

    fresh();
    world_call(*state, LAUNCH_CREATE, &m, NULL, 0, &a);
    assert_error(ENOENT, "profile");
}

static void sandboxes_are_bounded_and_a_place_comes_back(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("default") };
    uint64_t first = world_create(w);

    for (unsigned i = 1; i < w->config.sessions_max; i++)
        world_create(w);
    fresh();
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    assert_error(HC_ELIMIT, "4 sandboxes");
    stop_session(w, first);
    world_create(w);
}

static void a_create_that_fails_leaves_nothing(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("default") };

    fake.create_error = ENOSPC;
    fresh();
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    assert_error(ENOSPC, "create: fake");
    assert_int_equal(w->launcher.sessions.count, 0);
}

/* ---- START_KERNEL ---- */

static struct launch_start start_message(uint64_t sandbox)
{
    return (struct launch_start){
        .sandbox = sandbox,
        .kernel = 1,
        .generation = 1,
        .flags = LAUNCH_SOCKETS_FD,
        .spec_name = VIEW_STR("python3"),
        .argv = { (const uint8_t *)"wait", 5 },
        .env = { (const uint8_t *)"A=b", 4 },
    };
}

static void call_start(struct world *w, const struct launch_start *m, int sockets)
{
    int fds[7];
    unsigned n = world_start_fds(fds, sockets);

    world_call(w, LAUNCH_START_KERNEL, m, fds, n, &a);
    world_close(fds, n);
}

static void a_start_hands_everything_to_the_sandbox(void **state)
{
    struct world *w = *state;
    struct launch_start m = start_message(world_create(w));

    fresh();
    m.cwd = VIEW_STR("/tmp");
    call_start(w, &m, 1);
    assert_int_equal(a.head.verb, LAUNCH_START_KERNEL);
    assert_string_equal(fake.spec_name, "0-python3");
    assert_string_equal(fake.argv0, "wait");
    assert_string_equal(fake.env0, "A=b");
    assert_string_equal(fake.cwd, "/tmp");
}

static void a_kernel_that_binds_its_sockets_itself_brings_a_run_folder(void **state)
{
    struct world *w = *state;
    struct launch_start m = start_message(world_create(w));

    m.flags = 0;
    fresh();
    call_start(w, &m, 0);
    assert_int_equal(a.head.verb, LAUNCH_START_KERNEL);
    assert_int_equal(a.head.fds, 1);
    world_close(a.fds, 1);
    a.head.fds = 0;

    struct launch_kernel_ref ref = { m.sandbox, 1, 1 };
    world_call(w, LAUNCH_SEAL, &ref, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_SEAL);
    assert_int_equal(fake.sealed, 1);
}

static void a_start_that_fails_is_an_error_and_may_be_tried_again(void **state)
{
    struct world *w = *state;
    struct launch_start m = start_message(world_create(w));

    fake.start_error = ENOENT;
    fresh();
    call_start(w, &m, 1);
    assert_error(ENOENT, "exec");
    fake.start_error = 0;
    world_start(w, m.sandbox, 1, 1, "wait");
}

static void a_kernelspec_that_is_not_there_is_an_error(void **state)
{
    struct world *w = *state;
    struct launch_start m = start_message(world_create(w));

    fresh();
    m.spec_name = VIEW_STR("ruby");
    call_start(w, &m, 1);
    assert_error(ENOENT, "'ruby'");
    m.spec_name = VIEW_STR("../kernels");
    call_start(w, &m, 1);
    assert_error(EINVAL, "name");
    m.spec_dir = 1;
    m.spec_name = VIEW_STR("python3");
    call_start(w, &m, 1);
    assert_error(ENOENT, "index");
}

static void starting_a_running_kernel_again_ends_the_gateway(void **state)
{
    struct world *w = *state;
    struct launch_start m = start_message(world_create(w));
    int fds[7];

    world_start(w, m.sandbox, 1, 1, "wait");
    m.generation = 2;
    unsigned n = world_start_fds(fds, 1);
    world_ask(w, LAUNCH_START_KERNEL, &m, fds, n);
    world_close(fds, n);
    assert_gateway_ended(w, 1);
}

static void a_generation_never_comes_back(void **state)
{
    struct world *w = *state;
    struct launch_start m = start_message(world_create(w));
    struct launch_stop stop = { m.sandbox, 1, 5 };
    int fds[7];

    world_start(w, m.sandbox, 1, 5, "wait");
    fresh();
    world_ask(w, LAUNCH_STOP, &stop, NULL, 0);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_STOP);
    m.generation = 5;
    unsigned n = world_start_fds(fds, 1);
    world_ask(w, LAUNCH_START_KERNEL, &m, fds, n);
    world_close(fds, n);
    assert_gateway_ended(w, 1);
}

static void wrong_descriptors_of_a_start_end_the_gateway(void **state)
{
    struct world *w = *state;
    struct launch_start m = start_message(world_create(w));

    for (unsigned wrong = 0; wrong < 7; wrong++) {
        int fds[7];
        unsigned n = world_start_fds(fds, 1);

        close(fds[wrong]);
        fds[wrong] = open("/dev/zero", O_RDWR | O_CLOEXEC);
        world_ask(w, LAUNCH_START_KERNEL, &m, fds, n);
        world_close(fds, n);
        assert_gateway_ended(w, 1);
    }
    int fds[7];
    unsigned n = world_start_fds(fds, 0); /* too few for the flag */
    world_ask(w, LAUNCH_START_KERNEL, &m, fds, n);
    world_close(fds, n);
    assert_gateway_ended(w, 1);
}

/* ---- exits ---- */

static void the_exit_of_a_kernel_is_told_with_its_code(void **state)
{
    struct world *w = *state;

    world_start(w, world_create(w), 3, 2, "exit7");
    fresh();
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
    fresh();
    world_next(w, &a);
    assert_int_equal(a.exited.exit_code, -1);
    assert_int_equal(a.exited.signo, SIGBUS);
}

static void a_kernel_that_kills_itself_did_not_run_out_of_memory(void **state)
{
    struct world *w = *state;

    world_start(w, world_create(w), 1, 1, "suicide");
    fresh();
    world_next(w, &a);
    assert_int_equal(a.exited.signo, SIGKILL);
    assert_int_equal(a.exited.out_of_memory, 0);
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
    fresh();
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_OUT_OF_MEMORY);
    assert_int_equal(a.oom.kills, 1);
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
    fresh();
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_OUT_OF_MEMORY);
    world_call(w, LAUNCH_STATUS, &m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_STATUS);
    assert_int_equal(a.status.oom_kills, 1);
    assert_int_equal(a.status.sandbox, sandbox);
}

/* ---- SIGNAL ---- */

static void a_signal_reaches_the_kernel(void **state)
{
    struct world *w = *state;
    struct launch_signal m = { world_create(w), 1, 1, SIGINT, 1 };

    world_start(w, m.sandbox, 1, 1, "wait");
    fresh();
    world_call(w, LAUNCH_SIGNAL, &m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_SIGNAL);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
    assert_int_equal(a.exited.signo, SIGINT);
    assert_int_equal(a.exited.requested, 0);
    world_call(w, LAUNCH_SIGNAL, &m, NULL, 0, &a);
    assert_error(HC_EGONE, "does not run");
}

static void a_signal_to_the_process_alone_reaches_it_too(void **state)
{
    struct world *w = *state;
    struct launch_signal m = { world_create(w), 1, 1, SIGUSR1, 0 };

    world_start(w, m.sandbox, 1, 1, "wait");
    fresh();
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
        assert_gateway_ended(w, 1);
    }
}

/* ---- STOP ---- */

static void stop_of_a_kernel_is_answered_when_its_group_is_gone(void **state)
{
    struct world *w = *state;
    struct launch_stop m = { world_create(w), 1, 1 };

    world_start(w, m.sandbox, 1, 1, "wait");
    fake.busy = 5;
    fresh();
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
    fresh();
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
    assert_error(HC_EGONE, "no such sandbox");
}

static void two_stops_of_one_session_are_both_answered(void **state)
{
    struct world *w = *state;
    struct launch_stop m = { world_create(w), 0, 0 };

    uint64_t first = world_ask(w, LAUNCH_STOP, &m, NULL, 0);
    uint64_t second = world_ask(w, LAUNCH_STOP, &m, NULL, 0);
    fresh();
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
    fresh();
    world_call(w, LAUNCH_STOP, &m, NULL, 0, &a); /* takes the 5 s of the patience */
    assert_error(ETIMEDOUT, "not gone in time");
    assert_true(fake.killed > 1);
    world_create(w);
    assert_true(fake.indexes & 1U << index); /* the new one got another index */
    assert_int_equal(fake.alive, 2);

    struct launch_list list = { 0 };
    world_call(w, LAUNCH_LIST, &list, NULL, 0, &a);
    assert_true(a.listed.sandbox != m.sandbox);
}

static void a_stop_of_what_never_was_is_an_error(void **state)
{
    struct world *w = *state;
    struct launch_stop m = { world_create(w), 2, 1 };

    fresh();
    world_call(w, LAUNCH_STOP, &m, NULL, 0, &a);
    assert_error(HC_EGONE, "kernel 2-1");
    m = (struct launch_stop){ 12345, 0, 0 };
    world_call(w, LAUNCH_STOP, &m, NULL, 0, &a);
    assert_error(HC_EGONE, "no such sandbox");
}

/* ---- the end by itself ---- */

static void the_end_of_init_ends_the_session(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);

    world_start(w, sandbox, 1, 1, "wait");
    kill(sandbox_init_pid(sessions_find(&w->launcher.sessions, sandbox)->sandbox), SIGKILL);
    fresh();
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
    fresh();
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
    fresh();
    world_call(w, LAUNCH_DEADLINE, &m, NULL, 0, &a);
    kill(w->launcher.gateway.pid, SIGKILL);
    world_until(w, world_gateway_dead);
    world_until(w, no_session);
    assert_int_equal(fake.alive, 0);
}

static void a_deadline_can_be_taken_away(void **state)
{
    struct world *w = *state;
    struct launch_deadline m = { world_create(w), clock_ms() + 20 };
    uint64_t end = clock_ms() + 100;

    fresh();
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

    fresh();
    world_call(w, LAUNCH_DEADLINE, &m, NULL, 0, &a);
    assert_error(HC_ELIMIT, "deadline");
}

/* ---- LIST and NOTE ---- */

static void same_file(int x, int y)
{
    struct stat sx, sy;

    assert_int_equal(fstat(x, &sx), 0);
    assert_int_equal(fstat(y, &sy), 0);
    assert_true(sx.st_dev == sy.st_dev && sx.st_ino == sy.st_ino);
}

static void a_note_comes_back_with_its_descriptors_in_order(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);
    struct launch_note m = { sandbox, VIEW_STR("first") };
    struct launch_list list = { 0 };
    int fds[MSG_FDS_MAX], pipe_fds[2];

    for (unsigned i = 0; i < MSG_FDS_MAX; i += 2) {
        assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
        fds[i] = pipe_fds[0];
        fds[i + 1] = pipe_fds[1];
    }
    fresh();
    world_call(w, LAUNCH_NOTE, &m, NULL, 0, &a);
    m.note = VIEW_STR("second\0with a zero");
    world_call(w, LAUNCH_NOTE, &m, fds, MSG_FDS_MAX, &a);
    assert_int_equal(a.head.verb, LAUNCH_NOTE);

    for (int round = 0; round < 2; round++) { /* it stays after it was told */
        world_call(w, LAUNCH_LIST, &list, NULL, 0, &a);
        assert_int_equal(a.listed.sandbox, sandbox);
        assert_int_equal(a.listed.note.n, m.note.n);
        assert_memory_equal(a.listed.note.p, m.note.p, m.note.n);
        assert_int_equal(a.head.fds, MSG_FDS_MAX);
        for (unsigned i = 0; i < MSG_FDS_MAX; i++)
            same_file(a.fds[i], fds[i]);
    }
    world_close(fds, MSG_FDS_MAX);
    world_close(a.fds, a.head.fds);
    a.head.fds = 0;
    m.note = VIEW_STR("third");
    world_call(w, LAUNCH_NOTE, &m, NULL, 0, &a);
    world_call(w, LAUNCH_LIST, &list, NULL, 0, &a);
    assert_int_equal(a.head.fds, 0);
    assert_true(view_equals(a.listed.note, "third"));
}

static void list_tells_every_sandbox_once(void **state)
{
    struct world *w = *state;
    uint64_t made[3], seen[3];
    struct launch_list list = { 0 };
    unsigned n = 0;

    for (unsigned i = 0; i < 3; i++)
        made[i] = world_create(w);
    fresh();
    for (;;) {
        world_call(w, LAUNCH_LIST, &list, NULL, 0, &a);
        if (a.listed.sandbox == 0)
            break;
        assert_true(n < 3);
        seen[n++] = list.after = a.listed.sandbox;
    }
    assert_int_equal(n, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_true(made[i] == seen[0] || made[i] == seen[1] || made[i] == seen[2]);
}

static int kernel_has_exited(struct world *w)
{
    struct session *s = sessions_after(&w->launcher.sessions, 0);

    return s->kernels[0].state == KERNEL_EXITED && s->leaf_count == 0;
}

static void an_exit_while_no_gateway_lived_is_told_by_list(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);
    struct launch_list list = { 0 };
    struct launch_kernel_info info[2];

    world_start(w, sandbox, 1, 1, "wait");
    world_start(w, sandbox, 2, 9, "wait");
    kill(w->launcher.gateway.pid, SIGKILL);
    world_until(w, world_gateway_dead);
    kill(sessions_find(&w->launcher.sessions, sandbox)->kernels[0].pid, SIGUSR2);
    world_until(w, kernel_has_exited);

    world_attach(w);
    fresh();
    world_call(w, LAUNCH_LIST, &list, NULL, 0, &a);
    assert_int_equal(a.listed.kernels.n, sizeof info);
    memcpy(info, a.listed.kernels.p, sizeof info);
    assert_int_equal(info[0].kernel, 1);
    assert_int_equal(info[0].running, 0);
    assert_int_equal(info[0].signo, SIGUSR2);
    assert_int_equal(info[1].kernel, 2);
    assert_int_equal(info[1].generation, 9);
    assert_int_equal(info[1].running, 1);
    assert_int_equal(info[1].flags, LAUNCH_SOCKETS_FD);
}

static void the_answer_for_a_gateway_that_died_goes_to_nobody(void **state)
{
    struct world *w = *state;
    struct launch_stop m = { world_create(w), 0, 0 };
    struct launch_list list = { 0 };

    fake.busy = 1000;
    world_ask(w, LAUNCH_STOP, &m, NULL, 0);
    launcher_turn(&w->launcher, 0);
    launcher_turn(&w->launcher, 0);
    kill(w->launcher.gateway.pid, SIGKILL);
    world_until(w, world_gateway_dead);
    world_attach(w);
    fake.busy = 0;
    fresh();
    world_ask(w, LAUNCH_LIST, &list, NULL, 0);
    do /* SANDBOX_GONE may come first or later, a STOP answer never */
        world_next(w, &a);
    while (a.head.request == 0);
    assert_int_equal(a.head.verb, LAUNCH_LIST);
    assert_int_equal(a.listed.sandbox, 0);
}

/* ---- faults ---- */

static void bytes_that_are_no_message_end_the_gateway_and_nothing_else(void **state)
{
    struct world *w = *state;
    struct msg_head head = { .size = sizeof head, .version = MSG_VERSION, .request = 1 };

    world_create(w);
    world_send_raw(w, "x", 1);
    assert_gateway_ended(w, 1);
    world_send_raw(w, &head, sizeof head); /* verb 0 */
    assert_gateway_ended(w, 1);
    head.verb = LAUNCH_ERROR;
    world_send_raw(w, &head, sizeof head);
    assert_gateway_ended(w, 1);
    head.verb = LAUNCH_KERNEL_EXITED;
    world_send_raw(w, &head, sizeof head);
    assert_gateway_ended(w, 1);
    head.verb = LAUNCH_LIST; /* without its field */
    world_send_raw(w, &head, sizeof head);
    assert_gateway_ended(w, 1);
    head.version++;
    world_send_raw(w, &head, sizeof head);
    assert_gateway_ended(w, 1);
}

static void every_prefix_of_a_request_ends_the_gateway(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("default") };
    autobuf struct buf b;

    stop_session(w, world_create(w)); /* so that it is not one that never got as far as asking */
    buf_init(&b, MSG_MAX);
    assert_int_equal(msg_encode(launch_request_spec(LAUNCH_CREATE), 7, 0, &m, 0, &b, NULL), 0);
    for (size_t n = 1; n < buf_len(&b); n++) {
        uint32_t size = (uint32_t)n;

        if (n >= sizeof(struct msg_head)) /* an honest head */
            memcpy(b.data + b.head, &size, sizeof size);
        world_send_raw(w, buf_view(&b).p, n);
        assert_gateway_ended(w, 0);
    }
}

static void the_number_0_is_no_request(void **state)
{
    struct world *w = *state;
    struct launch_list m = { 0 };
    autobuf struct buf b;

    buf_init(&b, MSG_MAX);
    assert_int_equal(msg_encode(launch_request_spec(LAUNCH_LIST), 0, 0, &m, 0, &b, NULL), 0);
    world_send_raw(w, buf_view(&b).p, buf_len(&b));
    assert_gateway_ended(w, 0);
}

static void nothing_new_starts_while_the_server_stops(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("default") };
    struct launch_list list = { 0 };
    uint64_t sandbox = world_create(w);

    /* The stand-in must outlive SIGTERM for a while: stop it. */
    kill(w->launcher.gateway.pid, SIGSTOP);
    launcher_stop(&w->launcher);
    fresh();
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    assert_error(ECANCELED, "stops");
    world_call(w, LAUNCH_LIST, &list, NULL, 0, &a);
    assert_int_equal(a.listed.sandbox, sandbox);
    kill(w->launcher.gateway.pid, SIGCONT);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(create_answers_with_two_descriptors_and_the_limits_in_force),
        T(a_limit_above_the_maximum_is_refused_by_name),
        T(an_unknown_profile_is_an_error),
        T(sandboxes_are_bounded_and_a_place_comes_back),
        T(a_create_that_fails_leaves_nothing),
        T(a_start_hands_everything_to_the_sandbox),
        T(a_kernel_that_binds_its_sockets_itself_brings_a_run_folder),
        T(a_start_that_fails_is_an_error_and_may_be_tried_again),
        T(a_kernelspec_that_is_not_there_is_an_error),
        T(starting_a_running_kernel_again_ends_the_gateway),
        T(a_generation_never_comes_back),
        T(wrong_descriptors_of_a_start_end_the_gateway),
        T(the_exit_of_a_kernel_is_told_with_its_code),
        T(the_exit_of_a_kernel_is_told_with_its_signal),
        T(a_kernel_that_kills_itself_did_not_run_out_of_memory),
        T(out_of_memory_is_told_before_the_exit_with_limit_and_peak),
        T(the_limit_may_kill_a_child_and_the_kernel_lives),
        T(a_signal_reaches_the_kernel),
        T(a_signal_to_the_process_alone_reaches_it_too),
        T(other_signals_end_the_gateway),
        T(stop_of_a_kernel_is_answered_when_its_group_is_gone),
        T(stop_of_a_session_is_answered_when_all_is_gone),
        T(two_stops_of_one_session_are_both_answered),
        T(a_session_that_does_not_empty_is_quarantined_and_said_so),
        T(a_stop_of_what_never_was_is_an_error),
        T(the_end_of_init_ends_the_session),
        T(a_deadline_ends_the_session),
        T(a_deadline_ends_the_session_when_no_gateway_lives),
        T(a_deadline_can_be_taken_away),
        T(a_deadline_beyond_the_maximum_is_refused),
        T(a_note_comes_back_with_its_descriptors_in_order),
        T(list_tells_every_sandbox_once),
        T(an_exit_while_no_gateway_lived_is_told_by_list),
        T(the_answer_for_a_gateway_that_died_goes_to_nobody),
        T(bytes_that_are_no_message_end_the_gateway_and_nothing_else),
        T(every_prefix_of_a_request_ends_the_gateway),
        T(the_number_0_is_no_request),
        T(nothing_new_starts_while_the_server_stops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
