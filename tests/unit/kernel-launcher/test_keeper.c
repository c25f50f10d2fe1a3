/* A launcher whose supervisor goes: what it keeps, who takes it over, what ends it. */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include "clock.h"
#include "err.h"
#include "keepermsg.h"
#include "launchlink.h"
#include "world.h"

enum { PATIENCE_MS = 20000 };

struct peer {
    struct link *link;
    struct link_packet p;
    union {
        struct keeper_hello hello;
        struct keeper_count count;
        struct keeper_error error;
    } body;
};

static struct peer supervisor; /* of the first server */

static int setup(void **state)
{
    int sockets[2];

    if (world_setup(state) != 0)
        return -1;
    struct world *w = *state;
    struct keeper_config *c = &w->config.keeper;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets),
                     0);
    w->launcher.keeper.supervisor = link_new(sockets[0]);
    supervisor = (struct peer){ .link = link_new(sockets[1]) };
    memset(supervisor.p.fds, 0xff, sizeof supervisor.p.fds);
    c->slot = 3;
    c->runtime = "/the/runtime";
    c->state_dir_fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    c->state_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    c->slot_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    w->config.gateway.dir_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w->config.gateway.listen_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    w->launcher.gateway.spoke = 1;
    return 0;
}

static void peer_close(struct peer *p)
{
    link_packet_close(&p->p);
    p->link = link_free(p->link);
}

static int teardown(void **state)
{
    struct world *w = *state;

    if (supervisor.link != NULL)
        peer_close(&supervisor);
    closep(&w->config.gateway.dir_fd);
    /* launcher_main does so when the launcher is done. */
    closep(&w->config.gateway.listen_fd);
    closep(&w->config.gateway.exe_fd);
    closep(&w->config.gateway.settings_fd);
    closep(&w->config.gateway.ready_fd);
    return world_teardown(state);
}

static int kept(struct world *w)
{
    return w->launcher.state == LAUNCHER_KEPT;
}

static int serving(struct world *w)
{
    return w->launcher.state == LAUNCHER_SERVING;
}

static void ask(struct peer *p, unsigned verb, const void *body, const int *fds, unsigned n)
{
    link_post(p->link, keeper_request_spec(verb), 7, 0, body, fds, n);
}

static void say_keep(void)
{
    const struct keeper_count body = { 0 };

    ask(&supervisor, KEEPER_KEEP, &body, NULL, 0);
}

/* Turns the loop until a packet is there, or (verb 0) the end of the connection. */
static void hear(struct world *w, struct peer *p, unsigned verb)
{
    uint64_t end = clock_ms() + PATIENCE_MS;
    struct err e = { 0 };

    link_packet_close(&p->p);
    while (link_receive(p->link, &p->p) == 0 && link_broken(p->link) == NULL) {
        if (clock_ms() > end)
            fail_msg("heard nothing");
        launcher_turn(&w->launcher, 5);
    }
    if (verb == 0) {
        assert_true(link_closed(p->link));
        return;
    }
    assert_null(link_broken(p->link));
    assert_int_equal(p->p.head.verb, verb);
    if (msg_decode(keeper_answer_spec(verb), &p->p.head, p->p.bytes, &p->body, &e) < 0)
        fail_msg("%s", e.msg);
}

static void keep(struct world *w)
{
    say_keep();
    world_until(w, kept);
    hear(w, &supervisor, KEEPER_KEPT);
}

static int try_connect(struct world *w, struct peer *ret)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(to.sun_path, sizeof to.sun_path, "%s/keeper", w->dir);
    *ret = (struct peer){ 0 };
    memset(ret->p.fds, 0xff, sizeof ret->p.fds);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        int code = errno;
        close(fd);
        return -code;
    }
    ret->link = link_new(fd);
    return 0;
}

static void say_hello(struct world *w, struct peer *p, unsigned verb)
{
    const struct keeper_hello body = { .version = KEEPER_VERSION };

    assert_int_equal(try_connect(w, p), 0);
    ask(p, KEEPER_HELLO, &body, NULL, 0);
    hear(w, p, verb);
}

static const char *const good[] = { "launcher",         "--slot=3",
                                    "--init=/i",        "--runtime=/the/runtime",
                                    "--kernel-path=/k", "--gateway=/bin/false",
                                    "--listen-fd=3",    "--settings-fd=4",
                                    "--ready-fd=5",     "--dir-fd=6",
                                    "--max-sessions=9", NULL };

