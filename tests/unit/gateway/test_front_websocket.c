/* How the channels WebSocket opens and carries messages, over real sockets, on the fake core. */
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

/* ---- opening -------------------------------------------------------------- */

static void what_is_no_upgrade_gets_a_status_and_the_end(void **state)
{
    static const struct {
        const char *path, *headers;
        int status;
    } rows[] = {
        { KERNEL "/channels", UPGRADE, 401 },
        { KERNEL "/channels?token=wrong", UPGRADE, 401 },
        { "/api/kernels/1-2-3-4-5/channels?token=secret", UPGRADE, 404 },
        { "/api/kernels/1-2-3-4-5/channels?token=secret", "", 404 },
        { KERNEL "/channels?token=secret", "", 400 },
        { KERNEL "/channels?token=secret",
          "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 12\r\n" KEY, 426 },
        { KERNEL "/channels?token=secret",
          "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n", 400 },
        { KERNEL "/channels?token=secret&session_id=%", UPGRADE, 400 },
        { KERNEL "/channels?token=secret&session_id=a%00b", UPGRADE, 400 },
        { KERNEL "/channels?token=secret&session_id=refuse", UPGRADE, 410 },
    };
    struct harness *h = harness_start(NULL);

    (void)state;
    make_kernel(h);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct reply r;
        int fd = handshake(h, rows[i].path, rows[i].headers, &r);

        if (r.status != rows[i].status)
            fail_msg("row %zu: %d %s", i, r.status, r.body);
        if (r.status == 426)
            assert_string_equal(reply_header(&r, "Sec-WebSocket-Version"), "13");
        if (r.status == 400 || r.status == 426)
            assert_true(ended(fd));
        reply_free(&r);
        hang_up(fd);
    }
    harness_stop(h);
}

static void without_a_token_a_foreign_origin_is_refused(void **state)
{
    struct harness *h = harness_start_open(NULL);
    struct reply r;
    int fd;

    (void)state;
    make_kernel(h);
    fd = handshake(h, KERNEL "/channels", UPGRADE "Origin: http://evil.example\r\n", &r);
    assert_int_equal(r.status, 403);
    reply_free(&r);
    hang_up(fd);
    fd = handshake(h, KERNEL "/channels",
                   harness_tunnelled() ? UPGRADE "Origin: https://127.0.0.1\r\n"
                                       : UPGRADE "Origin: http://127.0.0.1\r\n",
                   &r);
    assert_int_equal(r.status, 101);
    reply_free(&r);
    hang_up(fd);
    until(&fake.clients, 0);
    harness_stop(h);
}

static void the_subprotocol_is_selected_when_it_is_offered(void **state)
{
    static const struct {
        const char *offer;
        int v1;
    } rows[] = {
        { "", 0 },
        { V1, 1 },
        { "Sec-WebSocket-Protocol: foo, v1.kernel.websocket.jupyter.org\r\n", 1 },
        { "Sec-WebSocket-Protocol: foo\r\n" V1, 1 },
        { "Sec-WebSocket-Protocol: foo\r\n", 0 },
        { "Sec-WebSocket-Extensions: permessage-deflate\r\n", 0 },
    };
    struct harness *h = harness_start(NULL);

    (void)state;
    make_kernel(h);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char headers[1024];
        struct reply r;
        const char *selected;
        int fd;

        snprintf(headers, sizeof headers, "%s%s", UPGRADE, rows[i].offer);
        fd = handshake(h, KERNEL "/channels?token=secret", headers, &r);
        assert_int_equal(r.status, 101);
        selected = reply_header(&r, "Sec-WebSocket-Protocol");
        assert_int_equal(selected != NULL, rows[i].v1);
        assert_null(reply_header(&r, "Sec-WebSocket-Extensions"));
        execute(fd, "echo x");
        expect_frame(fd, rows[i].v1 ? BINARY : TEXT, "stream");
        reply_free(&r);
        hang_up(fd);
        until(&fake.clients, 0);
    }
    harness_stop(h);
}

static void frames_behind_the_request_are_not_lost(void **state)
{
    struct harness *h = harness_start(NULL);
    uint8_t bytes[4096];
    char text[1024];
    size_t n;
    struct reply r;
    int fd = dial(h);

    (void)state;
    make_kernel(h);
    n = (size_t)sprintf((char *)bytes, "GET %s HTTP/1.1\r\n" HOST UPGRADE "\r\n",
                        KERNEL "/channels?token=secret");
    n += build(bytes + n, 0x80 | TEXT, text, execute_text(text, sizeof text, "echo early"));
    put_bytes(fd, bytes, n);
    get_reply(fd, &r);
    assert_int_equal(r.status, 101);
    reply_free(&r);
    expect_frame(fd, TEXT, "early");
    expect_frame(fd, TEXT, "execute_reply");
    hang_up(fd);
    until(&fake.clients, 0);
    harness_stop(h);
}

