/* The launcher's end of the socket: whole packets, bounded patience, no trust. */
#include "launchlink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "clock.h"
#include "err.h"

struct pair {
    struct link *link;
    int fd;
};

static int setup(void **state)
{
    struct pair *p = xcalloc(1, sizeof *p);
    int sockets[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets),
                     0);
    p->link = link_new(sockets[0]);
    p->fd = sockets[1];
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct pair *p = *state;

    p->link = link_free(p->link);
    closep(&p->fd);
    free(p);
    return 0;
}

static void send_done(struct pair *p, uint64_t request)
{
    struct launch_done done = { .sandbox = request };

    link_post(p->link, launch_answer_spec(LAUNCH_NOTE), request, 0, &done, NULL, 0);
}

/* Reads one packet at the gateway's end; its request number, 0 when none is there. */
static uint64_t read_request(struct pair *p)
{
    uint8_t bytes[256];
    struct msg_head head;
    ssize_t n = recv(p->fd, bytes, sizeof bytes, MSG_DONTWAIT);

    if (n < 0)
        return 0;
    assert_int_equal(msg_head_decode((struct view){ bytes, (size_t)n }, 0, &head, NULL), 0);
    return head.request;
}

/* Packets are queued because the socket is full. */
static int is_waiting(struct pair *p)
{
    return (link_events(p->link) & POLLOUT) != 0;
}

static void packets_wait_for_a_slow_reader_and_keep_their_order(void **state)
{
    struct pair *p = *state;
    uint64_t sent = 0, read = 0;

    while (!is_waiting(p)) /* until the socket is full */
        send_done(p, ++sent);
    for (int i = 0; i < 100; i++)
        send_done(p, ++sent);
    while (read < sent) {
        uint64_t got = read_request(p);

        if (got == 0)
            link_flush(p->link);
        else
            assert_int_equal(got, ++read);
    }
    assert_false(is_waiting(p));
    assert_null(link_broken(p->link));
}

static void a_reader_that_never_reads_breaks_the_link_and_memory_stays_bounded(void **state)
{
    struct pair *p = *state;
    unsigned sent = 0;

    while (link_broken(p->link) == NULL) {
        send_done(p, ++sent);
        assert_true(sent < 3 * LINK_QUEUE_PACKETS);
    }
    assert_non_null(strstr(link_broken(p->link), "does not read"));
    send_done(p, 1); /* harmless */
}

static void patience_with_the_oldest_packet_ends(void **state)
{
    struct pair *p = *state;

    while (!is_waiting(p))
        send_done(p, 1);
    uint64_t end = link_patience_ends(p->link);
    assert_true(end <= clock_ms() + LINK_PATIENCE_MS);
    link_check_patience(p->link, end - 1);
    assert_null(link_broken(p->link));
    link_check_patience(p->link, end);
    assert_non_null(link_broken(p->link));
}

static void a_message_that_lies_unread_for_long_breaks_the_link(void **state)
{
    struct pair *p = *state;

    assert_int_equal(link_patience_ends(p->link), 0);
    send_done(p, 1);
    uint64_t end = link_patience_ends(p->link);
    assert_true(end > clock_ms() + LINK_PATIENCE_MS);
    assert_int_equal(read_request(p), 1);
    link_check_patience(p->link, end); /* it was read in time */
    assert_null(link_broken(p->link));
    assert_int_equal(link_patience_ends(p->link), 0);

    send_done(p, 2);
    end = link_patience_ends(p->link);
    link_check_patience(p->link, end - 1);
    assert_null(link_broken(p->link));
    link_check_patience(p->link, end);
    assert_non_null(strstr(link_broken(p->link), "unread"));
}

static void descriptors_that_wait_are_duplicates(void **state)
{
    struct pair *p = *state;
    struct launch_created made = { .sandbox = 1 };
    uint8_t bytes[1024];
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * 2)];
    } control;
    int pipe_fds[2], got[2] = { -1, -1 };
    unsigned filled = 0;

    for (; !is_waiting(p); filled++)
        send_done(p, 1);
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    link_post(p->link, launch_answer_spec(LAUNCH_CREATE), 2, 0, &made, pipe_fds, 2);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    for (;;) {
        struct iovec iov = { bytes, sizeof bytes };
        struct msghdr m = { .msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control };

        if (recvmsg(p->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0) {
            link_flush(p->link);
            continue;
        }
        if (m.msg_controllen == 0)
            continue;
        memcpy(got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof got);
        break;
    }
    assert_int_equal(write(got[1], "x", 1), 1);
    assert_int_equal(read(got[0], bytes, 1), 1);
    close(got[0]);
    close(got[1]);
}

