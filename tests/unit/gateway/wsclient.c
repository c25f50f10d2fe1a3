#include "wsclient.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"

void make_kernel(struct harness *h)
{
    struct reply r;

    assert_int_equal(ask(h, "POST", "/api/kernels", "{}", &r), 201);
    reply_free(&r);
}

int handshake(struct harness *h, const char *path, const char *headers, struct reply *r)
{
    int fd = dial(h);

    putf(fd, "GET %s HTTP/1.1\r\n" HOST "%s\r\n", path, headers);
    get_reply(fd, r);
    return fd;
}

int open_ws(struct harness *h, const char *more)
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

size_t build(uint8_t *out, int first, const void *p, size_t n)
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

void send_frame(int fd, int first, const void *p, size_t n)
{
    uint8_t *bytes = malloc(n + 14);

    put_bytes(fd, bytes, build(bytes, first, p, n));
    free(bytes);
}

void send_text(int fd, const char *text)
{
    send_frame(fd, 0x80 | TEXT, text, strlen(text));
}

size_t execute_text(char *out, size_t size, const char *code)
{
    return (size_t)snprintf(out, size,
                            "{\"header\":{\"msg_id\":\"a\",\"msg_type\":\"execute_request\"},"
                            "\"parent_header\":{},\"metadata\":{},\"channel\":\"shell\","
                            "\"content\":{\"code\":\"%s\"}}",
                            code);
}

void execute(int fd, const char *code)
{
    char text[2048];

    execute_text(text, sizeof text, code);
    send_text(fd, text);
}

void read_frame(int fd, struct frame *f)
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

void expect_frame(int fd, int opcode, const char *part)
{
    struct frame f;

    read_frame(fd, &f);
    if (f.opcode != opcode || (part != NULL && memmem(f.p, f.n, part, strlen(part)) == NULL))
        fail_msg("frame %d %.300s, wanted %d %s", f.opcode, (char *)f.p, opcode, part);
    assert_true(f.fin);
    free(f.p);
}

int close_code(int fd)
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