static void attach(struct peer *p, const char *const *argv)
{
    autobuf struct buf strings;
    int fds[KEEPER_MORE_FD];

    buf_init(&strings, KEEPER_ARGV_MAX);
    for (unsigned i = 0; argv[i] != NULL; i++)
        assert_int_equal(msg_strings_add(&strings, argv[i]), 0);
    const struct keeper_attach body = { .argv = buf_view(&strings) };
    for (unsigned i = 0; i < KEEPER_MORE_FD; i++)
        fds[i] = i == KEEPER_STDERR_FD ? STDERR_FILENO : open("/dev/null", O_RDWR | O_CLOEXEC);
    ask(p, KEEPER_ATTACH, &body, fds, KEEPER_MORE_FD);
    for (unsigned i = 0; i < KEEPER_MORE_FD; i++)
        if (i != KEEPER_STDERR_FD)
            close(fds[i]);
}

static void run_to_the_end(struct world *w)
{
    uint64_t end = clock_ms() + PATIENCE_MS;

    while (launcher_turn(&w->launcher, 20))
        assert_true(clock_ms() < end);
}

/* ---- tests ---- */

static void keep_ends_the_gateway_and_gives_back_what_the_server_gave(void **state)
{
    struct world *w = *state;
    uint64_t sandbox = world_create(w);

    keep(w);
    assert_int_equal(supervisor.body.count.sessions, 1);
    assert_int_equal(supervisor.body.count.failed, 0);
    assert_int_equal(w->launcher.gateway.pid, 0);
    assert_int_equal(w->config.gateway.listen_fd, -1);
    assert_true(w->config.gateway.dir_fd >= 0);
    assert_int_equal(fake.alive, 1);
    assert_non_null(sessions_find(&w->launcher.sessions, sandbox));
    peer_close(&supervisor);
    for (int i = 0; i < 5; i++)
        assert_int_equal(launcher_turn(&w->launcher, 5), 1);
    assert_int_equal(fake.alive, 1);
}

static void keep_with_nothing_to_keep_is_the_end(void **state)
{
    struct world *w = *state;
    struct peer p;

    say_keep();
    run_to_the_end(w);
    assert_int_equal(try_connect(w, &p), -ENOENT);
}

static void keep_where_nobody_would_find_it_is_refused_and_changes_nothing(void **state)
{
    struct world *w = *state;

    closep(&w->config.keeper.state_dir_fd);
    world_create(w);
    say_keep();
    hear(w, &supervisor, KEEPER_ERROR);
    assert_int_equal(w->launcher.state, LAUNCHER_SERVING);
    assert_true(w->launcher.gateway.pid > 0);
}

static void a_second_keep_kills_a_gateway_that_takes_its_time(void **state)
{
    struct world *w = *state;

    world_create(w);
    kill(w->launcher.gateway.pid, SIGSTOP);
    say_keep();
    say_keep();
    world_until(w, kept);
    assert_int_equal(fake.alive, 1);
}

static void a_supervisor_that_dies_without_a_word_is_the_end(void **state)
{
    struct world *w = *state;

    world_create(w); /* the fake's child has a copy of the socket, so closing it is not enough */
    assert_int_equal(shutdown(link_fd(supervisor.link), SHUT_RDWR), 0);
    run_to_the_end(w);
    assert_int_equal(fake.alive, 0);
}

static void a_gateway_that_winds_down_may_still_ask_for_all(void **state)
{
    struct world *w = *state;
    struct answer *a = xcalloc(1, sizeof *a);
    struct launch_note note = { world_create(w), VIEW_STR("the last") };

    kill(w->launcher.gateway.pid, SIGSTOP);
    say_keep();
    while (w->launcher.state != LAUNCHER_KEEPING)
        launcher_turn(&w->launcher, 5);
    world_call(w, LAUNCH_NOTE, &note, NULL, 0, a);
    assert_int_equal(a->head.verb, LAUNCH_NOTE);
    world_create(w);
    say_keep();
    world_until(w, kept);
    assert_int_equal(fake.alive, 2);
    free(a);
}

