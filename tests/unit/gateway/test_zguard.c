/* Peers that send what no kernel sends: what libzmq holds of it stays bounded, and who did it is told. */
#include "zguard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "deferred.h"
#include "err.h"
#include "loop.h"
#include "zsocket_own.h"

enum { PEERS = 4, MIB = 1 << 20 };

struct peer {
    struct fixture *f;
    struct zsocket_peer *kernel; /* owned, but by who came later to the same one */
    int shares;
    struct zsocket *socket;
    char path[64];
    int listener, fd;
    unsigned messages;
    const char *why; /* it was ended for */
};

struct fixture {
    struct loop *loop;
    struct deferred *deferred;
    struct zsockets *all;
    struct loop_timer *late, *tick;
    struct peer peers[PEERS];
    unsigned want; /* messages of the first one */
    char order[256];
    unsigned read; /* of all */
};

static void too_late(void *arg)
{
    (void)arg;
    fail_msg("nothing happened in 60 s");
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    f->loop = loop_new();
    f->deferred = deferred_new(f->loop);
    f->all = zsockets_new(f->loop, f->deferred, NULL);
    f->late = loop_timer_start(f->loop, 60000, 0, too_late, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < PEERS; i++) {
        struct peer *p = &f->peers[i];
        if (p->f == NULL)
            continue;
        p->socket = zsocket_close(p->socket);
        close(p->fd);
        close(p->listener);
        unlink(p->path);
    }
    for (unsigned i = 0; i < PEERS; i++) {
        if (!f->peers[i].shares)
            zsocket_peer_free(f->peers[i].kernel);
    }
    zguard_set_all_max(0);
    f->late = loop_timer_close(f->late);
    f->tick = loop_timer_close(f->tick);
    f->all = zsockets_free(f->all);
    f->deferred = deferred_close(f->deferred);
    f->loop = loop_free(f->loop);
    free(f);
    return 0;
}

static void on_message(void *arg, const struct view *frames, size_t count)
{
    struct peer *p = arg;

    (void)frames;
    (void)count;
    p->messages++;
    if (p->f->read < sizeof p->f->order)
        p->f->order[p->f->read] = (char)('0' + (p - p->f->peers));
    p->f->read++;
    if (p->f->peers[0].messages >= p->f->want)
        loop_stop(p->f->loop);
}

static void on_broke(void *arg, const char *why)
{
    struct peer *p = arg;

    p->why = why;
    loop_stop(p->f->loop);
}

/* Sends all of it, while the I/O thread reads. */
static void say(struct peer *p, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    struct pollfd wait = { .fd = p->fd, .events = POLLOUT };

    while (n > 0) {
        ssize_t done = send(p->fd, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done < 0 && errno == EAGAIN) {
            assert_int_equal(poll(&wait, 1, 60000), 1);
            continue;
        }
        if (done < 0)
            return; /* ended: what is told is looked at */
        at += done;
        n -= (size_t)done;
    }
}

static void greet(struct peer *p)
{
    static const char greeting[64] = "\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL";
    static const char ready[] = "\4\x1c\5READY\x0bSocket-Type\0\0\0\6ROUTER";

    say(p, greeting, sizeof greeting);
    say(p, ready, sizeof ready - 1);
    /* Its greeting and the first byte of its READY: a message before that is an error. */
    char answer[65];
    assert_int_equal(recv(p->fd, answer, sizeof answer, MSG_WAITALL), sizeof answer);
}

static struct peer *open_peer_of(struct fixture *f, unsigned i, const struct peer *same)
{
    static const struct zsocket_ops ops = { .message = on_message };
    struct peer *p = &f->peers[i];
    struct sockaddr_un sun = { .sun_family = AF_UNIX };

    p->f = f;
    snprintf(p->path, sizeof p->path, "/tmp/zguard-%d-%u", (int)getpid(), i);
    snprintf(sun.sun_path, sizeof sun.sun_path, "%s", p->path);
    p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&sun, sizeof sun), 0);
    assert_int_equal(listen(p->listener, 1), 0);
    p->shares = same != NULL;
    p->kernel = same != NULL ? same->kernel : zsocket_peer_new(on_broke, p);
    const struct zsocket_options o = {
        .type = ZSOCKET_DEALER, .path = p->path, .peer = p->kernel, .identity = "d"
    };
    assert_int_equal(zsocket_open(f->all, &o, &ops, p, &p->socket, NULL), 0);
    p->fd = accept(p->listener, NULL, NULL);
    assert_true(p->fd >= 0);
    greet(p);
    return p;
}

