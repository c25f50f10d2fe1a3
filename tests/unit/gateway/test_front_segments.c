/* What the front's TCP sockets are set to, and in how many pieces what it says leaves them. */
#include <arpa/inet.h>
#include <linux/tcp.h> /* has more of struct tcp_info than netinet/tcp.h */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "fake_core.h"
#include "wsclient.h"

/* The front runs in this process: its end of the one connection that there is. */
static int accepted_socket(const struct harness *h)
{
    int found = -1;

    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_in own = { 0 }, peer;
        socklen_t own_n = sizeof own, peer_n = sizeof peer;

        if (getsockname(fd, (struct sockaddr *)&own, &own_n) < 0 ||
            getpeername(fd, (struct sockaddr *)&peer, &peer_n) < 0)
            continue;
        if (own.sin_family != AF_INET || ntohs(own.sin_port) != harness_port(h))
            continue;
        assert_int_equal(found, -1);
        found = fd;
    }
    assert_true(found >= 0);
    return found;
}

static void an_accepted_connection_sends_without_delay(void **state)
{
    struct harness *h = harness_start(NULL);
    int fd = dial(h), delay_off = 0;
    socklen_t n = sizeof delay_off;
    struct reply r;

    (void)state;
    put(fd, "GET /api HTTP/1.1\r\n" HOST "Authorization: token secret\r\n\r\n");
    get_reply(fd, &r);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    assert_int_equal(getsockopt(accepted_socket(h), IPPROTO_TCP, TCP_NODELAY, &delay_off, &n), 0);
    assert_int_equal(delay_off, 1);
    hang_up(fd);
    harness_stop(h);
}

static unsigned data_segments(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t n = sizeof info;

    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n), 0);
    assert_true(n >=
                offsetof(struct tcp_info, tcpi_data_segs_out) + sizeof info.tcpi_data_segs_out);
    return info.tcpi_data_segs_out;
}

/* Without delay every write is a segment: one for each message would cost a client 40 wake-ups. */
static void the_messages_of_one_turn_leave_together(void **state)
{
    enum { MESSAGES = 40 };
    struct harness *h = harness_start(NULL);
    unsigned before;
    int fd, own;

    (void)state;
    make_kernel(h);
    fd = open_ws(h, "");
    execute(fd, "echo first");
    expect_frame(fd, TEXT, "first");
    expect_frame(fd, TEXT, "execute_reply");
    own = accepted_socket(h);
    before = data_segments(own);
    execute(fd, "burst 40 100");
    for (int i = 0; i < MESSAGES; i++)
        expect_frame(fd, TEXT, "stream");
    expect_frame(fd, TEXT, "execute_reply");
    assert_in_range(data_segments(own) - before, 1, 4);
    hang_up(fd);
    until(&fake.clients, 0);
    harness_stop(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_accepted_connection_sends_without_delay),
        cmocka_unit_test(the_messages_of_one_turn_leave_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
