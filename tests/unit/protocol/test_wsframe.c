/* WebSocket frames: the table of frames, cut at any byte; memory; encoding; close. */
#include "wsframe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "vectors.h"

#define MESSAGE_MAX (1 << 20)

static void judge(struct view all, size_t cut, size_t piece, char verdict[16], struct buf *digest)
{
    struct wsframe *w = wsframe_new(MESSAGE_MAX);
    struct err e = { 0 };
    size_t at = 0, used;
    int count = 0, rc = 0;

    while (at < all.n && rc >= 0) {
        size_t n = at < cut ? cut - at : piece;

        n = n < all.n - at ? n : all.n - at;
        rc = wsframe_feed(w, all.p + at, n, &used, &e);
        assert_true(rc != 0 || used == n);
        at += used;
        if (rc == 1) {
            struct view payload;
            uint8_t opcode = (uint8_t)wsframe_opcode(w);

            payload.p = wsframe_payload(w, &payload.n);
            assert_int_equal(buf_add(digest, &opcode, 1), 0);
            assert_int_equal(buf_add_view(digest, payload), 0);
            count++;
        }
        if (at % 7 == 0)
            wsframe_release(w); /* at any moment, it loses nothing that is under way */
    }
    assert_int_equal(rc < 0, wsframe_close_code(w) != 0);
    if (rc < 0)
        assert_true(wsframe_feed(w, "\x81", 1, &used, NULL) < 0); /* and stays failed */
    snprintf(verdict, 16, rc < 0 ? "%d" : "ok %d", rc < 0 ? wsframe_close_code(w) : count);
    assert_null(wsframe_free(w));
}

static void cut_row(const struct vector *v)
{
    autobuf struct buf whole;
    char verdict[16];

    buf_init(&whole, 1 << 20);
    judge(v->bytes, v->bytes.n, 1, verdict, &whole);
    if (strcmp(verdict, v->verdict) != 0)
        fail_msg("'%s' got '%s' instead of '%s'", v->name, verdict, v->verdict);
    for (size_t cut = 0; cut <= v->bytes.n && cut < 300; cut++) {
        autobuf struct buf digest;

        buf_init(&digest, 1 << 20);
        judge(v->bytes, cut, cut % 2 == 0 ? 1 : v->bytes.n, verdict, &digest);
        if (strcmp(verdict, v->verdict) != 0 || buf_len(&digest) != buf_len(&whole))
            fail_msg("'%s' cut at %zu got '%s'", v->name, cut, verdict);
        if (buf_len(&digest) > 0)
            assert_memory_equal(buf_view(&digest).p, buf_view(&whole).p, buf_len(&digest));
    }
}

static void every_row_cut_at_any_byte_gets_its_verdict(void **state)
{
    (void)state;
    assert_true(vectors_each("ws_frames.tsv", cut_row) > 35);
}

static void unmasking_is_the_same_at_any_alignment_and_cut(void **state)
{
    (void)state;
    static const uint8_t mask[4] = { 0x11, 0x22, 0x44, 0x88 };
    uint8_t in[80], out[80];

    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)(i * 37);
    for (size_t from = 0; from < 9; from++) {
        for (size_t cut = from; cut <= sizeof in; cut++) {
            unsigned phase = ws_unmask(out + from, in + from, cut - from, mask, 0);

            phase = ws_unmask(out + cut, in + cut, sizeof in - cut, mask, phase);
            assert_int_equal(phase, (sizeof in - from) % 4);
            for (size_t i = from; i < sizeof in; i++)
                assert_int_equal(out[i], in[i] ^ mask[(i - from) % 4]);
        }
    }
}

/* Feeds a stream that must give one message with its last byte. */
static void feed_message(struct wsframe *w, struct view in)
{
    size_t used;

    assert_int_equal(wsframe_feed(w, in.p, in.n, &used, NULL), 1);
    assert_int_equal(used, in.n);
}

static void a_payload_can_be_taken_over(void **state)
{
    (void)state;
    struct wsframe *w = wsframe_new(100);
    size_t n;

    feed_message(w, VIEW_STR("\x81\x83\0\0\0\0abc"));
    autofree uint8_t *taken = wsframe_take_payload(w, &n);
    assert_int_equal(n, 3);
    feed_message(w, VIEW_STR("\x82\x83\0\0\0\0xyz"));
    assert_memory_equal(taken, "abc", 3);
    feed_message(w, VIEW_STR("\x82\x80\0\0\0\0"));
    assert_null(wsframe_take_payload(w, &n));
    assert_int_equal(n, 0);
    wsframe_free(w);
}