static struct peer *open_peer(struct fixture *f, unsigned i)
{
    return open_peer_of(f, i, NULL);
}

static void say_head(struct peer *p, uint8_t flags, uint64_t n)
{
    uint8_t head[9] = { flags | 2 };

    for (unsigned i = 0; i < 8; i++)
        head[1 + i] = (uint8_t)(n >> (56 - 8 * i));
    say(p, head, sizeof head);
}

/* Until the connection waits, or (0) does not. */
static void await_waiting(struct peer *p, int waits)
{
    for (unsigned i = 0; zguard_use(p->socket->guard).waits != waits; i++) {
        assert_true(i < 60000);
        usleep(1000);
    }
}

/* ---- what no kernel may ---- */

static void parts_without_an_end_are_held_up_to_a_number_and_told(void **state)
{
    struct fixture *f = *state;
    struct peer *p = open_peer(f, 0);

    for (unsigned i = 0; i <= ZGUARD_PARTS_MAX; i++)
        say(p, "\1\0", 2);
    loop_run(f->loop);
    assert_non_null(strstr(p->why, "parts"));
    assert_int_equal(p->messages, 0);
    p->socket = zsocket_close(p->socket);
    struct peer *q = open_peer(f, 1);
    assert_int_equal(zguard_use(q->socket->guard).all, 0);
}

static void a_message_larger_than_any_is_held_up_to_its_limit_and_told(void **state)
{
    struct fixture *f = *state;
    struct peer *p = open_peer(f, 0);
    uint8_t *part = xcalloc(1, 16 * MIB);

    for (unsigned i = 0; i <= ZGUARD_MESSAGE_MAX / (16 * MIB); i++) {
        say_head(p, 1, 16 * MIB);
        say(p, part, 16 * MIB);
    }
    free(part);
    loop_run(f->loop);
    assert_non_null(strstr(p->why, "larger"));
}

static void the_other_kernels_are_not_told(void **state)
{
    struct fixture *f = *state;
    struct peer *p = open_peer(f, 0), *other = open_peer(f, 1);

    say(p, "\4\x0a\x09SUBSCRIBE", 12);
    loop_run(f->loop);
    assert_non_null(strstr(p->why, "command"));
    f->want = 0;
    say(other, "\0\1x", 3);
    loop_run(f->loop);
    assert_int_equal(other->messages, 1);
    assert_null(other->why);
}

/* ---- what is read too slowly ---- */

static void messages_that_the_loop_did_not_read_wait_in_the_kernel(void **state)
{
    enum { MESSAGES = 512 };
    struct fixture *f = *state;
    struct peer *p = open_peer(f, 0);
    uint8_t *message = xcalloc(1, MIB);
    unsigned sent = 0;
    size_t rest = 0; /* of the one under way */

    /* The loop does not run: the socket fills once the guard waits. */
    for (unsigned idle = 0; idle < 200;) {
        if (rest == 0) {
            say_head(p, 0, MIB);
            rest = MIB;
        }
        ssize_t n = send(p->fd, message, rest, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            rest -= (size_t)n;
            sent += rest == 0;
            assert_true(sent < 1000);
            idle = 0;
            continue;
        }
        if (zguard_use(p->socket->guard).waits)
            break;
        idle++;
        usleep(5000);
    }
    assert_in_range(sent, ZGUARD_KERNEL_MAX / MIB - 1, ZGUARD_KERNEL_MAX / MIB + 4);
    assert_true(zguard_use(p->socket->guard).kernel <= ZGUARD_KERNEL_MAX + 2 * MIB);
    f->want = sent;
    loop_run(f->loop);
    await_waiting(p, 0);
    say(p, message, rest);
    f->want = ++sent;
    loop_run(f->loop);
    assert_int_equal(p->messages, sent);
    free(message);
}

/* ---- what one takes from others ---- */

