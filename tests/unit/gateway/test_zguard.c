/* Peers that send what no kernel sends: what libzmq holds of it stays bounded, and who did it is told. */
#include "zguard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "deferred.h"
#include "err.h"
#include "loop.h"
#include "zguard_own.h"
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

/* ---- without the library: what it would read, byte by byte ---- */

static const char greeting_3[64] = "\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL";
static const char ready_3[] = "\4\x19\5READY\x0bSocket-Type\0\0\0\3PUB";

struct wire {
    struct zguard_kernel *kernel;
    struct zguard *guard;
    int kernels_end, ours;
    pthread_t reader;
    _Atomic pid_t reader_id;
    long got;
};

static void wire_open(struct wire *w)
{
    char endpoint[ZGUARD_ENDPOINT];
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    *w = (struct wire){ .kernel = zguard_kernel_new(), .kernels_end = fds[0], .ours = fds[1] };
    w->guard = zguard_open(w->kernel, "/nowhere", endpoint);
    zguard_connected(w->guard, w->ours);
}

/* As libzmq: it goes when its socket is closed, after the guard has. */
static void wire_close(struct wire *w)
{
    w->guard = zguard_close(w->guard);
    zguard_disconnected(zguard_find(w->ours), w->ours);
    close(w->kernels_end);
    syscall(SYS_close, w->ours);
    w->kernel = zguard_kernel_drop(w->kernel);
}

/* Of what has arrived; bodies that are only announced are not there. */
static long wire_say(struct wire *w, const void *bytes, size_t n)
{
    char read[256];

    assert_int_equal(send(w->kernels_end, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
    return zguard_receive(w->guard, w->ours, read, sizeof read, 0);
}

static void wire_greet(struct wire *w)
{
    wire_open(w);
    assert_int_equal(wire_say(w, greeting_3, sizeof greeting_3), sizeof greeting_3);
    assert_int_equal(wire_say(w, ready_3, sizeof ready_3 - 1), sizeof ready_3 - 1);
}

static long wire_announce(struct wire *w, uint8_t flags, uint64_t n)
{
    uint8_t head[9] = { flags | 2 };

    for (unsigned i = 0; i < 8; i++)
        head[1 + i] = (uint8_t)(n >> (56 - 8 * i));
    return wire_say(w, head, sizeof head);
}

/* A byte out of band is part of the stream: what is counted and what is read are the same. */
static void a_byte_out_of_band_stands_where_it_was_sent(void **state)
{
    struct wire w;

    (void)state;
    wire_greet(&w);
    assert_int_equal(send(w.kernels_end, "\0", 1, MSG_OOB | MSG_NOSIGNAL), 1);
    assert_int_equal(wire_say(&w, "\0\1a", 3), 4); /* an empty message, and the head of another */
    wire_close(&w);
}

/* Whatever makes the two differ: here peeking begins a byte further on. */
static void what_is_read_otherwise_than_it_was_counted_ends_the_connection(void **state)
{
    const int further = 1;
    struct wire w;

    (void)state;
    wire_greet(&w);
    assert_int_equal(setsockopt(w.ours, SOL_SOCKET, SO_PEEK_OFF, &further, sizeof further), 0);
    assert_int_equal(wire_say(&w, "\0\0\1a", 4), -1);
    assert_int_equal(errno, ECONNRESET);
    assert_string_equal(zguard_fault(w.guard), "what it sent was not there when it was read");
    assert_int_equal(wire_say(&w, "\0\1b", 3), -1); /* and it is over */
    wire_close(&w);
}

/* The library would not count the first, and take the second for no message. */
static void frames_that_only_one_side_counts_end_the_connection(void **state)
{
    static const char greeting_2[] = "\xff\0\0\0\0\0\0\0\1\x7f\1\6";
    struct wire w;

    (void)state;
    wire_open(&w);
    assert_int_equal(wire_say(&w, greeting_3, sizeof greeting_3), sizeof greeting_3);
    char plain[sizeof ready_3];
    memcpy(plain, ready_3, sizeof ready_3);
    plain[0] = 0;
    assert_int_equal(wire_say(&w, plain, sizeof plain - 1), -1);
    assert_non_null(strstr(zguard_fault(w.guard), "before the handshake"));
    assert_int_equal(zguard_use(w.guard).all, 0);
    wire_close(&w);
    wire_open(&w);
    assert_int_equal(wire_say(&w, greeting_2, 12), 12);
    assert_int_equal(wire_say(&w, "\4\5\4PING", 7), -1);
    assert_non_null(strstr(zguard_fault(w.guard), "identity"));
    wire_close(&w);
}

/* Should the numbers ever be apart: then the room may be counted too low for a moment, but is never lost. */
static void room_is_never_lost_whatever_the_numbers_say(void **state)
{
    struct wire a, b;

    (void)state;
    zguard_set_all_max(MIB);
    wire_greet(&a);
    wire_greet(&b);
    zguard_give(a.guard, 0); /* a message that nobody counted: the loop's numbers lead by one */
    assert_int_equal(wire_announce(&a, 1, 3 * MIB), 9); /* beyond */
    zguard_give(a.guard, 3 * MIB + 128);
    assert_int_equal(zguard_use(b.guard).all, 0);
    assert_int_equal(wire_announce(&b, 0, 4 * MIB), 9); /* another one may go beyond */
    assert_int_equal(zguard_use(b.guard).all, 4 * MIB + 128);
    a.guard = zguard_close(a.guard);
    assert_int_equal(zguard_use(b.guard).all, 4 * MIB + 128);
    zguard_disconnected(zguard_find(a.ours), a.ours);
    close(a.kernels_end);
    syscall(SYS_close, a.ours);
    a.kernel = zguard_kernel_drop(a.kernel);
    zguard_give(b.guard, 4 * MIB + 128);
    zguard_give(b.guard, 4 * MIB + 128); /* twice */
    wire_greet(&a);
    assert_int_equal(zguard_use(a.guard).all, 0);
    assert_int_equal(wire_announce(&a, 0, 3 * MIB), 9);
    assert_int_equal(zguard_use(a.guard).all, 3 * MIB + 128);
    wire_close(&b);
    wire_close(&a);
}

static void the_loop_may_give_back_a_message_beyond_before_it_is_closed(void **state)
{
    struct wire a, b;

    (void)state;
    zguard_set_all_max(MIB);
    wire_greet(&a);
    wire_greet(&b);
    assert_int_equal(wire_announce(&a, 1, 3 * MIB), 9);
    assert_int_equal(wire_say(&b, "\0\1x", 3), 3);
    zguard_give(a.guard, 0);
    zguard_give(a.guard, 3 * MIB + 128); /* the whole, by a number behind it */
    wire_close(&a);
    assert_int_equal(zguard_use(b.guard).all, 129);
    wire_close(&b);
}

static void *receive_one(void *arg)
{
    struct wire *w = arg;
    char read[16];

    w->reader_id = (pid_t)syscall(SYS_gettid);
    w->got = zguard_receive(w->guard, w->ours, read, sizeof read, 0);
    return NULL;
}

/* Until the other thread waits for bytes, in the middle of zguard_receive(). */
static void await_reader(struct wire *w)
{
    char path[64], text[64] = "";

    for (unsigned i = 0; atoi(text) != SYS_recvfrom; i++) {
        assert_true(i < 60000);
        usleep(1000);
        snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)w->reader_id);
        autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = '\0';
    }
}

