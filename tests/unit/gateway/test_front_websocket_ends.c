/* How the channels WebSocket ends, and what an end leaves, over real sockets, on the fake core. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "client.h"
#include "err.h"
#include "fake_core.h"
#include "harness.h"
#include "wsclient.h"

static void protocol_errors_close_with_their_code(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        int code;
    } rows[] = {
        { "\x81\x02{}", 4, 1002 },                          /* unmasked */
        { "\xc1\x80\1\2\3\4", 6, 1002 },                    /* reserved bit */
        { "\x83\x80\1\2\3\4", 6, 1002 },                    /* opcode 3 */
        { "\x09\x80\1\2\3\4", 6, 1002 },                    /* fragmented ping */
        { "\x89\xfe\0\x7e\1\2\3\4", 8, 1002 },              /* ping of 126 bytes */
        { "\x80\x80\1\2\3\4", 6, 1002 },                    /* lone continuation */
        { "\x81\xff\0\0\0\0\x80\0\0\0\1\2\3\4", 14, 1009 }, /* 2 GiB */
        { "\x81\x81\1\2\3\4\xfe", 7, 1007 },                /* text ff */
        { "\x88\x81\1\2\3\4x", 7, 1002 },                   /* close of one byte */
        { "\x88\x82\1\2\3\4\x02\xef", 8, 1002 },            /* close 1005 */
        { "\x88\x82\1\2\3\4\x02\xea", 8, 1000 },            /* close 1000 */
        { "\x88\x82\1\2\3\4\x02\xeb", 8, 1001 },
        { "\x88\x82\1\2\3\4\x12\x85", 8, 4999 },
        { "\x88\x80\1\2\3\4", 6, 0 }, /* close without a code */
    };
    struct harness *h = harness_start(NULL);

    (void)state;
    make_kernel(h);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int fd = open_ws(h, ""), code;

        put_bytes(fd, rows[i].bytes, rows[i].n);
        code = close_code(fd);
        if (code != rows[i].code)
            fail_msg("row %zu: %d", i, code);
        assert_true(ended(fd));
        hang_up(fd);
    }
    until(&fake.clients, 0);
    harness_stop(h);
}

static void the_reason_of_an_end_decides_the_close_code(void **state)
{
    static const int codes[] = { [CLIENT_REPLACED] = 0,
                                 [CLIENT_DELETED] = 1000,
                                 [CLIENT_DEAD] = 0,
                                 [CLIENT_LAGGED] = 1013,
                                 [CLIENT_SHUTDOWN] = 1012 };
    struct harness *h = harness_start(NULL);

    (void)state;
    make_kernel(h);
    for (int why = 0; why < (int)(sizeof codes / sizeof *codes); why++) {
        int fd = open_ws(h, "");
        char code[32];

        snprintf(code, sizeof code, "end %d", why);
        execute(fd, code);
        expect_frame(fd, TEXT, "execute_reply"); /* what was said before comes first */
        assert_int_equal(close_code(fd), codes[why]);
        send_frame(fd, 0x80 | CLOSE, "\x03\xe8", 2);
        assert_true(ended(fd));
        hang_up(fd);
    }
    until(&fake.clients, 0);
    harness_stop(h);
}

static void deleting_a_kernel_closes_its_sockets(void **state)
{
    struct harness *h = harness_start(NULL);
    struct reply r;
    int fd;

    (void)state;
    make_kernel(h);
    fd = open_ws(h, "");
    assert_int_equal(ask(h, "DELETE", KERNEL, NULL, &r), 204);
    reply_free(&r);
    assert_int_equal(close_code(fd), 1000);
    hang_up(fd);
    until(&fake.clients, 0);
    harness_stop(h);
}

static void a_kernel_can_be_deleted_while_its_sockets_close(void **state)
{
    struct harness *h = harness_start(NULL);
    struct reply r;
    int fd;

    (void)state;
    make_kernel(h);
    fd = open_ws(h, "");
    send_frame(fd, 0x80 | CLOSE, "\x03\xe8", 2);
    until(&fake.clients, 0); /* at once, not when the linger is over */
    assert_int_equal(ask(h, "DELETE", KERNEL, NULL, &r), 204);
    reply_free(&r);
    hang_up(fd);
    harness_stop(h);
}