static void what_one_kernel_announced_does_not_keep_small_messages_of_another(void **state)
{
    struct fixture *f = *state;
    struct peer *p, *q;

    zguard_set_all_max(2 * MIB);
    p = open_peer(f, 1);
    say_head(p, 0, 120 * MIB); /* beyond the limit of all */
    q = open_peer(f, 2);
    say_head(q, 0, 2 * MIB - 256);
    struct peer *small = open_peer(f, 0);
    f->want = 1;
    say(small, "\0\1x", 3);
    loop_run(f->loop);
    assert_int_equal(small->messages, 1);
    assert_null(p->why);
    assert_null(q->why);
}

static void a_message_that_does_not_end_goes_when_others_wait_for_its_room(void **state)
{
    struct fixture *f = *state;
    uint8_t *body = xcalloc(1, 3 * MIB);

    zguard_set_all_max(2 * MIB);
    struct peer *hoards = open_peer(f, 1), *waits = open_peer(f, 0);
    zguard_end_stalled(0); /* nobody waits */
    say_head(hoards, 0, 120 * MIB);
    while (zguard_use(hoards->socket->guard).kernel == 0)
        usleep(1000);
    zguard_end_stalled(0);
    say_head(waits, 0, 3 * MIB);
    await_waiting(waits, 1);
    zguard_end_stalled(0);
    loop_run(f->loop);
    assert_non_null(strstr(hoards->why, "did not end"));
    f->want = 1;
    say(waits, body, 3 * MIB);
    loop_run(f->loop);
    assert_int_equal(waits->messages, 1);
    assert_null(waits->why);
    free(body);
}

/* ---- whose turn it is ---- */

enum { TURN = 64 }; /* zsocket_read.c: messages of one kernel */

/* Until all of it is in libzmq. */
static void say_small(struct peer *p, unsigned count)
{
    size_t before = zguard_use(p->socket->guard).kernel;

    for (unsigned i = 0; i < count; i++)
        say(p, "\0\1x", 3);
    while (zguard_use(p->socket->guard).kernel < before + count * (ZGUARD_PART_COST + 1))
        usleep(1000);
    while (!(zsocket_events(p->socket->zmq) & ZMQ_POLLIN))
        usleep(1000);
    zsocket_mark(p->socket);
}

static void all_sockets_of_a_kernel_have_one_turn_together(void **state)
{
    struct fixture *f = *state;
    struct peer *p = open_peer(f, 0);

    f->want = UINT32_MAX;
    for (unsigned i = 0; i < 3; i++)
        say_small(i == 0 ? p : open_peer_of(f, i, p), 200);
    zsockets_serve_turn(f->all);
    assert_int_equal(f->read, TURN);
    zsockets_serve_turn(f->all);
    assert_int_equal(f->read, 2 * TURN);
    for (unsigned i = 0; f->read < 600; i++) {
        assert_true(i < 1000);
        zsockets_serve_turn(f->all);
    }
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(f->peers[i].messages, 200);
}

static void who_uses_up_its_turns_comes_after_the_others(void **state)
{
    struct fixture *f = *state;
    struct peer *floods = open_peer(f, 1), *other = open_peer(f, 2);

    f->want = UINT32_MAX;
    say_small(floods, 200);
    zsockets_serve_turn(f->all);
    assert_int_equal(f->read, TURN);
    zsocket_unmark(other->socket); /* it comes behind */
    say_small(other, 1);
    zsocket_unmark(floods->socket);
    zsocket_unmark(other->socket);
    zsocket_mark(floods->socket);
    zsocket_mark(other->socket);
    f->read = 0;
    zsockets_serve_turn(f->all);
    assert_int_equal(f->read, TURN + 1);
    assert_int_equal(f->order[0], '2');
    assert_int_equal(f->order[1], '1');
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(parts_without_an_end_are_held_up_to_a_number_and_told),
        TEST(a_message_larger_than_any_is_held_up_to_its_limit_and_told),
        TEST(the_other_kernels_are_not_told),
        TEST(messages_that_the_loop_did_not_read_wait_in_the_kernel),
        TEST(what_one_kernel_announced_does_not_keep_small_messages_of_another),
        TEST(all_sockets_of_a_kernel_have_one_turn_together),
        TEST(who_uses_up_its_turns_comes_after_the_others),
        TEST(a_message_that_does_not_end_goes_when_others_wait_for_its_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