static void a_control_frame_leaves_the_fragments_alone(void **state)
{
    (void)state;
    struct wsframe *w = wsframe_new(100);
    size_t n, used;

    assert_int_equal(wsframe_feed(w, "\x01\x82\0\0\0\0he", 8, &used, NULL), 0);
    feed_message(w, VIEW_STR("\x89\x84\0\0\0\0ping"));
    assert_int_equal(wsframe_opcode(w), WS_PING);
    assert_memory_equal(wsframe_payload(w, &n), "ping", 4);
    assert_true(wsframe_busy(w));
    wsframe_release(w);
    feed_message(w, VIEW_STR("\x80\x83\0\0\0\0llo"));
    assert_int_equal(wsframe_opcode(w), WS_TEXT);
    assert_memory_equal(wsframe_payload(w, &n), "hello", 5);
    assert_int_equal(n, 5);
    assert_false(wsframe_busy(w));
    wsframe_free(w);
}

static void each_frame_begins_with_its_own_mask_and_payload(void **state)
{
    (void)state;
    static const struct {
        struct view frame;
        const char *payload;
    } rows[] = {
        { VIEW_STR("\x89\x81\x01\x02\x03\x04"
                   "q"),
          "p" },
        { VIEW_STR("\x89\x82\x10\x20\x30\x40"
                   "sS"),
          "cs" },
        { VIEW_STR("\x82\x83\x01\x02\x03\x04"
                   "```"),
          "abc" },
        { VIEW_STR("\x82\x82\x01\x02\x03\x04"
                   "``"),
          "ab" },
        { VIEW_STR("\x8a\x80\x01\x02\x03\x04"), "" },
    };
    struct wsframe *w = wsframe_new(100);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct view payload;

        feed_message(w, rows[i].frame);
        payload.p = wsframe_payload(w, &payload.n);
        assert_true(view_equals(payload, rows[i].payload));
    }
    wsframe_free(w);
}

static void the_limit_counts_all_fragments(void **state)
{
    (void)state;
    struct wsframe *w = wsframe_new(4);
    struct err e = { 0 };
    size_t used;

    feed_message(w, VIEW_STR("\x82\x84\0\0\0\0abcd"));
    assert_int_equal(wsframe_feed(w, "\x02\x83\0\0\0\0abc", 9, &used, &e), 0);
    assert_int_equal(wsframe_feed(w, "\x80\x82\0\0\0\0", 6, &used, &e), -HC_ELIMIT);
    assert_int_equal(wsframe_close_code(w), WS_TOO_BIG);
    wsframe_free(w);
}

static void a_text_that_begins_with_nul_is_a_binary_message(void **state)
{
    (void)state;
    static const struct {
        struct view frame;
        int kind;
    } rows[] = {
        { VIEW_STR("\x81\x82\0\0\0\0{}"), WS_TEXT },
        { VIEW_STR("\x81\x80\0\0\0\0"), WS_TEXT },
        { VIEW_STR("\x81\x83\0\0\0\0\0\xff\xfe"), WS_BINARY },
        { VIEW_STR("\x82\x81\0\0\0\0a"), WS_BINARY },
        { VIEW_STR("\x82\x81\0\0\0\0\xff"), WS_BINARY },
        { VIEW_STR("\x81\x82\0\0\0\0a\xff"), -HC_EPARSE },
        { VIEW_STR("\x81\x82\0\0\0\0\xc3\xa9"), WS_TEXT },
        { VIEW_STR("\x81\x81\0\0\0\0\xc3"), -HC_EPARSE },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wsframe *w = wsframe_new(100);

        feed_message(w, rows[i].frame);
        assert_int_equal(wsframe_kind(w, NULL), rows[i].kind);
        wsframe_free(w);
    }
}