static void a_handshake_may_wait_for_its_kernel(void **state)
{
    struct harness *h = harness_start(NULL);
    uint8_t bytes[4096];
    char text[1024];
    struct reply r;
    size_t n;
    int fd = dial(h);

    (void)state;
    make_kernel(h);
    fake.create_ms = harness_tunnelled() ? 1000 : 100; /* a DELETE has to come within it */
    fake.starting = 1;
    n = (size_t)sprintf((char *)bytes, "GET %s HTTP/1.1\r\n" HOST UPGRADE "\r\n",
                        KERNEL "/channels?token=secret");
    n += build(bytes + n, 0x80 | TEXT, text, execute_text(text, sizeof text, "echo early"));
    put_bytes(fd, bytes, n);
    get_reply(fd, &r);
    assert_int_equal(r.status, 101);
    reply_free(&r);
    expect_frame(fd, TEXT, "early");
    expect_frame(fd, TEXT, "execute_reply");
    execute(fd, "echo later");
    expect_frame(fd, TEXT, "later");
    hang_up(fd);
    fd = dial(h); /* who leaves meanwhile; who waits for a kernel that goes */
    put_bytes(fd, bytes, n);
    until(&fake.calls, 1);
    reset(fd);
    until(&fake.calls, 0);
    fd = dial(h);
    put_bytes(fd, bytes, n);
    until(&fake.calls, 1);
    fake.create_ms = 0;
    assert_int_equal(ask(h, "DELETE", KERNEL, NULL, &r), 204);
    reply_free(&r);
    get_reply(fd, &r);
    assert_int_equal(r.status, 404);
    reply_free(&r);
    hang_up(fd);
    until(&fake.clients, 0);
    harness_stop(h);
}

/* ---- messages ------------------------------------------------------------- */

static void replies_go_to_the_asker_and_iopub_to_all(void **state)
{
    struct harness *h = harness_start(NULL);
    int a, b;

    (void)state;
    make_kernel(h);
    a = open_ws(h, "");
    b = open_ws(h, V1);
    execute(a, "echo one");
    expect_frame(a, TEXT, "\"text\":\"one\"");
    expect_frame(a, TEXT, "execute_reply");
    expect_frame(b, BINARY, "\"text\":\"one\"");
    execute(b, "echo two"); /* a text on a v1 socket is read as legacy */
    expect_frame(b, BINARY, "\"text\":\"two\"");
    expect_frame(b, BINARY, "execute_reply");
    expect_frame(a, TEXT, "\"text\":\"two\"");
    execute(a, "buffers");
    expect_frame(a, BINARY, "abc");
    expect_frame(a, TEXT, "execute_reply");
    expect_frame(b, BINARY, "abc");
    hang_up(a);
    hang_up(b);
    until(&fake.clients, 0);
    harness_stop(h);
}

static void a_bad_message_costs_only_itself(void **state)
{
    static const char *const texts[] = { "{",
                                         "[1]",
                                         "",
                                         "\"x\"",
                                         "{\"header\":1}",
                                         "{\"channel\":\"foo\",\"header\":{}}",
                                         "{\"channel\":\"iopub\",\"header\":{}}" };
    struct harness *h = harness_start(NULL);
    int fd;

    (void)state;
    make_kernel(h);
    fd = open_ws(h, "");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        send_text(fd, texts[i]);
    send_frame(fd, 0x80 | BINARY, "\0\0\0\1", 4);
    send_frame(fd, 0x80 | TEXT, "\0\0\0\1\xff", 5); /* a NUL first: not read as UTF-8 */
    execute(fd, "echo after");
    expect_frame(fd, TEXT, "after");
    hang_up(fd);
    until(&fake.clients, 0);
    assert_int_equal(fake.received, 1);
    harness_stop(h);
}

