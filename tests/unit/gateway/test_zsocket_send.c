/* ZMQ sockets in the loop: what is sent to a kernel that does not take it, or no more. */
#include "zsocket_world.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include "loop.h"
#include "zsocket_own.h"

static void on_writable(void *arg)
{
    struct fixture *f = arg;

    f->writable++;
    loop_stop(f->loop);
}

static void read_router(void *arg)
{
    struct fixture *f = arg;
    zmq_msg_t m;

    for (int i = 0; i < 1000; i++) {
        zmq_msg_init(&m);
        int n = zmq_msg_recv(&m, f->peer, ZMQ_DONTWAIT);
        zmq_msg_close(&m);
        if (n < 0)
            return;
    }
}

/* A kernel that accepts and reads when it is told to; no more messages than these wait at its side. */
static void bind_slow_reader(struct fixture *f, int messages)
{
    f->peer = zmq_socket(f->ctx, ZMQ_ROUTER);
    zmq_setsockopt(f->peer, ZMQ_RCVHWM, &messages, sizeof messages);
    assert_int_equal(zmq_bind(f->peer, f->endpoint), 0);
}

static void a_kernel_that_reads_nothing_stops_the_sender_and_lets_it_go_on_later(void **state)
{
    struct fixture *f = *state;
    const struct zsocket_ops ops = { .message = on_count, .writable = on_writable };
    const struct zsocket_options o = { .type = ZSOCKET_DEALER,
                                       .path = f->endpoint + strlen("ipc://"),
                                       .identity = "d" };
    struct zsocket *s;
    size_t sizes[] = { 16, 4 << 20 };

    bind_slow_reader(f, 8);
    assert_int_equal(zsocket_open(f->all, &o, &ops, f, &s, NULL), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct view frame = { calloc(1, sizes[i]), sizes[i] };
        unsigned sent = 0;
        int rc;
        while ((rc = zsocket_send(s, &frame, 1, NULL)) == 0)
            assert_true(++sent < 100000);
        assert_int_equal(rc, -EAGAIN);
        if (i == 1)
            assert_true(sent < 64); /* bounded in bytes, not in messages */
        f->tick = loop_timer_start(f->loop, 1, 1, read_router, f);
        loop_run(f->loop);
        assert_int_equal(f->writable, i + 1);
        f->tick = loop_timer_close(f->tick);
        assert_int_equal(zsocket_send(s, &frame, 1, NULL), 0);
        free((void *)(uintptr_t)frame.p);
    }
    s = zsocket_close(s);
}

/* Many small frames are as much as a large one, and a frame costs where it is empty, too. */
static void frames_of_any_size_are_bounded_by_their_bytes(void **state)
{
    struct fixture *f = *state;
    const struct zsocket_ops ops = { .message = on_count, .writable = on_writable };
    const struct zsocket_options o = { .type = ZSOCKET_DEALER,
                                       .path = f->endpoint + strlen("ipc://"),
                                       .identity = "d" };
    struct zsocket *s;
    enum { FRAMES = 4000 };
    size_t sizes[] = { 8000, 0 };
    struct view *frames = calloc(FRAMES, sizeof *frames);
    uint8_t *bytes = calloc(1, sizes[0]);

    bind_slow_reader(f, 1);
    for (unsigned i = 0; i < 2; i++) {
        size_t each = FRAMES * (sizes[i] + sizeof(zmq_msg_t));
        unsigned sent = 0;
        int rc;
        assert_int_equal(zsocket_open(f->all, &o, &ops, f, &s, NULL), 0);
        for (unsigned n = 0; n < FRAMES; n++)
            frames[n] = (struct view){ bytes, sizes[i] };
        while ((rc = zsocket_send(s, frames, FRAMES, NULL)) == 0)
            assert_true(++sent < 1000);
        assert_int_equal(rc, -EAGAIN);
        /* and what the peer's own buffers take */
        assert_true(sent <= ZSOCKET_IN_FLIGHT_MAX / each + 1 + (i == 0 ? 2 : 100));
        s = zsocket_close(s);
    }
    free(bytes);
    free(frames);
}

/* How many messages of n bytes that nobody reads the sockets of one kernel take. */
static unsigned fill(struct zsocket **sockets, unsigned count, size_t n)
{
    struct view frame = { calloc(1, n), n };
    unsigned sent = 0;

    for (unsigned i = 0; i < count; i++) {
        while (zsocket_send(sockets[i], &frame, 1, NULL) == 0)
            sent++;
    }
    free((void *)(uintptr_t)frame.p);
    return sent;
}

