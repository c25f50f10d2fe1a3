/*
 * protocol_verdict - feeds byte streams to the parsers of protocol/ and prints
 * what they make of them, for comparison with other implementations.
 *
 * On stdin, until its end: kind (1 byte), piece (u32 LE: the stream is fed in
 * pieces of so many bytes; 0: whole), size (u32 LE), that many bytes. Kinds: H a
 * client's HTTP stream, W a client's WebSocket stream behind the handshake, U a
 * text. On stdout one line of JSON each; byte strings in hexadecimal.
 */
#include <endian.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "hex.h"
#include "httpchunk.h"
#include "httpparse.h"
#include "utf8.h"
#include "wsframe.h"

#define STREAM_MAX  (1u << 24)
#define BODY_MAX    (1u << 20)
#define MESSAGE_MAX (1u << 20)

static json_t *hex(struct view v)
{
    char *text = xcalloc(1, 2 * v.n + 1);

    if (v.n > 0)
        hex_encode(v.p, v.n, text);
    json_t *json = json_string(text);
    free(text);
    return json;
}

/* The stream under test, handed out in pieces. */
struct stream {
    struct view rest;
    size_t piece;
};

static struct view stream_piece(const struct stream *s)
{
    size_t n = s->piece > 0 && s->piece < s->rest.n ? s->piece : s->rest.n;

    return (struct view){ s->rest.p, n };
}

static void stream_take(struct stream *s, size_t n)
{
    s->rest.p += n;
    s->rest.n -= n;
}

static void add(json_t *object, const char *key, json_t *value)
{
    check(json_object_set_new(object, key, value) == 0);
}

static json_t *describe(const struct http_head *head)
{
    json_t *request = json_object(), *fields = json_array();

    for (size_t i = 0; i < head->field_count; i++)
        json_array_append_new(
            fields, json_pack("[o, o]", hex(head->fields[i].name), hex(head->fields[i].value)));
    add(request, "method", hex(head->method));
    add(request, "target", hex(head->target));
    add(request, "minor", json_integer(head->minor));
    add(request, "fields", fields);
    add(request, "keep_alive", json_boolean(head->keep_alive));
    add(request, "expect_continue", json_boolean(head->expect_continue));
    add(request, "upgrade", json_boolean(head->upgrade));
    return request;
}

/* 1 when the body is whole, 0 when the stream ended in it, else its status as a negative. */
static int read_chunked(struct stream *s, struct buf *body, struct err *e)
{
    struct httpchunk chunk;
    int rc = 0;

    httpchunk_init(&chunk, BODY_MAX);
    while (rc == 0 && s->rest.n > 0) {
        struct view in = stream_piece(s), data = { NULL, 0 };
        size_t used = 0;

        rc = httpchunk_feed(&chunk, in.p, in.n, &used, &data, e);
        if (rc >= 0)
            check(buf_add_view(body, data) == 0);
        stream_take(s, used);
    }
    return rc < 0 ? -httpchunk_status(&chunk) : rc;
}

static int read_body(struct stream *s, const struct http_head *head, struct buf *body,
                     struct err *e)
{
    if (head->body == HTTP_BODY_CHUNKED)
        return read_chunked(s, body, e);
    if (head->length > BODY_MAX) {
        err_set(e, HC_ELIMIT, "the body is too large");
        return -413;
    }
    size_t n = head->length < s->rest.n ? (size_t)head->length : s->rest.n;

    check(buf_add(body, s->rest.p, n) == 0);
    stream_take(s, n);
    return n == head->length;
}

/* 1 when a request was read, 0 at the end of the stream, a status as a negative. */
static int read_request(struct stream *s, struct httpparse *parser, json_t *requests, int *more,
                        struct err *e)
{
    autobuf struct buf body;
    int rc = 0;

    buf_init(&body, BODY_MAX);
    httpparse_reset(parser);
    while (rc == 0 && s->rest.n > 0) {
        struct view in = stream_piece(s);
        size_t used = 0;

        rc = httpparse_feed(parser, in.p, in.n, &used, e);
        stream_take(s, used);
    }
    if (rc <= 0)
        return rc < 0 ? -httpparse_status(parser) : 0;

