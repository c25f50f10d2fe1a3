/* What a gateway may ask of the launcher, and what ends it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "world.h"

static struct answer a; /* large */

/* ---- CREATE ---- */

static void create_answers_with_two_descriptors_and_the_limits_in_force(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("default"), .limits.memory_bytes = 65 << 20 };

    world_fresh(&a);
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_CREATE);
    assert_int_equal(a.head.fds, 2);
    world_close(a.fds, 2);
    assert_true(a.created.sandbox != 0);
    assert_int_equal(a.created.limits.memory_bytes, 65 << 20);
    assert_int_equal(a.created.limits.pids, w->config.defaults.pids);
}

static void a_limit_above_the_maximum_is_refused_by_name(void **state)
{
    struct launch_create m = { .profile = VIEW_STR("default"),
                               .limits.memory_bytes = WORLD_MEMORY_MAX + 1 };

    world_fresh(&a);
    world_call(*state, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, HC_ELIMIT, "memory_bytes");
    assert_int_equal(fake.alive, 0);
}

static void a_limit_with_which_nothing_could_live_is_refused_by_name(void **state)
{
    struct launch_create m = { .profile = VIEW_STR("default"), .limits.memory_bytes = 4096 };

    world_fresh(&a);
    world_call(*state, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, HC_ELIMIT, "memory_bytes: 4096 is below the minimum");
    assert_int_equal(fake.alive, 0);
}

static void an_unknown_profile_is_an_error(void **state)
{
    struct launch_create m = { .profile = VIEW_STR("other") };

    world_fresh(&a);
    world_call(*state, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, ENOENT, "profile");
}

static void sandboxes_are_bounded_and_a_place_comes_back(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("default") };
    uint64_t first = world_create(w);

    for (unsigned i = 1; i < w->config.sessions_max; i++)
        world_create(w);
    world_fresh(&a);
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, HC_EFULL, "as many sessions as it can");
    world_stop_session(w, first);
    world_create(w);
}

static void a_create_that_fails_leaves_nothing(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("default") };

    fake.create_error = ENOSPC;
    world_fresh(&a);
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, HC_EFULL, "no room");
    fake.create_error = EPERM;
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, EPERM, "create: fake");
    assert_int_equal(w->launcher.sessions.count, 0);
}

static void without_loop_devices_homes_are_in_memory_where_they_may_be(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("default") };

    fake.no_loop_devices = 1;
    world_fresh(&a);
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_CREATE);
    world_close(a.fds, 2);
    assert_int_equal(fake.files.home, SANDBOX_HOME_MEMORY);
    assert_int_equal(w->launcher.short_of_disk, 1); /* which is told once */
    /* And no session of another kind. */
    w->config.home.mode = HOME_DISK;
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, HC_EFULL, "no room");
    w->config.home.mode = HOME_AUTO;
    m.limits.home_bytes = w->config.maxima.home_bytes = 64 << 20; /* more than memory gives */
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, HC_EFULL, "no disk left for a home of that size");
    assert_int_equal(w->launcher.sessions.count, 1);
    assert_int_equal(w->launcher.short_of_disk, 1);
    fake.no_loop_devices = 0;
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_CREATE);
    world_close(a.fds, 2);
    assert_int_equal(fake.files.home, SANDBOX_HOME_DISK);
    assert_int_equal(w->launcher.short_of_disk, 0);
}

static void the_last_place_is_not_lost_on_the_way_to_a_home_in_memory(void **state)
{
    struct world *w = *state;

    fake.no_loop_devices = 1;
    for (unsigned i = 0; i < w->config.sessions_max; i++)
        world_create(w);
    assert_int_equal(w->launcher.sessions.count, w->config.sessions_max);
}

/* ---- files ---- */

static void data_directories_are_given_by_name(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("default"), .data_all = 1 };

    world_fresh(&a);
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_CREATE);
    world_close(a.fds, 2);
    assert_int_equal(fake.files.data, 3);
    m.data_all = 0;
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_close(a.fds, 2);
    assert_int_equal(fake.files.data, 0);
    m.data = VIEW_STR("first\0");
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_close(a.fds, 2);
    assert_int_equal(fake.files.data, 1);
    m.data = VIEW_STR("first\0../second\0");
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, ENOENT, "no data directory '../second'");
}

