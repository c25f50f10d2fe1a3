/* ZMQ sockets in the loop: edges, budgets, order, ends. What is sent: test_zsocket_send. */
#include "zsocket_world.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "err.h"
#include "loop.h"
#include "zsocket_own.h"

/* ---- the edge ---- */

/* What the kernel does: echoes all there is. In the loop by a timer, so that the
 * edges of ZMQ_FD fall anywhere. */
static void echo_all(void *arg)
{
    struct fixture *f = arg;
    char id[64], body[64];

    for (;;) {
        int n = zmq_recv(f->peer, id, sizeof id, ZMQ_DONTWAIT);
        if (n < 0)
            return;
        int m = zmq_recv(f->peer, body, sizeof body, 0);
        zmq_send(f->peer, id, (size_t)n, ZMQ_SNDMORE);
        zmq_send(f->peer, body, (size_t)m, 0);
    }
}

static void send_one(struct fixture *f, unsigned i)
{
    struct view frame = { (const uint8_t *)&i, sizeof i };

    assert_int_equal(zsocket_send(f->dealers[i], &frame, 1, NULL), 0);
    f->sent[i]++;
}

static void on_echo(void *arg, const struct view *frames, size_t count)
{
    struct fixture *f = arg;
    unsigned i;

    assert_int_equal(count, 1);
    memcpy(&i, frames[0].p, sizeof i);
    f->echoed++;
    /* A send right here may swallow the edge that told of the next input. */
    if (f->sent[i] < 300)
        send_one(f, i);
    else if (f->echoed == 300 * DEALERS)
        loop_stop(f->loop);
}

static void thirty_two_clients_never_stall(void **state)
{
    struct fixture *f = *state;
    static const struct zsocket_ops ops = { .message = on_echo };

    bind_peer(f, ZMQ_ROUTER);
    f->tick = loop_timer_start(f->loop, 1, 1, echo_all, f);
    for (unsigned i = 0; i < DEALERS; i++) {
        char identity[16];
        snprintf(identity, sizeof identity, "d%u", i);
        const struct zsocket_options o = { .type = ZSOCKET_DEALER,
                                           .path = f->endpoint + strlen("ipc://"),
                                           .identity = identity };
        assert_int_equal(zsocket_open(f->all, &o, &ops, f, &f->dealers[i], NULL), 0);
        send_one(f, i);
    }
    loop_run(f->loop);
    assert_int_equal(f->echoed, 300 * DEALERS);
    for (unsigned i = 0; i < DEALERS; i++)
        f->dealers[i] = zsocket_close(f->dealers[i]);
}

/* ---- iopub ---- */

static void on_gone(void *arg)
{
    struct fixture *f = arg;

    f->gone++;
    loop_stop(f->loop);
}

static struct zsocket *open_sub(struct fixture *f, zsocket_fn *fn)
{
    const struct zsocket_ops ops = { .message = fn, .gone = on_gone };
    const struct zsocket_options o = { .type = ZSOCKET_SUB,
                                       .path = f->endpoint + strlen("ipc://"),
                                       .welcome = "unique" };
    struct zsocket *s;

    assert_int_equal(zsocket_open(f->all, &o, &ops, f, &s, NULL), 0);
    return s;
}

/* An XPUB tells when the subscriptions are there. */
static void await_subscriptions(struct fixture *f)
{
    char text[64];

    assert_int_equal(zmq_recv(f->peer, text, sizeof text, 0), 1);
    assert_int_equal(zmq_recv(f->peer, text, sizeof text, 0), 7);
}

static void a_burst_that_nobody_read_meanwhile_is_whole(void **state)
{
    struct fixture *f = *state;

    bind_peer(f, ZMQ_XPUB);
    struct zsocket *s = open_sub(f, on_count);
    await_subscriptions(f);
    f->want = 20000;
    for (unsigned i = 0; i < f->want; i++)
        zmq_send(f->peer, "x", 1, 0);
    loop_run(f->loop);
    assert_int_equal(f->messages, f->want);
    s = zsocket_close(s);
}

/* What others wait for is the longest turn: one message that is larger than a
 * turn's bytes is a turn of its own. */
static void a_turn_takes_no_more_large_messages_than_its_bytes_allow(void **state)
{
    enum { LARGE = 4 << 20, COUNT = 8, LOOKS_MAX = 20000 };
    struct fixture *f = *state;
    uint8_t *large = xcalloc(1, LARGE);

    bind_peer(f, ZMQ_XPUB);
    struct zsocket *s = open_sub(f, on_count);
    await_subscriptions(f);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(zmq_send(f->peer, large, LARGE, 0), LARGE);
    free(large);
    for (int i = 0; f->messages < COUNT && i < LOOKS_MAX; i++) {
        unsigned before = f->messages;
        (void)zsocket_drain(s);
        assert_true(f->messages - before <= 1);
        /* The I/O threads are at work; after the first one several are there. */
        zmq_poll(NULL, 0, f->messages == 1 ? 200 : 1);
    }
    assert_int_equal(f->messages, COUNT);
    s = zsocket_close(s);
}