static void one_kernel_leaves_others_room_among_what_waits(void **state)
{
    struct fixture *f = *state;
    const struct zsocket_ops ops = { .message = on_count, .writable = on_writable };
    enum { KERNELS = 2, SOCKETS = 16, MIB = 1 << 20, SIZE = 10 * MIB };
    struct zsocket_peer *peers[KERNELS];
    struct zsocket *s[KERNELS][SOCKETS];
    struct view word = VIEW_STR("interrupt");
    unsigned filled[KERNELS];

    bind_slow_reader(f, 1);
    for (unsigned k = 0; k < KERNELS; k++) {
        peers[k] = zsocket_peer_new(NULL, NULL);
        for (unsigned i = 0; i < SOCKETS; i++) {
            char identity[16];
            snprintf(identity, sizeof identity, "%u-%u", k, i);
            const struct zsocket_options o = { .type = ZSOCKET_DEALER,
                                               .peer = peers[k],
                                               .path = f->endpoint + strlen("ipc://"),
                                               .identity = identity };
            assert_int_equal(zsocket_open(f->all, &o, &ops, f, &s[k][i], NULL), 0);
        }
        filled[k] = fill(s[k], SOCKETS, SIZE);
    }
    /* The first one has half of all, the second half of the rest; and what the peer has taken, of each socket one
     * message in ZMQ's queue and one that found no room there. */
    const unsigned half = ZSOCKET_ALL_IN_FLIGHT_MAX / 2 / SIZE;
    assert_in_range(filled[0], half - 1, half + 1 + 2 * SOCKETS);
    assert_in_range(filled[1], half / 4, half / 2 + 1 + 2 * SOCKETS);
    assert_int_equal(zsocket_send(s[0][SOCKETS - 1], &word, 1, NULL), 0);
    for (unsigned k = 0; k < KERNELS; k++) {
        for (unsigned i = 0; i < SOCKETS; i++)
            s[k][i] = zsocket_close(s[k][i]);
        peers[k] = zsocket_peer_free(peers[k]);
    }
}

/* ---- the end of a seat and of its kernel ---- */

static void greet(struct raw *r)
{
    static const char greeting[64] = "\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL";
    static const char ready[] = "\4\x1c\5READY\x0bSocket-Type\0\0\0\6ROUTER";
    char answer[65];

    r->peer = accept(r->listener, NULL, NULL);
    say(r, greeting, sizeof greeting);
    say(r, ready, sizeof ready - 1);
    assert_int_equal(recv(r->peer, answer, sizeof answer, MSG_WAITALL), sizeof answer);
}

/* Until the connection takes no more: what it has stays as it is for a while. */
static void await_full(const struct raw *r)
{
    int now = 0, before = -1;

    for (unsigned same = 0; same < 3; before = now) {
        usleep(1000);
        assert_int_equal(ioctl(r->peer, FIONREAD, &now), 0);
        same = now > 0 && now == before ? same + 1 : 0;
    }
}

/* libzmq aborts when a connection fails while the socket behind it is being closed, if some parts of a message are
 * written and others are not. That is a moment somewhere after the close; many are tried. */
static void a_kernel_that_ends_right_after_its_client_ends_nobody_else(void **state)
{
    enum { ROUNDS = 60, FRAMES = 1000, SIZE = 8000, LATEST_US = 200 };
    struct fixture *f = *state;
    const struct zsocket_ops ops = { .message = on_count };
    struct view *frames = calloc(FRAMES, sizeof *frames);
    uint8_t *bytes = calloc(1, SIZE);

    for (unsigned n = 0; n < FRAMES; n++)
        frames[n] = (struct view){ bytes, SIZE };
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct raw r;
        open_raw(f, &r, &ops);
        greet(&r);
        assert_int_equal(zsocket_send(r.dealer, frames, FRAMES, NULL), 0);
        await_full(&r);
        r.dealer = zsocket_close(r.dealer);
        usleep(i * LATEST_US / ROUNDS);
        shutdown(r.peer, SHUT_RDWR);
        close_raw(&r);
        unlink(f->endpoint + strlen("ipc://"));
    }
    free(bytes);
    free(frames);
}

/* It never reads, and lives on. */
static void a_connection_goes_with_its_socket_whatever_the_kernel_does(void **state)
{
    enum { FRAMES = 100, SIZE = 8000 };
    struct fixture *f = *state;
    const struct zsocket_ops ops = { .message = on_count };
    struct view frames[FRAMES];
    uint8_t *bytes = calloc(1, SIZE);
    struct raw r;

    for (unsigned n = 0; n < FRAMES; n++)
        frames[n] = (struct view){ bytes, SIZE };
    open_raw(f, &r, &ops);
    greet(&r);
    assert_int_equal(zsocket_send(r.dealer, frames, FRAMES, NULL), 0);
    await_full(&r);
    struct flight *all = f->all->flight;
    assert_true(atomic_load(&all->bytes) >= FRAMES * SIZE);
    r.dealer = zsocket_close(r.dealer);
    struct pollfd hung_up = { .fd = r.peer };
    assert_int_equal(poll(&hung_up, 1, 60000), 1);
    for (unsigned i = 0; atomic_load(&all->bytes) > 0; i++) {
        assert_true(i < 60000);
        usleep(1000);
    }
    close_raw(&r);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_kernel_leaves_others_room_among_what_waits),
        TEST(frames_of_any_size_are_bounded_by_their_bytes),
        TEST(a_kernel_that_reads_nothing_stops_the_sender_and_lets_it_go_on_later),
        TEST(a_connection_goes_with_its_socket_whatever_the_kernel_does),
        TEST(a_kernel_that_ends_right_after_its_client_ends_nobody_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