static void the_deadline_of_the_last_session_ends_the_keeper(void **state)
{
    struct world *w = *state;
    struct answer *a = xcalloc(1, sizeof *a);
    struct launch_deadline m = { world_create(w), clock_ms() + 300 };
    struct peer p;

    world_call(w, LAUNCH_DEADLINE, &m, NULL, 0, a);
    keep(w);
    run_to_the_end(w);
    assert_int_equal(fake.alive, 0);
    assert_int_equal(try_connect(w, &p), -ENOENT);
    free(a);
}

static void sigterm_ends_a_keeper(void **state)
{
    struct world *w = *state;

    world_create(w);
    keep(w);
    launcher_stop(&w->launcher);
    run_to_the_end(w);
    assert_int_equal(fake.alive, 0);
}

static void hello_tells_the_instance(void **state)
{
    struct world *w = *state;
    struct stat st, zero;
    struct peer p;

    world_create(w);
    keep(w);
    say_hello(w, &p, KEEPER_HELLO);
    assert_int_equal(p.body.hello.slot, 3);
    assert_true(view_equals(p.body.hello.runtime, "/the/runtime"));
    assert_int_equal(fstat(p.p.fds[KEEPER_SLOT_FD], &st), 0);
    assert_int_equal(stat("/dev/zero", &zero), 0);
    assert_int_equal(st.st_ino, zero.st_ino);
    peer_close(&p);
    for (int i = 0; i < 5; i++)
        launcher_turn(&w->launcher, 5);
    assert_int_equal(w->launcher.state, LAUNCHER_KEPT);
    assert_null(w->launcher.keeper.candidate);
}

static void of_two_who_come_the_second_is_refused(void **state)
{
    struct world *w = *state;
    struct peer first, second;

    world_create(w);
    keep(w);
    say_hello(w, &first, KEEPER_HELLO);
    say_hello(w, &second, KEEPER_ERROR);
    assert_int_equal(second.p.head.error, EBUSY);
    peer_close(&second);
    peer_close(&first);
    while (w->launcher.keeper.candidate != NULL)
        launcher_turn(&w->launcher, 5);
    say_hello(w, &second, KEEPER_HELLO);
    peer_close(&second);
}

static void another_version_is_refused_by_name(void **state)
{
    struct world *w = *state;
    const struct keeper_hello body = { .version = KEEPER_VERSION + 1 };
    struct peer p;

    world_create(w);
    keep(w);
    assert_int_equal(try_connect(w, &p), 0);
    ask(&p, KEEPER_HELLO, &body, NULL, 0);
    hear(w, &p, KEEPER_ERROR);
    assert_int_equal(p.p.head.error, EPROTO);
    hear(w, &p, 0);
    peer_close(&p);
    assert_int_equal(w->launcher.state, LAUNCHER_KEPT);
}

static void what_the_sandboxes_have_cannot_be_changed(void **state)
{
    static const struct {
        unsigned at;
        const char *option, *text;
    } bad[] = {
        { 3, "--runtime=/another", "--runtime" },
        { 10, "--cgroup-parent=/sys/fs/cgroup/x", "--cgroup-parent" },
        { 1, "--slot=4", "slot" },
        { 10, "--what-is-this=1", "--what-is-this" },
        { 5, "--gateway=/none", "/none" },
    };
    struct world *w = *state;
    struct peer p;

    world_create(w);
    keep(w);
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *argv[sizeof good / sizeof *good];
        char text[KEEPER_TEXT_MAX + 1] = "";

        memcpy(argv, good, sizeof good);
        argv[bad[i].at] = bad[i].option;
        say_hello(w, &p, KEEPER_HELLO);
        attach(&p, argv);
        hear(w, &p, KEEPER_ERROR);
        memcpy(text, p.body.error.text.p, p.body.error.text.n);
        assert_non_null(strstr(text, bad[i].text));
        peer_close(&p);
        assert_int_equal(w->launcher.state, LAUNCHER_KEPT);
        assert_int_equal(w->config.gateway.listen_fd, -1);
    }
}