static void the_end_of_the_publisher_is_told(void **state)
{
    struct fixture *f = *state;

    bind_peer(f, ZMQ_XPUB);
    struct zsocket *s = open_sub(f, on_count);
    await_subscriptions(f);
    zmq_close(f->peer);
    f->peer = NULL;
    loop_run(f->loop);
    assert_int_equal(f->gone, 1);
    s = zsocket_close(s);
}

/* ---- a publisher that ends in the middle ---- */

/* ZMTP 3.0 by hand: a greeting, READY, then many messages of seven parts. */
static void publish_and_end(int fd, const char *last, size_t last_n)
{
    enum { PARTS = 7, ROOM = 150000 };
    static const uint8_t greeting[64] = { [0] = 0xff, [9] = 0x7f, [10] = 3, [12] = 'N',
                                          'U',        'L',        'L' };
    static const char ready[] = "\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB";
    static char out[ROOM + 64];
    size_t n = 0;

    assert_int_equal(send(fd, greeting, sizeof greeting, MSG_NOSIGNAL), sizeof greeting);
    assert_int_equal(send(fd, ready, sizeof ready - 1, MSG_NOSIGNAL), sizeof ready - 1);
    for (unsigned i = 0; n < ROOM; i++) {
        memcpy(out + n, i % PARTS < PARTS - 1 ? "\1\1x" : "\0\1x", 3);
        n += 3;
    }
    memcpy(out + n, last, last_n);
    n += last_n;
    (void)send(fd, out, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    /* A close would throw away what was not read yet: something for us lies unread. */
    shutdown(fd, SHUT_WR);
}

static void a_publisher_that_ends_between_two_parts_is_survived(void **state)
{
    static const struct view lasts[] = { VIEW_STR(""), VIEW_STR("\1\5x"), VIEW_STR("\xff\xff"),
                                         VIEW_STR("\2\x7f\0\0\0\0\0\0\0") };
    enum { ROUNDS = 100, QUIET = 200 };
    struct fixture *f = *state;
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    static const struct zsocket_ops ops = { .message = on_count };
    const struct zsocket_options o = { .type = ZSOCKET_SUB,
                                       .path = f->endpoint + strlen("ipc://") };

    snprintf(a.sun_path, sizeof a.sun_path, "%s", f->endpoint + strlen("ipc://"));
    for (unsigned i = 0; i < ROUNDS; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct zsocket *s;
        unlink(a.sun_path);
        assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
        assert_int_equal(listen(fd, 1), 0);
        assert_int_equal(zsocket_open(f->all, &o, &ops, f, &s, NULL), 0);
        struct view last = lasts[i % (sizeof lasts / sizeof lasts[0])];
        int peer = accept(fd, NULL, NULL);
        publish_and_end(peer, (const char *)last.p, last.n);
        /* Until nothing has come for a while; there is no other end to wait for. */
        for (unsigned quiet = 0, seen = f->messages; quiet < QUIET; quiet++) {
            (void)zsocket_drain(s);
            if (f->messages != seen)
                quiet = 0;
            else
                usleep(20);
            seen = f->messages;
        }
        s = zsocket_close(s);
        close(peer);
        close(fd);
    }
    assert_true(f->messages > ROUNDS);
}

static void a_publisher_that_is_not_there_is_told(void **state)
{
    struct fixture *f = *state;
    struct zsocket *s = open_sub(f, on_count);

    loop_run(f->loop);
    assert_int_equal(f->gone, 1);
    s = zsocket_close(s);
}

static void a_frame_above_the_limit_of_the_library_is_told_as_the_end(void **state)
{
    struct fixture *f = *state;
    size_t n = 129u << 20;
    char *huge = calloc(1, n);

    bind_peer(f, ZMQ_XPUB);
    struct zsocket *s = open_sub(f, on_count);
    await_subscriptions(f);
    zmq_send(f->peer, huge, n, 0);
    loop_run(f->loop);
    assert_int_equal(f->gone, 1);
    assert_int_equal(f->messages, 0);
    free(huge);
    s = zsocket_close(s);
}

/* ---- the handshake ---- */

static void on_joined(void *arg)
{
    struct fixture *f = arg;

    f->joined++;
    loop_stop(f->loop);
}

static void on_first(void *arg, const struct view *frames, size_t count)
{
    struct fixture *f = arg;

    (void)frames;
    (void)count;
    f->messages++;
    loop_stop(f->loop);
}

static void on_tick(void *arg)
{
    struct fixture *f = arg;

    f->tick = loop_timer_close(f->tick);
    loop_stop(f->loop);
}

static void run_for_a_while(struct fixture *f)
{
    f->tick = loop_timer_start(f->loop, 50, 0, on_tick, f);
    loop_run(f->loop);
    f->tick = loop_timer_close(f->tick);
}

static const struct zsocket_ops raw_ops = { .message = on_first,
                                            .joined = on_joined,
                                            .gone = on_gone };

static void a_dealer_is_joined_when_the_peer_has_done_its_part_of_the_handshake(void **state)
{
    static const uint8_t greeting[64] = { [0] = 0xff, [9] = 0x7f, [10] = 3, [12] = 'N',
                                          'U',        'L',        'L' };
    static const char ready[] = "\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06ROUTER";
    struct fixture *f = *state;
    struct raw r;

    open_raw(f, &r, &raw_ops);
    run_for_a_while(f); /* connected, and nobody has taken it */
    r.peer = accept(r.listener, NULL, NULL);
    run_for_a_while(f);
    say(&r, greeting, sizeof greeting);
    run_for_a_while(f);
    assert_int_equal(f->joined, 0);
    assert_false(zsocket_is_joined(r.dealer));
    assert_false(zsocket_is_stuck(r.dealer));
    say(&r, ready, sizeof ready - 1);
    loop_run(f->loop);
    assert_int_equal(f->joined, 1);
    assert_true(zsocket_is_joined(r.dealer));
    assert_null(r.dealer->monitor); /* its descriptors are free again */
    say(&r, "\0\1x", 3);
    loop_run(f->loop);
    assert_int_equal(f->messages, 1);
    assert_int_equal(f->joined + f->gone, 1);
    close_raw(&r);
}

static void who_asks_whether_it_is_joined_does_not_keep_its_owner_from_hearing_so(void **state)
{
    static const struct zsocket_ops ops = { .message = on_first, .joined = on_joined };
    struct fixture *f = *state;
    const struct zsocket_options o = { .type = ZSOCKET_DEALER,
                                       .path = f->endpoint + strlen("ipc://"),
                                       .identity = "d" };
    struct zsocket *s;

    bind_peer(f, ZMQ_ROUTER);
    assert_int_equal(zsocket_open(f->all, &o, &ops, f, &s, NULL), 0);
    while (!zsocket_is_joined(s))
        usleep(1000);
    assert_int_equal(f->joined, 0);
    loop_run(f->loop);
    assert_int_equal(f->joined, 1);
    s = zsocket_close(s);
}

static void a_dealer_whose_peer_goes_before_the_handshake_is_told_of_it(void **state)
{
    struct fixture *f = *state;
    struct raw r;

    open_raw(f, &r, &raw_ops);
    r.peer = accept(r.listener, NULL, NULL);
    shutdown(r.peer, SHUT_RDWR);
    loop_run(f->loop);
    assert_int_equal(f->gone, 1);
    assert_int_equal(f->joined, 0);
    close_raw(&r);
}

/* ZMTP 2.0 has no handshake to tell of; messages come all the same. */
static void a_peer_of_an_old_zmtp_never_joins(void **state)
{
    static const char
        greeting[12] = { [0] = '\xff', [9] = '\x7f', [10] = 1, [11] = 6 /* ROUTER */ };
    struct fixture *f = *state;
    struct raw r;

    open_raw(f, &r, &raw_ops);
    r.peer = accept(r.listener, NULL, NULL);
    say(&r, greeting, sizeof greeting);
    say(&r, "\0\0" /* no identity */ "\0\1x", 5);
    loop_run(f->loop);
    assert_int_equal(f->messages, 1);
    assert_false(zsocket_is_joined(r.dealer));
    assert_int_equal(f->joined + f->gone, 0);
    close_raw(&r);
}

/* ---- order ---- */

static void on_iopub_order(void *arg, const struct view *frames, size_t count)
{
    struct fixture *f = arg;

    (void)frames;
    (void)count;
    strcat(f->order, "i");
}

static void on_reply_order(void *arg, const struct view *frames, size_t count)
{
    struct fixture *f = arg;

    (void)frames;
    (void)count;
    strcat(f->order, "r");
    loop_stop(f->loop);
}

/* The kernel's shell, and a DEALER behind sub that has asked something there. */
struct shell {
    char endpoint[80], id;
    struct zsocket *dealer;
};

static void open_shell(struct fixture *f, struct zsocket *sub, struct shell *s)
{
    static const struct zsocket_ops ops = { .message = on_reply_order };
    const struct zsocket_options o = { .type = ZSOCKET_DEALER,
                                       .path = s->endpoint + strlen("ipc://"),
                                       .identity = "d",
                                       .behind = sub };
    char question;
    int none = 0;

    f->router = zmq_socket(f->ctx, ZMQ_ROUTER);
    zmq_setsockopt(f->router, ZMQ_LINGER, &none, sizeof none);
    snprintf(s->endpoint, sizeof s->endpoint, "%s-r", f->endpoint);
    assert_int_equal(zmq_bind(f->router, s->endpoint), 0);
    assert_int_equal(zsocket_open(f->all, &o, &ops, f, &s->dealer, NULL), 0);
    assert_int_equal(zsocket_send(s->dealer, &VIEW_STR("?"), 1, NULL), 0);
    assert_int_equal(zmq_recv(f->router, &s->id, 1, 0), 1);
    assert_int_equal(zmq_recv(f->router, &question, 1, 0), 1);
}

static void answer(struct fixture *f, struct shell *s)
{
    zmq_send(f->router, &s->id, 1, ZMQ_SNDMORE);
    zmq_send(f->router, "!", 1, 0);
}

static void close_shell(struct shell *s)
{
    s->dealer = zsocket_close(s->dealer);
    unlink(s->endpoint + strlen("ipc://"));
}

static void what_was_published_before_a_reply_is_read_before_it(void **state)
{
    struct fixture *f = *state;
    struct shell s;

    bind_peer(f, ZMQ_XPUB);
    struct zsocket *sub = open_sub(f, on_iopub_order);
    await_subscriptions(f);
    open_shell(f, sub, &s);
    for (int i = 0; i < 20; i++)
        zmq_send(f->peer, "x", 1, 0);
    usleep(50000); /* both queues are full when the loop looks: a tie */
    answer(f, &s);
    loop_run(f->loop);
    assert_string_equal(f->order, "iiiiiiiiiiiiiiiiiiiir");
    close_shell(&s);
    sub = zsocket_close(sub);
}

static void on_iopub_depth(void *arg, const struct view *frames, size_t count)
{
    struct fixture *f = arg;

    (void)frames;
    (void)count;
    strcat(f->order, f->all->depth == 1 ? "i" : "d");
}

static void await_input(struct zsocket *s)
{
    while (!(zsocket_events(s->zmq) & ZMQ_POLLIN))
        usleep(1000);
}

/* The look that makes a reply wait eats the edge that told of iopub's input: then
 * nobody would read iopub until the reply has waited for its second, and drains it. */
static void iopub_has_its_own_turn_when_a_reply_waits_for_it(void **state)
{
    struct fixture *f = *state;
    struct shell s;

    bind_peer(f, ZMQ_XPUB);
    struct zsocket *sub = open_sub(f, on_iopub_depth);
    await_subscriptions(f);
    open_shell(f, sub, &s);
    zsockets_serve_turn(f->all); /* the first look at everything */
    answer(f, &s);
    await_input(s.dealer);
    zsocket_mark(s.dealer);
    zsocket_unmark(sub);
    zmq_send(f->peer, "x", 1, 0);
    await_input(sub); /* the edge is gone, as by a look in the same turn */
    zsockets_serve_turn(f->all);
    assert_string_equal(f->order, "");
    loop_run(f->loop);
    assert_string_equal(f->order, "ir"); /* "dr": drained by the reply */
    close_shell(&s);
    sub = zsocket_close(sub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(thirty_two_clients_never_stall),
        TEST(a_burst_that_nobody_read_meanwhile_is_whole),
        TEST(a_turn_takes_no_more_large_messages_than_its_bytes_allow),
        TEST(the_end_of_the_publisher_is_told),
        TEST(a_publisher_that_ends_between_two_parts_is_survived),
        TEST(a_publisher_that_is_not_there_is_told),
        TEST(a_frame_above_the_limit_of_the_library_is_told_as_the_end),
        TEST(a_dealer_is_joined_when_the_peer_has_done_its_part_of_the_handshake),
        TEST(who_asks_whether_it_is_joined_does_not_keep_its_owner_from_hearing_so),
        TEST(a_dealer_whose_peer_goes_before_the_handshake_is_told_of_it),
        TEST(a_peer_of_an_old_zmtp_never_joins),
        TEST(what_was_published_before_a_reply_is_read_before_it),
        TEST(iopub_has_its_own_turn_when_a_reply_waits_for_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
