/*
 * A client's frames in one piece and in small ones: the same messages, the same
 * failure. First byte: the size of the pieces; second: how payloads are fetched.
 */
#include <stdint.h>
#include <string.h>

#include "err.h"
#include "utf8.h"
#include "wsframe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define MESSAGE_MAX 512

static void use_close(struct view payload)
{
    struct ws_close close;
    uint8_t out[WS_CONTROL_MAX];
    int answer = 0;

    if (ws_close_parse(payload, &close, &answer, NULL) == 0 && close.code != WS_NO_STATUS) {
        size_t n = ws_close_encode(close.code, close.reason, out);

        check(n == payload.n && memcmp(out, payload.p, n) == 0);
    }
    check(answer == WS_NO_STATUS || answer >= 1000);
}

/* What came out, one message behind the other: opcode, length, payload. */
static void take_message(struct wsframe *w, int take, struct buf *log)
{
    enum ws_opcode opcode = wsframe_opcode(w);
    struct view payload;
    uint8_t head[3];

    payload.p = wsframe_payload(w, &payload.n);
    check(payload.p != NULL && payload.n <= MESSAGE_MAX);
    head[0] = (uint8_t)opcode;
    head[1] = (uint8_t)(payload.n >> 8);
    head[2] = (uint8_t)payload.n;
    check(buf_add(log, head, sizeof head) == 0 && buf_add_view(log, payload) == 0);
    if (opcode == WS_CLOSE)
        use_close(payload);
    if (opcode >= WS_CLOSE) {
        check(payload.n <= WS_CONTROL_MAX);
        return;
    }
    int kind = wsframe_kind(w, NULL);
    check(kind == WS_BINARY || opcode == WS_TEXT);
    if (kind == WS_TEXT)
        check(utf8_valid(payload));
    if (take)
        free(wsframe_take_payload(w, &payload.n));
}

static int run(struct view in, size_t piece, int flags, struct buf *log)
{
    struct wsframe *w = wsframe_new(MESSAGE_MAX);
    size_t at = 0;
    int rc = 0;

    while (rc >= 0 && at < in.n) {
        size_t n = piece < in.n - at ? piece : in.n - at, used = 0;
        autofree uint8_t *copy = xcalloc(1, n);

        memcpy(copy, in.p + at, n);
        rc = wsframe_feed(w, copy, n, &used, NULL);
        check(rc < 0 || rc == 1 || used == n);
        at += used;
        if (rc == 1)
            take_message(w, flags & 1, log);
        if (flags & 2)
            wsframe_release(w);
    }
    check((rc < 0) == (wsframe_close_code(w) != 0));
    rc = rc < 0 ? wsframe_close_code(w) : wsframe_busy(w);
    wsframe_free(w);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 3)
        return 0;
    struct view in = { data + 2, n - 2 };
    autobuf struct buf a;
    autobuf struct buf b;

    buf_init(&a, 4 * n);
    buf_init(&b, 4 * n);
    check(run(in, in.n, 0, &a) == run(in, 1 + data[0] % 32, data[1], &b));
    check(buf_len(&a) == buf_len(&b));
    check(buf_len(&a) == 0 || memcmp(buf_view(&a).p, buf_view(&b).p, buf_len(&a)) == 0);
    return 0;
}