/* /bin/false is no gateway: the server that brought it is told, and all is as before. */
static void a_server_whose_gateway_does_not_start_leaves_all_kept(void **state)
{
    struct world *w = *state;
    struct peer p;

    world_create(w);
    keep(w);
    peer_close(&supervisor);
    for (int i = 0; i < 2; i++) {
        say_hello(w, &p, KEEPER_HELLO);
        attach(&p, good);
        world_until(w, serving);
        hear(w, &p, KEEPER_ATTACH);
        assert_int_equal(p.body.count.sessions, 1);
        assert_int_equal(w->launcher.sessions.max, 9);
        assert_true(w->config.gateway.listen_fd >= 0);
        hear(w, &p, KEEPER_KEPT);
        assert_int_equal(p.body.count.failed, 1);
        peer_close(&p);
        assert_int_equal(w->launcher.state, LAUNCHER_KEPT);
        assert_int_equal(w->config.gateway.listen_fd, -1);
        assert_int_equal(fake.alive, 1);
    }
}

/* What all sessions may have together follows from the options of the server of the day. */
static void the_next_server_has_a_reserve_of_its_own(void **state)
{
    const uint64_t gib = UINT64_C(1) << 30, mib = 1 << 20;
    const struct sandbox_share before = { 7 * gib, 12345 };
    const char *argv[sizeof good / sizeof *good + 1] = { NULL };
    struct sandbox_room room = { 8 * gib, 4 * gib, 20000, 10000, 10000, UINT64_MAX, UINT64_MAX };
    struct sandbox_share tried[2], after[2];
    struct world *w = *state;
    struct peer p;

    world_create(w);
    keep(w);
    peer_close(&supervisor);
    fake.room = &room;
    w->launcher.config->share = before;
    for (int i = 0; i < 2; i++) {
        memcpy(argv, good, sizeof good);
        if (i > 0)
            argv[sizeof good / sizeof *good - 1] = "--memory-reserve-mb=1000";
        say_hello(w, &p, KEEPER_HELLO);
        attach(&p, argv);
        world_until(w, serving);
        tried[i] = fake.share;
        hear(w, &p, KEEPER_ATTACH);
        hear(w, &p, KEEPER_KEPT); /* its gateway does not start */
        after[i] = fake.share;
        peer_close(&p);
    }
    fake.room = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tried[i].memory, 8 * gib - (i == 0 ? 512 : 1000) * mib);
        assert_int_equal(tried[i].tasks, 20000 - 1024);
        assert_int_equal(after[i].memory, before.memory);
        assert_int_equal(after[i].tasks, before.tasks);
    }
}

static void a_server_that_dies_before_its_gateway_spoke_leaves_all_kept(void **state)
{
    struct world *w = *state;
    struct peer p;

    world_create(w);
    keep(w);
    say_hello(w, &p, KEEPER_HELLO);
    attach(&p, good);
    world_until(w, serving);
    peer_close(&p);
    world_until(w, kept);
    assert_int_equal(fake.alive, 1);
}

static void nonsense_is_dropped(void **state)
{
    struct world *w = *state;
    const struct keeper_count count = { 0 };
    struct peer p;

    world_create(w);
    keep(w);
    assert_int_equal(try_connect(w, &p), 0);
    ask(&p, KEEPER_KEEP, &count, NULL, 0);
    hear(w, &p, KEEPER_ERROR);
    hear(w, &p, 0);
    peer_close(&p);
    assert_int_equal(try_connect(w, &p), 0);
    assert_int_equal(send(link_fd(p.link), "x", 1, 0), 1);
    hear(w, &p, 0);
    peer_close(&p);
    assert_int_equal(w->launcher.state, LAUNCHER_KEPT);
    assert_int_equal(fake.alive, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(keep_ends_the_gateway_and_gives_back_what_the_server_gave),
        T(keep_with_nothing_to_keep_is_the_end),
        T(keep_where_nobody_would_find_it_is_refused_and_changes_nothing),
        T(a_second_keep_kills_a_gateway_that_takes_its_time),
        T(a_supervisor_that_dies_without_a_word_is_the_end),
        T(a_gateway_that_winds_down_may_still_ask_for_all),
        T(the_deadline_of_the_last_session_ends_the_keeper),
        T(sigterm_ends_a_keeper),
        T(hello_tells_the_instance),
        T(of_two_who_come_the_second_is_refused),
        T(another_version_is_refused_by_name),
        T(what_the_sandboxes_have_cannot_be_changed),
        T(the_next_server_has_a_reserve_of_its_own),
        T(a_server_whose_gateway_does_not_start_leaves_all_kept),
        T(a_server_that_dies_before_its_gateway_spoke_leaves_all_kept),
        T(nonsense_is_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
