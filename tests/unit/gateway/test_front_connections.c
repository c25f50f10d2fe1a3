/* HTTP connections of the front over real sockets: order, pieces, limits, ends; on the fake core. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "err.h"
#include "fake_core.h"
#include "harness.h"
#include "loop.h"

#define HOST "Host: 127.0.0.1\r\n"
#define AUTH "Authorization: token secret\r\n"

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct harness *h = harness_start(NULL);
    int fd = dial(h);

    (void)state;
    fake.create_ms = 30; /* an answer that comes later holds the others back */
    for (int i = 0; i < 200; i++) {
        putf(fd, "GET /api/kernels/1-2-3-4-%d HTTP/1.1\r\n" HOST AUTH "\r\n", i);
        if (i % 50 == 0)
            put(fd, "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Content-Length: 2\r\n\r\n{}");
    }
    for (int i = 0; i < 200; i++) {
        char id[32];
        struct reply r;

        get_reply(fd, &r);
        snprintf(id, sizeof id, "1-2-3-4-%d\"", i);
        assert_int_equal(r.status, 404);
        assert_non_null(strstr(r.body, id));
        reply_free(&r);
        if (i % 50 == 0) {
            get_reply(fd, &r);
            assert_int_equal(r.status, 201);
            reply_free(&r);
        }
    }
    hang_up(fd);
    harness_stop(h);
}

static void a_request_may_come_in_any_pieces(void **state)
{
    static const char request[] =
        "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Transfer-Encoding: chunked\r\n\r\n"
        "3\r\n{\"n\r\nb;x=y\r\name\":\"fake\"\r\n1\r\n}\r\n0\r\nT: u\r\n\r\n"
        "GET /api HTTP/1.1\r\n" HOST AUTH "\r\n";
    struct harness *h = harness_start(NULL);

    (void)state;
    for (size_t cut = 1; cut < sizeof request - 1; cut += 7) {
        struct reply r;
        int fd = dial(h);

        put_bytes(fd, request, cut);
        put_bytes(fd, request + cut, sizeof request - 1 - cut);
        get_reply(fd, &r);
        assert_true(r.status == 201 || r.status == 403);
        reply_free(&r);
        get_reply(fd, &r);
        assert_int_equal(r.status, 200);
        assert_non_null(strstr(r.body, "version"));
        reply_free(&r);
        hang_up(fd);
    }
    harness_stop(h);
}