static void a_workspace_is_a_principals_and_no_larger_than_all_may_be(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("default"), .principal = VIEW_STR("ann") };

    world_fresh(&a);
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a); /* a server without workspaces */
    world_close(a.fds, 2);
    assert_string_equal(fake.workspace, "");
    w->config.workspaces = "/somewhere";
    w->config.workspace_bytes = 1000;
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_close(a.fds, 2);
    assert_string_equal(fake.workspace, "ann");
    assert_int_equal(fake.files.workspace_bytes, 1000);
    m.workspace_bytes = 500;
    m.principal = VIEW_STR("a+b@c.d");
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_close(a.fds, 2);
    assert_string_equal(fake.workspace, "a+b@c.d");
    assert_int_equal(fake.files.workspace_bytes, 500);
    m.workspace_bytes = 1001;
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, HC_ELIMIT, "above the maximum, 1000");
}

static void a_name_that_is_a_path_ends_the_gateway(void **state)
{
    static const char *const bad[] = {
        "../ann", ".", "..", ".ann", "a/b", "-a", "a b", "\xc3\xa4"
    };
    struct world *w = *state;

    w->config.workspaces = "/somewhere";
    w->config.workspace_bytes = 1000;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct launch_create m = { .profile = VIEW_STR("default"), .principal = view_cstr(bad[i]) };

        struct launch_list sane = { 0 }; /* a gateway that never spoke is none */

        world_fresh(&a);
        world_call(w, LAUNCH_LIST, &sane, NULL, 0, &a);
        world_ask(w, LAUNCH_CREATE, &m, NULL, 0);
        world_assert_gateway_ended(w, 0);
    }
}

/* ---- room ---- */

#define MIB UINT64_C(1048576)

static void assert_room(struct world *w, uint64_t promised, const char *lack)
{
    struct launch_room m = { 0 };

    world_fresh(&a);
    world_call(w, LAUNCH_ROOM, &m, NULL, 0, &a);
    assert_int_equal(a.head.verb, LAUNCH_ROOM);
    assert_int_equal(a.room.memory_promised, promised);
    assert_int_equal(a.room.sessions, w->launcher.sessions.count);
    assert_int_equal(a.room.sessions_max, 4);
    assert_true(view_equals(a.room.lack, lack));
}

static void without_room_no_session_is_made(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("default") };
    struct sandbox_room room = { .memory_total = UINT64_MAX,
                                 .memory = 1000 * MIB,
                                 .tasks = UINT64_MAX,
                                 .files = UINT64_MAX,
                                 .disk_total = UINT64_MAX,
                                 .disk = UINT64_MAX };

    fake.room = &room;
    w->config.memory_reserve = 500 * MIB;
    w->config.starting_ms = 3600 * 1000;
    w->config.defaults.memory_bytes = w->config.maxima.memory_bytes = 2048 * MIB;
    for (int i = 0; i < 3; i++) {
        assert_room(w, (uint64_t)i * 128 * MIB, "");
        world_create(w);
    }
    assert_room(w, 3 * 128 * MIB, "memory");
    world_fresh(&a);
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, HC_EFULL, "no memory left");
    assert_int_equal(w->launcher.sessions.count, 3);
    fake.memory = 100 * MIB; /* they use it now: what is left was measured with it */
    assert_room(w, 3 * 28 * MIB, "");
    world_create(w);
    assert_room(w, 4 * 28 * MIB, "sessions");
    fake.room = NULL;
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

    world_fresh(&a);
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
    world_fresh(&a);
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
    world_fresh(&a);
    call_start(w, &m, 1);
    world_assert_error(&a, ENOENT, "exec");
    fake.start_error = 0;
    world_start(w, m.sandbox, 1, 1, "wait");
}

static void a_kernelspec_that_is_not_there_is_an_error(void **state)
{
    struct world *w = *state;
    struct launch_start m = start_message(world_create(w));

    world_fresh(&a);
    m.spec_name = VIEW_STR("ruby");
    call_start(w, &m, 1);
    world_assert_error(&a, ENOENT, "'ruby'");
    m.spec_name = VIEW_STR("../kernels");
    call_start(w, &m, 1);
    world_assert_error(&a, EINVAL, "name");
    m.spec_dir = 1;
    m.spec_name = VIEW_STR("python3");
    call_start(w, &m, 1);
    world_assert_error(&a, ENOENT, "index");
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
    world_assert_gateway_ended(w, 1);
}