static void fragments_with_a_ping_between_make_one_message(void **state)
{
    struct harness *h = harness_start(NULL);
    char text[1024];
    size_t n = execute_text(text, sizeof text, "echo frag");
    int fd;

    (void)state;
    make_kernel(h);
    fd = open_ws(h, "");
    send_frame(fd, TEXT, text, 1);
    send_frame(fd, 0, text + 1, 39);
    send_frame(fd, 0x80 | PING, "mid", 3);
    send_frame(fd, 0, "", 0);
    send_frame(fd, 0x80, text + 40, n - 40);
    expect_frame(fd, PONG, "mid");
    expect_frame(fd, TEXT, "frag");
    hang_up(fd);
    until(&fake.clients, 0);
    harness_stop(h);
}

static void messages_of_eight_mib_pass_both_ways(void **state)
{
    struct harness *h = harness_start(NULL);
    size_t n = 8u << 20, at;
    char *text = malloc(n + 1024);
    struct frame f;
    int fd;

    (void)state;
    make_kernel(h);
    fd = open_ws(h, "");
    at = execute_text(text, 1024, "burst 1 30000000");
    memset(text + at, ' ', n);
    send_frame(fd, 0x80 | TEXT, text, at + n);
    read_frame(fd, &f);
    assert_int_equal(f.opcode, TEXT);
    assert_true(f.n > 30000000);
    free(f.p);
    expect_frame(fd, TEXT, "execute_reply");
    free(text);
    hang_up(fd);
    until(&fake.clients, 0);
    harness_stop(h);
}

static void a_slow_reader_lags_and_loses_nothing(void **state)
{
    struct harness *h = harness_start(NULL);
    int fd, other, pulled;

    (void)state;
    make_kernel(h);
    fd = open_ws(h, "");
    other = open_ws(h, "");
    execute(fd, "burst 4000 8192");
    for (int i = 0; i < 4000; i++) {
        char part[32];

        snprintf(part, sizeof part, "\"text\":\"%d x", i);
        expect_frame(other, TEXT, part);
    }
    pulled = fake.pulled; /* the other has 4000 (and no reply); the slow one is behind */
    assert_true(pulled < 7000);
    for (int i = 0; i < 4000; i++) {
        char part[32];

        snprintf(part, sizeof part, "\"text\":\"%d x", i);
        expect_frame(fd, TEXT, part);
    }
    expect_frame(fd, TEXT, "execute_reply");
    hang_up(fd);
    hang_up(other);
    until(&fake.clients, 0);
    harness_stop(h);
}

static void a_full_kernel_stops_the_reading_and_no_message_is_lost(void **state)
{
    struct harness *h = harness_start(NULL);
    int fd;

    (void)state;
    make_kernel(h);
    fd = open_ws(h, "");
    execute(fd, "full 200");
    for (int i = 0; i < 300; i++) {
        char code[32];

        snprintf(code, sizeof code, "echo n%d;", i);
        execute(fd, code);
    }
    expect_frame(fd, TEXT, "execute_reply");
    for (int i = 0; i < 300; i++) {
        char part[32];

        snprintf(part, sizeof part, "\"text\":\"n%d;\"", i);
        expect_frame(fd, TEXT, part);
        expect_frame(fd, TEXT, "execute_reply");
    }
    hang_up(fd);
    until(&fake.clients, 0);
    assert_int_equal(fake.received, 301);
    harness_stop(h);
}

static void who_leaves_while_the_kernel_is_full_is_forgotten(void **state)
{
    struct harness *h = harness_start(NULL);
    int fd;

    (void)state;
    make_kernel(h);
    fd = open_ws(h, "");
    execute(fd, "full 100");
    execute(fd, "echo held");
    expect_frame(fd, TEXT, "execute_reply");
    reset(fd);
    until(&fake.clients, 0);
    harness_stop(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_upgrade_gets_a_status_and_the_end),
        cmocka_unit_test(without_a_token_a_foreign_origin_is_refused),
        cmocka_unit_test(the_subprotocol_is_selected_when_it_is_offered),
        cmocka_unit_test(frames_behind_the_request_are_not_lost),
        cmocka_unit_test(a_handshake_may_wait_for_its_kernel),
        cmocka_unit_test(replies_go_to_the_asker_and_iopub_to_all),
        cmocka_unit_test(a_bad_message_costs_only_itself),
        cmocka_unit_test(fragments_with_a_ping_between_make_one_message),
        cmocka_unit_test(messages_of_eight_mib_pass_both_ways),
        cmocka_unit_test(a_slow_reader_lags_and_loses_nothing),
        cmocka_unit_test(a_full_kernel_stops_the_reading_and_no_message_is_lost),
        cmocka_unit_test(who_leaves_while_the_kernel_is_full_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