static void expect_continue_is_answered_before_the_body(void **state)
{
    struct harness *h = harness_start(NULL);
    int fd = dial(h);
    struct reply r;

    (void)state;
    put(fd, "POST /api/kernels HTTP/1.1\r\n" HOST AUTH
            "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    get_reply(fd, &r);
    assert_int_equal(r.status, 100);
    reply_free(&r);
    put(fd, "{}");
    get_reply(fd, &r);
    assert_int_equal(r.status, 201);
    reply_free(&r);
    hang_up(fd);
    fd = dial(h); /* refused before the body is sent */
    put(fd,
        "POST /api/kernels HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    get_reply(fd, &r);
    assert_int_equal(r.status, 401);
    assert_true(ended(fd));
    reply_free(&r);
    hang_up(fd);
    harness_stop(h);
}

static void malformed_requests_get_one_answer_and_the_end(void **state)
{
    static const struct {
        const char *bytes;
        int status;
    } rows[] = {
        { "GET\r\n\r\n", 400 },
        { "GET /api\r\n\r\n", 400 },
        { "GET /api HTTP/1.1\r\n\r\n", 400 },
        { "GET /api HTTP/1.1\r\n" HOST HOST "\r\n", 400 },
        { "GET /api HTTP/1.1\r\n" HOST "X-A : b\r\n\r\n", 400 },
        { "GET /api HTTP/1.1\nHost: a\n\n", 400 },
        { "GET /api HTTP/2.0\r\n" HOST "\r\n", 505 },
        { "POST /api/kernels HTTP/1.1\r\n" HOST AUTH
          "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          400 },
        { "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Content-Length: +2\r\n\r\n{}", 400 },
        { "POST /api/kernels HTTP/1.1\r\n" HOST AUTH
          "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
          400 },
        { "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
          501 },
        { "POST /api/kernels HTTP/1.1\r\n" HOST AUTH
          "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
          400 },
        { "\x16\x03\x01\x02\r\n\r\n", 400 },
    };
    struct harness *h = harness_start(NULL);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct reply r;
        int fd = dial(h);

        put(fd, rows[i].bytes);
        /* What follows must not be taken for a request. */
        put(fd, "GET /api HTTP/1.1\r\n" HOST AUTH "\r\n");
        get_reply(fd, &r);
        if (r.status != rows[i].status)
            fail_msg("row %zu: %d", i, r.status);
        assert_non_null(strstr(r.body, "\"reason\""));
        assert_string_equal(reply_header(&r, "Connection"), "close");
        reply_free(&r);
        get_reply(fd, &r);
        assert_int_equal(r.status, 0);
        reply_free(&r);
        hang_up(fd);
    }
    harness_stop(h);
}

static void a_long_head_is_refused(void **state)
{
    struct harness *h = harness_start(NULL);
    char *text = xcalloc(1, 100001);
    struct reply r;
    int fd = dial(h);

    (void)state;
    memset(text, 'a', 100000);
    putf(fd, "GET /%s HTTP/1.1\r\n" HOST "\r\n", text);
    get_reply(fd, &r);
    assert_int_equal(r.status, 414);
    assert_true(ended(fd));
    reply_free(&r);
    hang_up(fd);
    fd = dial(h);
    putf(fd, "GET /api HTTP/1.1\r\n" HOST "X-A: %s\r\n\r\n", text);
    get_reply(fd, &r);
    assert_int_equal(r.status, 431);
    assert_true(ended(fd));
    reply_free(&r);
    hang_up(fd);
    free(text);
    harness_stop(h);
}

static void http_1_0_and_connection_close_end_the_connection(void **state)
{
    struct harness *h = harness_start(NULL);
    int fd = dial(h);
    struct reply r;

    (void)state;
    put(fd, "GET /api HTTP/1.0\r\n" AUTH "\r\n");
    get_reply(fd, &r);
    assert_int_equal(r.status, 200);
    assert_true(ended(fd));
    reply_free(&r);
    hang_up(fd);
    fd = dial(h);
    put(fd, "GET /api HTTP/1.0\r\nConnection: keep-alive\r\n" AUTH "\r\n");
    get_reply(fd, &r);
    assert_string_equal(reply_header(&r, "Connection"), "keep-alive");
    reply_free(&r);
    put(fd, "GET /api HTTP/1.1\r\n" HOST "Connection: close\r\n" AUTH "\r\n");
    get_reply(fd, &r);
    assert_int_equal(r.status, 200);
    assert_true(ended(fd));
    reply_free(&r);
    hang_up(fd);
    harness_stop(h);
}

static void a_204_is_bare_and_the_connection_goes_on(void **state)
{
    struct harness *h = harness_start(NULL);
    int fd = dial(h);
    struct reply r;

    (void)state;
    expect(h, "POST", "/api/kernels", "{}", 201, NULL);
    put(fd,
        "DELETE /api/kernels/00000000-0000-4000-8000-000000000001 HTTP/1.1\r\n" HOST AUTH "\r\n");
    put(fd, "GET /api HTTP/1.1\r\n" HOST AUTH "\r\n");
    get_reply(fd, &r);
    assert_int_equal(r.status, 204);
    assert_null(reply_header(&r, "Content-Type"));
    assert_null(reply_header(&r, "Content-Length"));
    reply_free(&r);
    get_reply(fd, &r);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    hang_up(fd);
    harness_stop(h);
}

static void who_closes_its_sending_side_still_gets_the_answer(void **state)
{
    struct harness *h = harness_start(NULL);
    int fd = dial(h);
    struct reply r;

    (void)state;
    fake.create_ms = 50;
    put(fd, "GET /api HTTP/1.1\r\n" HOST AUTH "\r\n"
            "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Content-Length: 2\r\n\r\n{}");
    shutdown(fd, SHUT_WR);
    get_reply(fd, &r);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    get_reply(fd, &r);
    assert_int_equal(r.status, 201);
    reply_free(&r);
    assert_true(ended(fd));
    hang_up(fd);
    harness_stop(h);
}

static void slow_clients_are_ended(void **state)
{
    static const struct {
        const char *bytes;
        int status; /* 0: closed without a word */
    } rows[] = {
        { "", 0 },
        { "GET /api HT", 408 },
        { "GET /api HTTP/1.1\r\nHost: a\r\n", 408 },
        { "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Content-Length: 5\r\n\r\n{", 408 },
        { "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Transfer-Encoding: chunked\r\n\r\n5\r\n{",
          408 },
    };
    /* A machine that stands still for a moment makes no idle client of one that was about to speak. */
    struct front_config config = { .head_ms = 100, .body_ms = 100, .idle_ms = 1000 };
    struct harness *h = harness_start(&config);
    struct reply r;
    int fd;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fd = dial(h);
        put(fd, rows[i].bytes);
        get_reply(fd, &r);
        assert_int_equal(r.status, rows[i].status);
        assert_true(ended(fd));
        reply_free(&r);
        hang_up(fd);
    }
    fd = dial(h); /* one answered request, then silence */
    put(fd, "GET /api HTTP/1.1\r\n" HOST AUTH "\r\n");
    get_reply(fd, &r);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    assert_true(ended(fd));
    hang_up(fd);
    harness_stop(h);
}

/* A byte of a body each 20 ms, until there is an answer; how many ms that took from the connect on. */
static uint64_t trickle(struct harness *h)
{
    enum { EACH_MS = 20 };
    uint64_t began = clock_monotonic_us();
    int fd = dial(h);
    struct pollfd p = { .fd = fd, .events = POLLIN };
    struct reply r;

    put(fd, "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Content-Length: 60000\r\n\r\n");
    for (int i = 0; i < DEADLINE_MS / EACH_MS && poll(&p, 1, EACH_MS) == 0; i++)
        put(fd, " ");
    uint64_t took_ms = (clock_monotonic_us() - began) / 1000;
    assert_int_equal(p.revents & POLLIN, POLLIN); /* while bytes came */
    get_reply(fd, &r);
    assert_int_equal(r.status, 408);
    assert_true(ended(fd));
    reply_free(&r);
    hang_up(fd);
    return took_ms;
}

static void a_body_without_a_pause_has_ten_times_the_limit_between_two_bytes(void **state)
{
    struct front_config config = { .body_ms = 200 };
    struct harness *h = harness_start(&config);
    const uint64_t total_ms = 10 * config.body_ms - 1; /* the clock cuts off what is no whole ms */
    uint64_t longest = 0;

    (void)state;
    /* A machine that stands still makes a pause: once more. */
    for (int i = 0; i < 3 && longest < total_ms; i++) {
        uint64_t took_ms = trickle(h);
        longest = took_ms > longest ? took_ms : longest;
    }
    assert_in_range(longest, total_ms, DEADLINE_MS);
    harness_stop(h);
}

static void who_takes_no_answers_is_ended_and_others_are_served(void **state)
{
    struct front_config config = { .stall_ms = 200 };
    struct harness *h = harness_start(&config);
    static const char request[] = "GET /api/kernelspecs HTTP/1.1\r\n" HOST AUTH "\r\n";
    int small = 4096, fd = dial(h);

    (void)state;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    fake.spec_bytes = 1024 * 1024;
    for (int i = 0; i < 200; i++)
        if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break;
    expect(h, "GET", "/api", NULL, 200, NULL);
    /* The server gives up: it resets, which is seen as an end by a writer too. */
    for (int i = 0; i < DEADLINE_MS; i += 10) {
        if (send(fd, "G", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
            break;
        usleep(10000);
    }
    assert_true(send(fd, "G", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN);
    hang_up(fd);
    harness_stop(h);
}

static void above_the_limit_idle_ones_give_way_then_503(void **state)
{
    if (harness_tunnelled())
        skip(); /* no handshake for the sake of a refusal */
    struct front_config config = { .max_connections = 3 };
    struct harness *h = harness_start(&config);
    struct reply r;
    int idle, busy[3], fd;

    (void)state;
    fake.create_ms = 400;
    idle = dial(h);
    put(idle, "GET /api HTTP/1.1\r\n" HOST AUTH "\r\n");
    get_reply(idle, &r);
    reply_free(&r);
    for (int i = 0; i < 3; i++) {
        busy[i] = dial(h);
        put(busy[i], "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Content-Length: 2\r\n\r\n{}");
        until(&fake.calls, i + 1);
    }
    assert_true(ended(idle));
    fd = dial(h);
    get_reply(fd, &r);
    assert_int_equal(r.status, 503);
    assert_string_equal(reply_header(&r, "Retry-After"), "1");
    assert_non_null(strstr(r.body, "\"message\""));
    assert_true(ended(fd));
    reply_free(&r);
    hang_up(fd);
    hang_up(idle);
    for (int i = 0; i < 3; i++) {
        get_reply(busy[i], &r);
        assert_int_equal(r.status, 201);
        reply_free(&r);
        hang_up(busy[i]);
    }
    harness_stop(h);
}

/* A window and segments as small as they can be: whoever sends to it waits soon. */
static int dial_narrow(struct harness *h)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), window = 4096, segment = 536;
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons((uint16_t)harness_port(h)),
                             .sin_addr = { htonl(INADDR_LOOPBACK) } };

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof window), 0);
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