static void a_generation_never_comes_back(void **state)
{
    struct world *w = *state;
    struct launch_start m = start_message(world_create(w));
    struct launch_stop stop = { m.sandbox, 1, 5 };
    int fds[7];

    world_start(w, m.sandbox, 1, 5, "wait");
    world_fresh(&a);
    world_ask(w, LAUNCH_STOP, &stop, NULL, 0);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_KERNEL_EXITED);
    world_next(w, &a);
    assert_int_equal(a.head.verb, LAUNCH_STOP);
    m.generation = 5;
    unsigned n = world_start_fds(fds, 1);
    world_ask(w, LAUNCH_START_KERNEL, &m, fds, n);
    world_close(fds, n);
    world_assert_gateway_ended(w, 1);
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
        world_assert_gateway_ended(w, 1);
    }
    int fds[7];
    unsigned n = world_start_fds(fds, 0); /* too few for the flag */
    world_ask(w, LAUNCH_START_KERNEL, &m, fds, n);
    world_close(fds, n);
    world_assert_gateway_ended(w, 1);
}

/* ---- faults ---- */

static void bytes_that_are_no_message_end_the_gateway_and_nothing_else(void **state)
{
    struct world *w = *state;
    struct msg_head head = { .size = sizeof head, .version = MSG_VERSION, .request = 1 };

    world_create(w);
    world_send_raw(w, "x", 1);
    world_assert_gateway_ended(w, 1);
    world_send_raw(w, &head, sizeof head); /* verb 0 */
    world_assert_gateway_ended(w, 1);
    head.verb = LAUNCH_ERROR;
    world_send_raw(w, &head, sizeof head);
    world_assert_gateway_ended(w, 1);
    head.verb = LAUNCH_KERNEL_EXITED;
    world_send_raw(w, &head, sizeof head);
    world_assert_gateway_ended(w, 1);
    head.verb = LAUNCH_LIST; /* without its field */
    world_send_raw(w, &head, sizeof head);
    world_assert_gateway_ended(w, 1);
    head.version++;
    world_send_raw(w, &head, sizeof head);
    world_assert_gateway_ended(w, 1);
}

static void every_prefix_of_a_request_ends_the_gateway(void **state)
{
    struct world *w = *state;
    struct launch_create m = { .profile = VIEW_STR("default") };
    autobuf struct buf b;

    world_stop_session(w,
                       world_create(w)); /* so that it is not one that never got as far as asking */
    buf_init(&b, MSG_MAX);
    assert_int_equal(msg_encode(launch_request_spec(LAUNCH_CREATE), 7, 0, &m, 0, &b, NULL), 0);
    for (size_t n = 1; n < buf_len(&b); n++) {
        uint32_t size = (uint32_t)n;

        if (n >= sizeof(struct msg_head)) /* an honest head */
            memcpy(b.data + b.head, &size, sizeof size);
        world_send_raw(w, buf_view(&b).p, n);
        world_assert_gateway_ended(w, 0);
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
    world_assert_gateway_ended(w, 0);
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
    world_fresh(&a);
    world_call(w, LAUNCH_CREATE, &m, NULL, 0, &a);
    world_assert_error(&a, ECANCELED, "stops");
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
        T(a_limit_with_which_nothing_could_live_is_refused_by_name),
        T(an_unknown_profile_is_an_error),
        T(sandboxes_are_bounded_and_a_place_comes_back),
        T(a_create_that_fails_leaves_nothing),
        T(without_loop_devices_homes_are_in_memory_where_they_may_be),
        T(the_last_place_is_not_lost_on_the_way_to_a_home_in_memory),
        T(data_directories_are_given_by_name),
        T(a_workspace_is_a_principals_and_no_larger_than_all_may_be),
        T(a_name_that_is_a_path_ends_the_gateway),
        T(without_room_no_session_is_made),
        T(a_start_hands_everything_to_the_sandbox),
        T(a_kernel_that_binds_its_sockets_itself_brings_a_run_folder),
        T(a_start_that_fails_is_an_error_and_may_be_tried_again),
        T(a_kernelspec_that_is_not_there_is_an_error),
        T(starting_a_running_kernel_again_ends_the_gateway),
        T(a_generation_never_comes_back),
        T(wrong_descriptors_of_a_start_end_the_gateway),
        T(bytes_that_are_no_message_end_the_gateway_and_nothing_else),
        T(every_prefix_of_a_request_ends_the_gateway),
        T(the_number_0_is_no_request),
        T(nothing_new_starts_while_the_server_stops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
