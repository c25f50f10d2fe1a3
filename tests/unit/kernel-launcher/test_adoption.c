/* LIST and NOTE: what a gateway finds that comes after another one. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "err.h"
#include "world.h"

static struct answer a; /* large */

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
    world_fresh(&a);
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

static void the_descriptors_of_all_notes_are_bounded(void **state)
{
    struct world *w = *state;
    struct launch_note one = { world_create(w), VIEW_STR("one") };
    struct launch_note two = { world_create(w), VIEW_STR("two") };
    int fds[MSG_FDS_MAX];

    for (unsigned i = 0; i < MSG_FDS_MAX; i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    world_fresh(&a);
    world_call(w, LAUNCH_NOTE, &one, fds, MSG_FDS_MAX, &a);
    assert_int_equal(a.head.verb, LAUNCH_NOTE);
    world_call(w, LAUNCH_NOTE, &one, fds, MSG_FDS_MAX, &a); /* replaces, does not add up */
    assert_int_equal(a.head.verb, LAUNCH_NOTE);
    world_call(w, LAUNCH_NOTE, &two, fds, 8, &a);
    assert_int_equal(a.head.verb, LAUNCH_NOTE);
    world_call(w, LAUNCH_NOTE, &two, fds, 9, &a);
    world_assert_error(&a, HC_ELIMIT, "40 descriptors");
    world_close(fds, MSG_FDS_MAX);
}

static void list_tells_every_sandbox_once(void **state)
{
    struct world *w = *state;
    uint64_t made[3], seen[3];
    struct launch_list list = { 0 };
    unsigned n = 0;

    for (unsigned i = 0; i < 3; i++)
        made[i] = world_create(w);
    world_fresh(&a);
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
    world_fresh(&a);
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
    world_fresh(&a);
    world_ask(w, LAUNCH_LIST, &list, NULL, 0);
    do /* SANDBOX_GONE may come first or later, a STOP answer never */
        world_next(w, &a);
    while (a.head.request == 0);
    assert_int_equal(a.head.verb, LAUNCH_LIST);
    assert_int_equal(a.listed.sandbox, 0);
}

static void what_a_dead_gateway_asked_last_is_noted_but_builds_no_sandbox(void **state)
{
    struct world *w = *state;
    const struct launch_create create = { .profile = VIEW_STR("default") };
    const struct launch_note note = { world_create(w), VIEW_STR("its last") };
    struct launch_list list = { 0 };

    kill(w->launcher.gateway.pid, SIGKILL);
    world_ask(w, LAUNCH_CREATE, &create, NULL, 0);
    world_ask(w, LAUNCH_NOTE, &note, NULL, 0);
    world_ask(w, LAUNCH_CREATE, &create, NULL, 0);
    assert_int_equal(waitid(P_PID, (id_t)w->launcher.gateway.pid, NULL, WEXITED | WNOWAIT), 0);
    world_until(w, world_gateway_dead);
    assert_int_equal(fake.alive, 1);
    world_attach(w);
    world_fresh(&a);
    world_call(w, LAUNCH_LIST, &list, NULL, 0, &a);
    assert_true(view_equals(a.listed.note, "its last"));
}

/* A burst of them does not put off deadlines and exits. */
static void sandboxes_that_take_long_are_built_one_a_turn(void **state)
{
    struct world *w = *state;
    const struct launch_create create = { .profile = VIEW_STR("default") };

    world_fresh(&a);
    fake.create_ms = 100;
    for (int i = 0; i < 3; i++)
        world_ask(w, LAUNCH_CREATE, &create, NULL, 0);
    for (int i = 1; i <= 3; i++) {
        launcher_turn(&w->launcher, 0);
        assert_int_equal(fake.alive, i);
    }
    for (int i = 0; i < 3; i++) {
        world_next(w, &a);
        assert_int_equal(a.head.verb, LAUNCH_CREATE);
    }
    world_close(a.fds, a.head.fds);
    a.head.fds = 0;
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_note_comes_back_with_its_descriptors_in_order),
        T(the_descriptors_of_all_notes_are_bounded),
        T(list_tells_every_sandbox_once),
        T(an_exit_while_no_gateway_lived_is_told_by_list),
        T(the_answer_for_a_gateway_that_died_goes_to_nobody),
        T(what_a_dead_gateway_asked_last_is_noted_but_builds_no_sandbox),
        T(sandboxes_that_take_long_are_built_one_a_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