static void a_closed_end_is_told_apart_from_nonsense(void **state)
{
    struct pair *p = *state;
    struct link_packet packet;

    assert_int_equal(link_receive(p->link, &packet), 0);
    assert_null(link_broken(p->link));
    close(take_fd(&p->fd));
    assert_int_equal(link_receive(p->link, &packet), 0);
    assert_non_null(link_broken(p->link));
    assert_true(link_closed(p->link));
}

static void send_request(struct pair *p, uint64_t number)
{
    struct launch_note note = { .sandbox = number, .note = VIEW_STR("last words") };
    autobuf struct buf out = { 0 };

    buf_init(&out, MSG_MAX);
    assert_int_equal(msg_encode(launch_request_spec(LAUNCH_NOTE), number, 0, &note, 0, &out, NULL),
                     0);
    assert_int_equal(send(p->fd, buf_view(&out).p, buf_len(&out), 0), buf_len(&out));
}

static void expect_end(struct pair *p)
{
    struct link_packet packet;

    assert_int_equal(link_receive(p->link, &packet), 0);
    assert_non_null(link_broken(p->link));
    assert_true(link_closed(p->link));
}

static void sending_to_a_closed_end_is_no_signal_and_the_end_is_found_by_receiving(void **state)
{
    struct pair *p = *state;

    close(take_fd(&p->fd));
    send_done(p, 1);
    assert_null(link_broken(p->link));
    expect_end(p);
}

/* A gateway that is killed has sent its last note and read none of the answers. */
static void what_was_sent_before_the_end_is_received(void **state)
{
    struct pair *p = *state;
    struct link_packet packet;

    send_done(p, 1);
    for (uint64_t i = 1; i <= 3; i++)
        send_request(p, i);
    close(take_fd(&p->fd));
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(link_receive(p->link, &packet), 1);
        assert_int_equal(packet.head.request, i);
        link_packet_close(&packet);
        send_done(p, i); /* the answer finds nobody */
    }
    expect_end(p);
}

static void packets_that_wait_for_a_closed_end_are_dropped(void **state)
{
    struct pair *p = *state;

    for (uint64_t i = 1; !is_waiting(p); i++)
        send_done(p, i);
    close(take_fd(&p->fd));
    link_flush(p->link);
    assert_false(is_waiting(p));
    expect_end(p);
}

static void expect_refusal(struct pair *p, const void *bytes, size_t n, const char *part)
{
    struct link_packet packet;

    assert_int_equal(send(p->fd, bytes, n, 0), n);
    assert_int_equal(link_receive(p->link, &packet), 0);
    assert_non_null(link_broken(p->link));
    if (strstr(link_broken(p->link), part) == NULL)
        fail_msg("%s", link_broken(p->link));
    assert_false(link_closed(p->link));
}

static void a_packet_above_the_maximum_is_refused(void **state)
{
    static uint8_t large[MSG_MAX + 1];
    struct msg_head head = { .size = MSG_MAX + 1, .version = MSG_VERSION, .verb = LAUNCH_LIST };

    memcpy(large, &head, sizeof head);
    expect_refusal(*state, large, sizeof large, "too large");
}

static void a_descriptor_that_the_head_does_not_tell_is_closed_and_refused(void **state)
{
    struct pair *p = *state;
    struct msg_head head = { .size = sizeof head, .version = MSG_VERSION, .verb = LAUNCH_LIST };
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct iovec iov = { &head, sizeof head };
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    struct link_packet packet;
    int pipe_fds[2];
    char byte;

    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    *CMSG_FIRSTHDR(&m) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                           .cmsg_type = SCM_RIGHTS,
                                           .cmsg_len = CMSG_LEN(sizeof(int)) };
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &pipe_fds[1], sizeof(int));
    assert_int_equal(sendmsg(p->fd, &m, 0), sizeof head);
    close(pipe_fds[1]);
    assert_int_equal(link_receive(p->link, &packet), 0);
    assert_non_null(strstr(link_broken(p->link), "descriptors"));
    assert_int_equal(read(pipe_fds[0], &byte, 1), 0); /* nobody holds the other end */
    close(pipe_fds[0]);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(packets_wait_for_a_slow_reader_and_keep_their_order),
        T(a_reader_that_never_reads_breaks_the_link_and_memory_stays_bounded),
        T(patience_with_the_oldest_packet_ends),
        T(a_message_that_lies_unread_for_long_breaks_the_link),
        T(descriptors_that_wait_are_duplicates),
        T(a_closed_end_is_told_apart_from_nonsense),
        T(sending_to_a_closed_end_is_no_signal_and_the_end_is_found_by_receiving),
        T(what_was_sent_before_the_end_is_received),
        T(packets_that_wait_for_a_closed_end_are_dropped),
        T(a_packet_above_the_maximum_is_refused),
        T(a_descriptor_that_the_head_does_not_tell_is_closed_and_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