/* An encoded server frame, masked by hand, is decoded as what it was. */
static void encoded_headers_are_decoded(void **state)
{
    (void)state;
    static const uint64_t sizes[] = { 0, 1, 125, 126, 127, 65535, 65536, 70000 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct wsframe *w = wsframe_new(100000);
        uint8_t head[WS_HEADER_MAX];
        size_t n = ws_header_encode(WS_BINARY, 1, sizes[i], head), used, len;
        autofree uint8_t *payload = xcalloc(1, sizes[i] + 1);

        memset(payload, 'x', sizes[i]);
        head[1] |= 0x80;
        assert_int_equal(wsframe_feed(w, head, n, &used, NULL), 0);
        int rc = wsframe_feed(w, "\0\0\0\0", 4, &used, NULL);
        assert_int_equal(rc, sizes[i] == 0);
        if (rc == 0)
            assert_int_equal(wsframe_feed(w, payload, sizes[i], &used, NULL), 1);
        assert_memory_equal(wsframe_payload(w, &len), payload, sizes[i]);
        assert_int_equal(len, sizes[i]);
        wsframe_free(w);
    }
    uint8_t head[WS_HEADER_MAX];
    assert_int_equal(ws_header_encode(WS_TEXT, 0, 5, head), 2);
    assert_memory_equal(head, "\x01\x05", 2);
    assert_int_equal(ws_header_encode(WS_CLOSE, 1, 2, head), 2);
    assert_memory_equal(head, "\x88\x02", 2);
}

static void close_payloads_are_judged(void **state)
{
    (void)state;
    static const struct {
        struct view payload;
        int rc, code, answer;
    } rows[] = {
        { VIEW_STR(""), 0, WS_NO_STATUS, WS_NO_STATUS },
        { VIEW_STR("\x03"), -HC_EPARSE, 0, 1002 },
        { VIEW_STR("\x03\xe8"), 0, 1000, 1000 },
        { VIEW_STR("\x03\xe8"
                   "bye"),
          0, 1000, 1000 },
        { VIEW_STR("\x03\xe8\xff"), -HC_EPARSE, 0, 1007 },
        { VIEW_STR("\x03\xe7"), -HC_EPARSE, 0, 1002 }, /* 999 */
        { VIEW_STR("\x03\xec"), -HC_EPARSE, 0, 1002 }, /* 1004 */
        { VIEW_STR("\x03\xed"), -HC_EPARSE, 0, 1002 }, /* 1005 */
        { VIEW_STR("\x03\xee"), -HC_EPARSE, 0, 1002 }, /* 1006 */
        { VIEW_STR("\x03\xef"), 0, 1007, 1007 },
        { VIEW_STR("\x03\xf6"), 0, 1014, 1014 },
        { VIEW_STR("\x03\xf7"), -HC_EPARSE, 0, 1002 }, /* 1015 */
        { VIEW_STR("\x07\xd0"), -HC_EPARSE, 0, 1002 }, /* 2000 */
        { VIEW_STR("\x0b\xb8"), 0, 3000, 3000 },
        { VIEW_STR("\x13\x87"), 0, 4999, 4999 },
        { VIEW_STR("\x13\x88"), -HC_EPARSE, 0, 1002 }, /* 5000 */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ws_close close = { 0 };
        int answer = 0;

        assert_int_equal(ws_close_parse(rows[i].payload, &close, &answer, NULL), rows[i].rc);
        assert_int_equal(answer, rows[i].answer);
        assert_int_equal(close.code, rows[i].code);
    }
}

static void a_long_close_reason_is_cut_at_a_code_point(void **state)
{
    (void)state;
    uint8_t out[WS_CONTROL_MAX], reason[200];
    struct ws_close close;
    int answer;

    assert_int_equal(ws_close_encode(WS_NO_STATUS, VIEW_STR("x"), out), 0);
    assert_int_equal(ws_close_encode(WS_GOING_AWAY, VIEW_STR("bye"), out), 5);
    assert_memory_equal(out,
                        "\x03\xe9"
                        "bye",
                        5);
    for (size_t i = 0; i < sizeof reason; i += 2)
        memcpy(reason + i, "\xc3\xa9", 2);
    size_t n = ws_close_encode(WS_POLICY, (struct view){ reason, sizeof reason }, out);
    assert_int_equal(n, 124); /* 61 whole characters */
    assert_int_equal(ws_close_parse((struct view){ out, n }, &close, &answer, NULL), 0);
    assert_int_equal(close.reason.n, 122);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_cut_at_any_byte_gets_its_verdict),
        cmocka_unit_test(unmasking_is_the_same_at_any_alignment_and_cut),
        cmocka_unit_test(a_payload_can_be_taken_over),
        cmocka_unit_test(a_control_frame_leaves_the_fragments_alone),
        cmocka_unit_test(each_frame_begins_with_its_own_mask_and_payload),
        cmocka_unit_test(the_limit_counts_all_fragments),
        cmocka_unit_test(a_text_that_begins_with_nul_is_a_binary_message),
        cmocka_unit_test(encoded_headers_are_decoded),
        cmocka_unit_test(close_payloads_are_judged),
        cmocka_unit_test(a_long_close_reason_is_cut_at_a_code_point),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
