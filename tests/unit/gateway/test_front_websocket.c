/* The channels WebSocket over real sockets, on the fake core. */
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

#define KERNEL  "/api/kernels/00000000-0000-4000-8000-000000000001"
#define HOST    "Host: 127.0.0.1\r\n"
#define KEY     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" KEY
#define V1      "Sec-WebSocket-Protocol: v1.kernel.websocket.jupyter.org\r\n"

enum { TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };

struct frame {
    int opcode, fin;
    size_t n;
    uint8_t *p; /* owned; NUL-terminated */
};

/* ---- a small client ------------------------------------------------------- */

static void make_kernel(struct harness *h)
{
    struct reply r;

    assert_int_equal(ask(h, "POST", "/api/kernels", "{}", &r), 201);
    reply_free(&r);
}

static int handshake(struct harness *h, const char *path, const char *headers, struct reply *r)
{
    int fd = dial(h);

    putf(fd, "GET %s HTTP/1.1\r\n" HOST "%s\r\n", path, headers);
    get_reply(fd, r);
    return fd;
}

static int open_ws(struct harness *h, const char *more)
{
    char headers[1024];
    struct reply r;
    int fd;

    snprintf(headers, sizeof headers, "%s%s", UPGRADE, more);
    fd = handshake(h, KERNEL "/channels?token=secret&session_id=s1", headers, &r);
    assert_int_equal(r.status, 101);
    assert_string_equal(reply_header(&r, "Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_string_equal(reply_header(&r, "Connection"), "Upgrade");
    reply_free(&r);
    return fd;
}

/* Builds a masked frame; returns its size. */
static size_t build(uint8_t *out, int first, const void *p, size_t n)
{
    static const uint8_t mask[4] = { 1, 2, 3, 4 };
    size_t at = 0;

    out[at++] = (uint8_t)first;
    if (n < 126) {
        out[at++] = (uint8_t)(0x80 | n);
    } else if (n < 65536) {
        out[at++] = 0x80 | 126;
        out[at++] = (uint8_t)(n >> 8);
        out[at++] = (uint8_t)n;
    } else {
        out[at++] = 0x80 | 127;
        for (int shift = 56; shift >= 0; shift -= 8)
            out[at++] = (uint8_t)((uint64_t)n >> shift);
    }
    memcpy(out + at, mask, 4);
    at += 4;
    for (size_t i = 0; i < n; i++)
        out[at + i] = ((const uint8_t *)p)[i] ^ mask[i & 3];
    return at + n;
}

static void send_frame(int fd, int first, const void *p, size_t n)
{
    uint8_t *bytes = malloc(n + 14);

    put_bytes(fd, bytes, build(bytes, first, p, n));
    free(bytes);
}

static void send_text(int fd, const char *text)
{
    send_frame(fd, 0x80 | TEXT, text, strlen(text));
}

static size_t execute_text(char *out, size_t size, const char *code)
{
    return (size_t)snprintf(out, size,
                            "{\"header\":{\"msg_id\":\"a\",\"msg_type\":\"execute_request\"},"
                            "\"parent_header\":{},\"metadata\":{},\"channel\":\"shell\","
                            "\"content\":{\"code\":\"%s\"}}",
                            code);
}

static void execute(int fd, const char *code)
{
    char text[2048];

    execute_text(text, sizeof text, code);
    send_text(fd, text);
}

/* Opcode 0 in *f: the connection ended. The caller frees f->p. */
static void read_frame(int fd, struct frame *f)
{
    uint8_t head[10];
    uint64_t n;

    *f = (struct frame){ 0 };
    if (!get_bytes(fd, head, 2))
        return;
    assert_false(head[1] & 0x80); /* a server never masks */
    assert_false(head[0] & 0x70);
    n = head[1] & 0x7f;
    if (n == 126) {
        assert_true(get_bytes(fd, head + 2, 2));
        n = (uint64_t)(head[2] << 8 | head[3]);
    } else if (n == 127) {
        assert_true(get_bytes(fd, head + 2, 8));
        n = 0;
        for (int i = 2; i < 10; i++)
            n = n << 8 | head[i];
    }
    f->p = xcalloc(1, n + 1);
    f->n = n;
    if (!get_bytes(fd, f->p, n))
        return;
    f->fin = head[0] >> 7;
    f->opcode = head[0] & 15;
}

static void expect_frame(int fd, int opcode, const char *part)
{
    struct frame f;

    read_frame(fd, &f);
    if (f.opcode != opcode || (part != NULL && memmem(f.p, f.n, part, strlen(part)) == NULL))
        fail_msg("frame %d %.300s, wanted %d %s", f.opcode, (char *)f.p, opcode, part);
    assert_true(f.fin);
    free(f.p);
}

/* The code of the Close that comes next among other frames: 0 = without a code,
 * -1 = the connection ended without a Close. */
static int close_code(int fd)
{
    for (;;) {
        struct frame f;
        int opcode, code;

        read_frame(fd, &f);
        opcode = f.opcode;
        code = f.n >= 2 ? f.p[0] << 8 | f.p[1] : 0;
        free(f.p);
        if (opcode == 0)
            return -1;
        if (opcode == CLOSE)
            return code;
    }
}

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
    fd = handshake(h, KERNEL "/channels", UPGRADE "Origin: http://127.0.0.1\r\n", &r);
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
    fake.create_ms = 100;
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

/* ---- endings -------------------------------------------------------------- */

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