static void who_is_closed_while_it_is_read_takes_no_room(void **state)
{
    struct wire w, other;

    (void)state;
    wire_greet(&other);
    wire_greet(&w);
    struct zguard *guard = w.guard;
    assert_int_equal(pthread_create(&w.reader, NULL, receive_one, &w), 0);
    await_reader(&w);
    (void)zguard_close(guard); /* the table has it still */
    assert_int_equal(send(w.kernels_end, "\0\5", 2, MSG_NOSIGNAL), 2);
    assert_int_equal(pthread_join(w.reader, NULL), 0);
    assert_int_equal(zguard_use(other.guard).all, 0);
    assert_false(zguard_use(guard).waits);
    assert_int_equal(zguard_receive(guard, w.ours, &w.got, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
    w.guard = NULL;
    wire_close(&w);
    assert_int_equal(zguard_use(other.guard).all, 0);
    wire_close(&other);
}

/* How many events there are now. */
static int events_of(int epoll)
{
    struct epoll_event e;

    return epoll_wait(epoll, &e, 1, 0);
}

/* libzmq may abort when it hears that a connection ended whose socket is being closed. */
static void who_is_closed_says_nothing_more_and_wakes_nobody(void **state)
{
    struct epoll_event in = { .events = EPOLLIN };
    struct wire w;
    char read[16];

    (void)state;
    wire_greet(&w);
    autoclose int epoll = epoll_create1(EPOLL_CLOEXEC);
    assert_int_equal(zguard_polled(w.guard, epoll, EPOLL_CTL_ADD, &in), 0);
    assert_int_equal(send(w.kernels_end, "\0\1x", 3, MSG_NOSIGNAL), 3);
    assert_int_equal(events_of(epoll), 1);
    struct zguard *guard = w.guard;
    w.guard = zguard_close(w.guard); /* the table has it still */
    assert_int_equal(events_of(epoll), 0);
    assert_int_equal(zguard_receive(guard, w.ours, read, sizeof read, 0), -1);
    assert_int_equal(errno, EAGAIN);
    shutdown(w.kernels_end, SHUT_RDWR);
    (void)events_of(epoll); /* the end of a connection cannot be kept back, but once is enough */
    assert_int_equal(events_of(epoll), 0);
    assert_int_equal(zguard_receive(guard, w.ours, read, sizeof read, 0), -1);
    assert_int_equal(errno, EAGAIN);
    wire_close(&w);
}

/* Its first part lies in what every kernel has anyway, and yet it is what goes beyond: nobody else may. */
static void a_small_message_beyond_goes_too_when_it_does_not_end(void **state)
{
    struct wire full, small, waits;

    (void)state;
    zguard_set_all_max(2 * MIB);
    wire_greet(&full);
    wire_greet(&small);
    wire_greet(&waits);
    assert_int_equal(wire_announce(&full, 0, 2 * MIB - 128), 9);
    assert_int_equal(wire_say(&small, "\1\1x", 3), 3);
    assert_int_equal(wire_announce(&waits, 0, 3 * MIB), 8);
    assert_int_equal(wire_say(&waits, "x", 1), -1);
    assert_true(zguard_use(waits.guard).waits);
    zguard_end_stalled(0);
    assert_non_null(strstr(zguard_fault(small.guard), "did not end"));
    assert_null(zguard_fault(waits.guard));
    wire_close(&small);
    assert_false(zguard_use(waits.guard).waits);
    wire_close(&full);
    wire_close(&waits);
}

static void small_messages_in_nobodys_way_may_take_their_time(void **state)
{
    struct wire over, small, waits;

    (void)state;
    zguard_set_all_max(2 * MIB);
    wire_greet(&over);
    wire_greet(&small);
    wire_greet(&waits);
    assert_int_equal(wire_say(&small, "\1\1x", 3), 3);
    assert_int_equal(wire_announce(&over, 0, 3 * MIB), 9);
    assert_int_equal(wire_announce(&waits, 0, 3 * MIB), 8);
    assert_true(zguard_use(waits.guard).waits);
    zguard_end_stalled(0);
    assert_null(zguard_fault(small.guard));
    assert_non_null(zguard_fault(over.guard));
    wire_close(&over);
    wire_close(&small);
    wire_close(&waits);
}

static void all_kernels_have_a_quarter_of_the_memory(void **state)
{
    const uint64_t gib = 1ULL << 30;
    const struct {
        rlim_t limit;
        size_t want;
    } rows[] = {
        { RLIM_INFINITY, gib / 4 }, { gib, gib / 4 }, { 3 * gib, 3 * gib / 4 },
        { 4 * gib - 1, gib - 1 },   { 4 * gib, gib }, { 8 * gib, gib },
        { RLIM_INFINITY - 1, gib }, /* a limit, though a silly one */
    };
    struct rlimit before, r;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        r = (struct rlimit){ rows[i].limit, before.rlim_max };
        if (rows[i].limit > before.rlim_max)
            continue;
        assert_int_equal(setrlimit(RLIMIT_DATA, &r), 0);
        size_t got = zguard_all_max();
        assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
        assert_int_equal(got, rows[i].want);
    }
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
        TEST(a_byte_out_of_band_stands_where_it_was_sent),
        TEST(what_is_read_otherwise_than_it_was_counted_ends_the_connection),
        TEST(frames_that_only_one_side_counts_end_the_connection),
        TEST(room_is_never_lost_whatever_the_numbers_say),
        TEST(the_loop_may_give_back_a_message_beyond_before_it_is_closed),
        TEST(who_is_closed_while_it_is_read_takes_no_room),
        TEST(who_is_closed_says_nothing_more_and_wakes_nobody),
        TEST(a_small_message_beyond_goes_too_when_it_does_not_end),
        TEST(small_messages_in_nobodys_way_may_take_their_time),
        TEST(all_kernels_have_a_quarter_of_the_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
