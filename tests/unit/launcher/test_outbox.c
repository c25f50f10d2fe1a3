/* Init's one packet on its way out: sent with its descriptor, waiting, or replaced. */
#include "outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "err.h"
#include "initmsg.h"
#include "packet.h"

static struct packet got;

struct line {
    struct outbox out;
    int ours, theirs;
};

static int open_line(void **state)
{
    static struct line l;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    outbox_init(&l.out);
    l.ours = ends[0];
    l.theirs = ends[1];
    *state = &l;
    return 0;
}

static int close_line(void **state)
{
    struct line *l = *state;

    outbox_clear(&l->out);
    buf_release(&l->out.bytes);
    closep(&l->ours);
    closep(&l->theirs);
    return 0;
}

static struct msg_head receive(struct line *l)
{
    struct msg_head head;

    assert_int_equal(packet_receive(l->theirs, &got, NULL), 1);
    assert_int_equal(msg_head_decode((struct view){ got.bytes, got.n }, got.fd_count, &head, NULL),
                     0);
    return head;
}

static void put_done(struct line *l, uint64_t request)
{
    const struct init_done done = { 0 };

    assert_int_equal(outbox_put(&l->out, init_answer_spec(INIT_KILL), request, 0, &done), 0);
    assert_true(outbox_full(&l->out));
}

static void a_packet_is_sent_once_and_makes_room(void **state)
{
    struct line *l = *state;

    put_done(l, 7);
    assert_int_equal(outbox_flush(&l->out, l->ours), 0);
    assert_false(outbox_full(&l->out));
    assert_int_equal(receive(l).request, 7);
    assert_int_equal(outbox_flush(&l->out, l->ours), 0); /* nothing to do */
    assert_int_equal(packet_receive(l->theirs, &got, NULL), -EAGAIN);
}

static void a_passed_packet_takes_its_descriptor_along(void **state)
{
    struct line *l = *state;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), number = fd;

    put_done(l, 8);
    struct view made = buf_view(&l->out.bytes);
    autofree char *copy = view_dup(made);
    size_t n = made.n;
    outbox_clear(&l->out);
    assert_int_equal(outbox_pass(&l->out, (struct view){ (uint8_t *)copy, n }, &fd), 0);
    assert_int_equal(fd, -1);
    assert_int_equal(outbox_flush(&l->out, l->ours), 0);
    assert_int_equal(fcntl(number, F_GETFD), -1); /* ours is closed */
    assert_int_equal(packet_receive(l->theirs, &got, NULL), 1);
    assert_int_equal(got.fd_count, 1);
    packet_close_fds(&got);
}

static void a_full_line_is_waited_for(void **state)
{
    struct line *l = *state;
    unsigned sent = 0;

    do {
        put_done(l, ++sent);
        assert_int_equal(outbox_flush(&l->out, l->ours), 0);
    } while (!outbox_full(&l->out));
    for (unsigned i = 1; i < sent; i++)
        assert_int_equal(receive(l).request, i);
    assert_int_equal(outbox_flush(&l->out, l->ours), 0);
    assert_int_equal(receive(l).request, sent);
}

static void a_closed_line_is_told(void **state)
{
    struct line *l = *state;

    closep(&l->theirs);
    put_done(l, 1);
    assert_int_equal(outbox_flush(&l->out, l->ours), -HC_EGONE);
}

/* A pipe takes no packet at all: first the answer, then the error in its place fails. */
static void what_cannot_be_sent_is_dropped_and_told(void **state)
{
    struct line *l = *state;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    put_done(l, 1);
    assert_int_equal(outbox_flush(&l->out, ends[1]), -ENOTSOCK);
    assert_false(outbox_full(&l->out));
    close(ends[0]);
    close(ends[1]);
}

/* The number of a socket that is none of ours to pass: EBADF, and the asker hears of it. */
static void an_answer_whose_descriptor_does_not_go_through_becomes_an_error(void **state)
{
    struct line *l = *state;

    put_done(l, 9);
    l->out.fd = 1 << 20;
    assert_int_equal(outbox_flush(&l->out, l->ours), 0);
    struct msg_head head = receive(l);
    assert_int_equal(head.verb, INIT_ERROR);
    assert_int_equal(head.request, 9);
    assert_int_equal(head.error, EBADF);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_line, close_line)
    const struct CMUnitTest tests[] = {
        TEST(a_packet_is_sent_once_and_makes_room),
        TEST(a_passed_packet_takes_its_descriptor_along),
        TEST(a_full_line_is_waited_for),
        TEST(a_closed_line_is_told),
        TEST(what_cannot_be_sent_is_dropped_and_told),
        TEST(an_answer_whose_descriptor_does_not_go_through_becomes_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