    const struct http_head *head = httpparse_head(parser);
    json_t *request = describe(head);

    json_array_append_new(requests, request);
    rc = read_body(s, head, &body, e);
    add(request, "body", hex(buf_view(&body)));
    add(request, "complete", json_boolean(rc == 1));
    *more = head->keep_alive && !head->upgrade;
    return rc;
}

static json_t *http_verdict(struct stream *s)
{
    struct httpparse *parser = httpparse_new(NULL);
    json_t *result = json_object(), *requests = json_array();
    struct err e = { 0 };
    int more = 1, rc = 1;

    while (rc == 1 && more && s->rest.n > 0)
        rc = read_request(s, parser, requests, &more, &e);
    add(result, "requests", requests);
    add(result, "status", json_integer(rc < 0 ? -rc : 0));
    add(result, "partial", json_boolean(rc == 0));
    add(result, "text", json_string(e.msg));
    httpparse_free(parser);
    return result;
}

static json_t *ws_verdict(struct stream *s)
{
    struct wsframe *w = wsframe_new(MESSAGE_MAX);
    json_t *result = json_object(), *messages = json_array();
    struct err e = { 0 };
    int rc = 0, closed = 0;

    while (rc >= 0 && !closed && s->rest.n > 0) {
        struct view in = stream_piece(s), payload;
        size_t used = 0;

        rc = wsframe_feed(w, in.p, in.n, &used, &e);
        stream_take(s, used);
        if (rc != 1)
            continue;
        enum ws_opcode opcode = wsframe_opcode(w);
        payload.p = wsframe_payload(w, &payload.n);
        json_array_append_new(messages, json_pack("[i, o]", (int)opcode, hex(payload)));
        closed = opcode == WS_CLOSE;
        if (closed) {
            struct ws_close close = { 0 };
            int answer;

            add(result, "close_valid",
                json_boolean(ws_close_parse(payload, &close, &answer, &e) == 0));
            add(result, "answer", json_integer(answer));
        }
    }
    add(result, "messages", messages);
    add(result, "failed", json_integer(wsframe_close_code(w)));
    add(result, "busy", json_boolean(wsframe_busy(w)));
    add(result, "text", json_string(e.msg));
    wsframe_free(w);
    return result;
}

static json_t *utf8_verdict(struct stream *s)
{
    json_t *result = json_object();
    struct utf8_state state = { 0 };
    struct view whole = s->rest, text;
    autobuf struct buf out;

    buf_init(&out, 3 * whole.n);
    add(result, "changed", json_boolean(utf8_repair(whole, &out, &text, NULL) == 1));
    add(result, "text", hex(text));
    add(result, "prefix", json_integer((json_int_t)utf8_valid_prefix(whole)));
    for (int good = 1; good && s->rest.n > 0;) {
        struct view piece = stream_piece(s);

        good = utf8_feed(&state, piece);
        stream_take(s, piece.n);
    }
    add(result, "valid", json_boolean(utf8_complete(&state)));
    return result;
}

int main(void)
{
    struct {
        uint8_t kind;
        uint32_t piece, size;
    } __attribute__((packed)) order;

    while (fread(&order, sizeof order, 1, stdin) == 1) {
        size_t n = le32toh(order.size);

        check(n <= STREAM_MAX);
        uint8_t *bytes = xcalloc(1, n + 1);
        if (fread(bytes, 1, n, stdin) != n)
            return 1;
        struct stream s = { { bytes, n }, le32toh(order.piece) };
        json_t *verdict = order.kind == 'H'   ? http_verdict(&s)
                          : order.kind == 'W' ? ws_verdict(&s)
                                              : utf8_verdict(&s);

        json_dumpf(verdict, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(verdict);
        free(bytes);
    }
    return ferror(stdin) ? 1 : 0;
}