/* 40 kB of requests, of which the server has all. */
static void pipeline_unread(int fd, const char *request)
{
    int left = 1, room = 256 * 1024;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    for (size_t n = 0; n < 40000; n += strlen(request))
        put(fd, request);
    for (int i = 0; left > 0 && i < DEADLINE_MS; i++) {
        assert_int_equal(ioctl(fd, SIOCOUTQ, &left), 0);
        usleep(1000);
    }
    assert_int_equal(left, 0);
}

/* A connection that the server cannot miss: it waits for the body. */
static int dial_busy(struct harness *h)
{
    int fd = dial(h);
    struct reply r;

    put(fd, "POST /api/kernels HTTP/1.1\r\n" HOST AUTH
            "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    get_reply(fd, &r);
    assert_int_equal(r.status, 100);
    reply_free(&r);
    return fd;
}

static void who_reads_no_answers_that_need_no_token_gives_way(void **state)
{
    static const char *const requests[] = {
        "GET /x HTTP/1.1\r\n" HOST "\r\n",
        "GET /api/kernels HTTP/1.1\r\n" HOST "\r\n",
        "GET /api/swagger.json HTTP/1.1\r\n" HOST "\r\n",
    };
    struct front_config config = { .max_connections = 4 };
    int unread[3], busy[4], idle;

    (void)state;
    if (harness_tunnelled())
        skip(); /* the tunnel would read them */
    struct harness *h = harness_start(&config);
    idle = dial(h);
    for (int i = 0; i < 3; i++) {
        unread[i] = dial_narrow(h);
        pipeline_unread(unread[i], requests[i]);
    }
    for (int i = 0; i < 200; i++) { /* a turn each, in which it answers until nothing is taken */
        struct reply r;

        put(idle, "GET /api HTTP/1.1\r\n" HOST AUTH "\r\n");
        get_reply(idle, &r);
        assert_int_equal(r.status, 200);
        reply_free(&r);
    }
    for (int i = 0; i < 4; i++) /* each in the place of one of them; the idle one goes first */
        busy[i] = dial_busy(h);
    for (int i = 0; i < 4; i++)
        hang_up(busy[i]);
    for (int i = 0; i < 3; i++)
        hang_up(unread[i]);
    hang_up(idle);
    harness_stop(h);
}

static int has_eight_kernels(struct harness *h)
{
    struct reply r;

    ask(h, "GET", "/api/status", NULL, &r);
    int has = strstr(r.body, "\"kernels\":8") != NULL;
    reply_free(&r);
    return has;
}

static void a_reset_at_any_byte_leaves_nothing_behind(void **state)
{
    static const char request[] =
        "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Content-Length: 15\r\n\r\n{\"name\":\"fake\"}";
    struct harness *h = harness_start(NULL);

    (void)state;
    fake.create_ms = 5;
    fake.max_kernels = 8;
    for (size_t cut = 0; cut <= sizeof request - 1; cut++) {
        int fd = dial(h);

        put_bytes(fd, request, cut);
        reset(fd);
    }
    /* While the handler waits, or just answers; a reset that overtakes the reading of
     * the request makes no kernel, so that their number is not that of the requests. */
    for (int i = 0; i < 20 || !has_eight_kernels(h); i++) {
        int fd = dial(h);

        assert_true(i < 2000);
        put(fd, request);
        if (i % 2)
            usleep(5000);
        reset(fd);
    }
    until(&fake.calls, 0);
    expect(h, "GET", "/api/status", NULL, 200, "\"kernels\":8");
    harness_stop(h);
}

static void memory_of_unfinished_bodies_is_bounded_over_all_connections(void **state)
{
    enum { COUNT = 70, SIZE = 1000000 }; /* of which 64 MiB are held */
    struct harness *h = harness_start(NULL);
    char *piece = xcalloc(1, SIZE);
    struct pollfd polls[COUNT];
    int fds[COUNT], refused = 0;

    (void)state;
    memset(piece, ' ', SIZE);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = dial(h);
        putf(fds[i], "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Content-Length: %d\r\n\r\n",
             SIZE + 1);
        put_bytes(fds[i], piece, SIZE);
    }
    free(piece);
    /* Nobody has sent a whole body: the first answer can only be a refusal. */
    for (int i = 0; i < COUNT; i++)
        polls[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
    assert_true(poll(polls, COUNT, DEADLINE_MS) > 0);
    for (int i = 0; i < COUNT; i++) { /* the last byte */
        struct reply r;

        put(fds[i], " ");
        get_reply(fds[i], &r);
        if (r.status != 201 && r.status != 403)
            assert_int_equal(r.status, 503);
        refused += r.status == 503;
        reply_free(&r);
        hang_up(fds[i]);
    }
    assert_in_range(refused, 1, COUNT - 60);
    expect(h, "POST", "/api/kernels", "{\"name\":1}", 400, NULL); /* the memory is free again */
    harness_stop(h);
}

static void stopping_waits_for_what_was_begun(void **state)
{
    struct harness *h = harness_start(NULL);
    struct reply r;
    int fd = dial(h), idle = dial(h), half = dial(h);

    (void)state;
    fake.create_ms = 300;
    put(half, "GET /api HT");
    put(fd, "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Content-Length: 2\r\n\r\n{}");
    until(&fake.calls, 1);
    harness_stop_begin(h);
    assert_true(ended(idle));
    get_reply(fd, &r);
    assert_int_equal(r.status, 201);
    assert_string_equal(reply_header(&r, "Connection"), "close");
    reply_free(&r);
    hang_up(fd);
    hang_up(idle);
    hang_up(half);
    harness_stop(h);
}

static void a_thousand_idle_connections_are_carried(void **state)
{
    struct harness *h = harness_start(NULL);
    int fds[1000];

    (void)state;
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        fds[i] = dial(h);
        put(fds[i], i % 2 ? "GET /api HTTP/1.1\r\n" : "");
    }
    expect(h, "GET", "/api", NULL, 200, NULL);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        i % 3 ? hang_up(fds[i]) : reset(fds[i]);
    expect(h, "GET", "/api", NULL, 200, NULL);
    harness_stop(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(a_request_may_come_in_any_pieces),
        cmocka_unit_test(expect_continue_is_answered_before_the_body),
        cmocka_unit_test(malformed_requests_get_one_answer_and_the_end),
        cmocka_unit_test(a_long_head_is_refused),
        cmocka_unit_test(http_1_0_and_connection_close_end_the_connection),
        cmocka_unit_test(a_204_is_bare_and_the_connection_goes_on),
        cmocka_unit_test(who_closes_its_sending_side_still_gets_the_answer),
        cmocka_unit_test(slow_clients_are_ended),
        cmocka_unit_test(a_body_without_a_pause_has_ten_times_the_limit_between_two_bytes),
        cmocka_unit_test(who_takes_no_answers_is_ended_and_others_are_served),
        cmocka_unit_test(above_the_limit_idle_ones_give_way_then_503),
        cmocka_unit_test(who_reads_no_answers_that_need_no_token_gives_way),
        cmocka_unit_test(a_reset_at_any_byte_leaves_nothing_behind),
        cmocka_unit_test(memory_of_unfinished_bodies_is_bounded_over_all_connections),
        cmocka_unit_test(stopping_waits_for_what_was_begun),
        cmocka_unit_test(a_thousand_idle_connections_are_carried),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