static void stopping_closes_with_1012(void **state)
{
    struct harness *h = harness_start(NULL);
    int fd, silent;

    (void)state;
    make_kernel(h);
    fd = open_ws(h, "");
    silent = open_ws(h, ""); /* never answers the Close */
    harness_stop_begin(h);
    assert_int_equal(close_code(fd), 1012);
    send_frame(fd, 0x80 | CLOSE, "\x03\xf4", 2);
    assert_true(ended(fd));
    assert_true(ended(silent));
    hang_up(fd);
    hang_up(silent);
    harness_stop(h);
}

static void silent_peers_are_pinged_and_given_up(void **state)
{
    struct front_config config = { .ws_ping_set = 1, .ws_ping_ms = 50, .ws_silence_ms = 300 };
    struct harness *h = harness_start(&config);
    int alive, silent;

    (void)state;
    make_kernel(h);
    alive = open_ws(h, "");
    silent = open_ws(h, "");
    for (int i = 0; i < 12; i++) { /* twice the silence that is allowed */
        expect_frame(alive, PING, NULL);
        send_frame(alive, 0x80 | PONG, "", 0);
    }
    assert_int_equal(close_code(silent), 0);
    assert_true(ended(silent));
    execute(alive, "echo here");
    expect_frame(alive, TEXT, "here");
    hang_up(alive);
    hang_up(silent);
    until(&fake.clients, 0);
    harness_stop(h);
}

static void a_reset_at_any_byte_detaches_the_client(void **state)
{
    struct harness *h = harness_start(NULL);
    uint8_t bytes[1024];
    char text[512];
    size_t n;

    (void)state;
    make_kernel(h);
    n = build(bytes, 0x80 | TEXT, text, execute_text(text, sizeof text, "burst 20 20000"));
    for (size_t cut = 0; cut <= n; cut += cut < 8 || cut > n - 3 ? 1 : 17) {
        int fd = open_ws(h, cut % 2 ? V1 : "");

        put_bytes(fd, bytes, cut);
        cut % 3 ? reset(fd) : hang_up(fd);
        until(&fake.clients, 0);
    }
    harness_stop(h);
}

static void memory_of_unfinished_messages_is_bounded_over_all_sockets(void **state)
{
    struct front_config config = { .ws_message_max = 1u << 20 }; /* four of them in all */
    struct harness *h = harness_start(&config);
    uint8_t *piece = calloc(1, 900000);
    int fds[6], refused = 0;

    (void)state;
    make_kernel(h);
    for (int i = 0; i < 6; i++) {
        static const uint8_t head[14] = { 0x82, 0xff, 0, 0, 0, 0, 0, 0x0f, 0xff, 0xff };

        fds[i] = open_ws(h, "");
        put_bytes(fds[i], head, sizeof head);
        put_bytes(fds[i], piece, 900000);
        send_frame(fds[i], 0, "", 0); /* part of the payload */
        usleep(20000);
    }
    for (int i = 0; i < 6; i++) {
        char c;

        if (recv(fds[i], &c, 1, MSG_DONTWAIT) == 1) {
            assert_int_equal((uint8_t)c, 0x88);
            refused++;
        }
        hang_up(fds[i]);
    }
    assert_in_range(refused, 1, 2);
    free(piece);
    until(&fake.clients, 0);
    harness_stop(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(protocol_errors_close_with_their_code),
        cmocka_unit_test(the_reason_of_an_end_decides_the_close_code),
        cmocka_unit_test(deleting_a_kernel_closes_its_sockets),
        cmocka_unit_test(a_kernel_can_be_deleted_while_its_sockets_close),
        cmocka_unit_test(stopping_closes_with_1012),
        cmocka_unit_test(silent_peers_are_pinged_and_given_up),
        cmocka_unit_test(a_reset_at_any_byte_detaches_the_client),
        cmocka_unit_test(memory_of_unfinished_messages_is_bounded_over_all_sockets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
