/* Both WebSocket framings of Jupyter: vectors, and what goes to clients. */
#include "wschannel.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "wschannel_samples.h"

static void the_v1_vector_comes_out_of_its_message(void **state)
{
    (void)state;
    struct wschannel_frame f;
    autobuf struct buf out;
    struct jmsg m = {
        .header = VIEW_STR("{\"a\":1}"),
        .parent_header = VIEW_STR("{}"),
        .metadata = VIEW_STR("{}"),
        .content = VIEW_STR("{}"),
        .buffers = two_buffers,
        .buffer_count = 1,
    };

    wschannel_frame_init(&f);
    buf_init(&out, 1000);
    struct view v = encode(&f, WSCHANNEL_V1, JMSG_IOPUB, &m, &out);
    assert_int_equal(f.binary, 1);
    assert_int_equal(v.n, V1_SIZE);
    assert_memory_equal(v.p, v1_vector, V1_SIZE);
    wschannel_frame_free(&f);
}

static void the_v1_vector_decodes_to_its_message(void **state)
{
    (void)state;
    struct wschannel_in in = { 0 };
    uint8_t *copy;

    assert_int_equal(decode_copy(&in, WSCHANNEL_V1, 0, v1_vector, V1_SIZE, &copy, NULL), 0);
    assert_int_equal(in.channel, JMSG_IOPUB);
    assert_true(view_equals(in.msg.header, "{\"a\":1}"));
    assert_true(view_equals(in.msg.content, "{}"));
    assert_int_equal(in.msg.buffer_count, 1);
    assert_int_equal(in.msg.buffers[0].n, 2);
    assert_memory_equal(in.msg.buffers[0].p, "\xff\0", 2);
    assert_int_equal(in.msg.signature.n, 0);
    assert_int_equal(in.msg.routing_count, 0);
    wschannel_in_free(&in);
    free(copy);
}

static void the_legacy_vector_decodes_to_its_message(void **state)
{
    (void)state;
    /* Binary, and as the text frame that JupyterLab's proxy makes of it (on both kinds of socket). */
    static const struct {
        enum wschannel_framing framing;
        int text;
    } ways[] = { { WSCHANNEL_LEGACY, 0 }, { WSCHANNEL_LEGACY, 1 }, { WSCHANNEL_V1, 1 } };

    for (size_t i = 0; i < 3; i++) {
        struct wschannel_in in = { 0 };
        uint8_t *copy;

        assert_int_equal(decode_copy(&in, ways[i].framing, ways[i].text, legacy_vector, LEGACY_SIZE,
                                     &copy, NULL),
                         0);
        assert_int_equal(in.channel, JMSG_SHELL);
        for (int part = 0; part < JMSG_PARTS; part++)
            assert_true(view_equals(in.msg.parts[part], "{}"));
        assert_int_equal(in.msg.buffer_count, 2);
        assert_int_equal(in.msg.buffers[0].n, 2);
        assert_memory_equal(in.msg.buffers[0].p, "\xff\0", 2);
        assert_true(view_equals(in.msg.buffers[1], "abc"));
        wschannel_in_free(&in);
        free(copy);
    }
    assert_true(wschannel_is_binary_text((struct view){ (const uint8_t *)legacy_vector, 28 }));
    assert_false(wschannel_is_binary_text(VIEW_STR("{}")));
    assert_false(wschannel_is_binary_text((struct view){ NULL, 0 }));
}

static void a_legacy_text_is_spliced_from_the_parts(void **state)
{
    (void)state;
    struct wschannel_frame f;
    autobuf struct buf out;
    struct jmsg m = plain(FULL);

    wschannel_frame_init(&f);
    buf_init(&out, 10000);
    struct view v = encode(&f, WSCHANNEL_LEGACY, JMSG_IOPUB, &m, &out);
    assert_int_equal(f.binary, 0);
    assert_true(view_equals(v, "{\"header\":" FULL ",\"parent_header\":{ },\"metadata\":"
                               "{\"m\":NaN},\"content\":{\"c\":\"\\ud800\"},\"channel\":\"iopub\","
                               "\"msg_id\":\"i\\u0041\",\"msg_type\":\"stream\",\"buffers\":[]}"));
    wschannel_frame_free(&f);
}

static uint32_t be32_at(struct view v, size_t i)
{
    uint32_t n;

    memcpy(&n, v.p + 4 * i, 4);
    return be32toh(n);
}

static void a_legacy_message_with_buffers_is_binary(void **state)
{
    (void)state;
    struct wschannel_frame f;
    autobuf struct buf out;
    struct jmsg m = plain(FULL);
    static const char json[] = "{\"header\":" FULL ",\"parent_header\":{ },\"metadata\":{\"m\":NaN}"
                               ",\"content\":{\"c\":\"\\ud800\"},\"channel\":\"shell\","
                               "\"msg_id\":\"i\\u0041\",\"msg_type\":\"stream\"}";
    const size_t n = sizeof json - 1;

    m.buffers = two_buffers;
    m.buffer_count = 3;
    wschannel_frame_init(&f);
    buf_init(&out, 10000);
    struct view v = encode(&f, WSCHANNEL_LEGACY, JMSG_SHELL, &m, &out);
    assert_int_equal(f.binary, 1);
    assert_int_equal(v.n, 20 + n + 5);
    assert_int_equal(be32_at(v, 0), 4);
    assert_int_equal(be32_at(v, 1), 20);
    assert_int_equal(be32_at(v, 2), 20 + n);
    assert_int_equal(be32_at(v, 3), 20 + n + 2);
    assert_int_equal(be32_at(v, 4), 20 + n + 2);
    assert_memory_equal(v.p + 20, json, n);
    assert_memory_equal(v.p + 20 + n, "\xff\0abc", 5);
    wschannel_frame_free(&f);
}

static void absent_header_fields_of_old_kernels_are_filled_in(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } table[] = {
        { "{}", "{\"date\":\"" DATE "\",\"version\":\"5.0\",\"username\":\"kernel\"}" },
        { "{ \n}", "{ \n\"date\":\"" DATE "\",\"version\":\"5.0\",\"username\":\"kernel\"}" },
        { " {\"msg_id\":1 } ",
          " {\"msg_id\":1 ,\"date\":\"" DATE "\",\"version\":\"5.0\",\"username\":\"kernel\"}" },
        { "{\"date\":0,\"username\":null}",
          "{\"date\":0,\"username\":null,\"version\":\"5.0\",\"username\":\"kernel\"}" },
        { "{\"date\":\"d\",\"version\":\"\",\"username\":\"}\"}",
          "{\"date\":\"d\",\"version\":\"\",\"username\":\"}\"}" },
    };
    struct wschannel_frame f;
    autobuf struct buf out;

    wschannel_frame_init(&f);
    buf_init(&out, 10000);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct jmsg m = plain(table[i].in);
        struct view v = encode(&f, WSCHANNEL_LEGACY, JMSG_IOPUB, &m, &out);

        assert_memory_equal(v.p, "{\"header\":", 10);
        assert_memory_equal(v.p + 10, table[i].out, strlen(table[i].out));
        assert_memory_equal(v.p + 10 + strlen(table[i].out), ",\"parent", 8);
        v = encode(&f, WSCHANNEL_V1, JMSG_IOPUB, &m, &out); /* v1 passes what there is */
        assert_memory_equal(v.p + 56 + 5, table[i].in, strlen(table[i].in));
        assert_memory_equal(v.p + 56 + 5 + strlen(table[i].in), "{ }", 3);
    }
    struct jmsg m = plain("{}");
    assert_int_equal(wschannel_encode(&f, WSCHANNEL_LEGACY, JMSG_IOPUB, &m, NULL, NULL), 0);
    assert_memory_equal(f.segments[0].p, "{\"header\":{\"version\":\"5.0\",", 27);
    wschannel_frame_free(&f);
}

static void a_message_without_id_or_type_says_null(void **state)
{
    (void)state;
    struct wschannel_frame f;
    autobuf struct buf out;
    struct jmsg m = plain("{\"date\":1,\"version\":1,\"username\":1}");
    static const char end[] = ",\"channel\":\"stdin\",\"msg_id\":null,\"msg_type\":null,"
                              "\"buffers\":[]}";

    wschannel_frame_init(&f);
    buf_init(&out, 10000);
    struct view v = encode(&f, WSCHANNEL_LEGACY, JMSG_STDIN, &m, &out);
    assert_true(v.n > sizeof end);
    assert_memory_equal(v.p + v.n - (sizeof end - 1), end, sizeof end - 1);
    wschannel_frame_free(&f);
}

static void a_legacy_header_that_is_no_object_is_refused(void **state)
{
    (void)state;
    static const char *const table[] = { "[]", "null", "{", "", "\"{}\"" };
    struct wschannel_frame f;
    struct err e;

    wschannel_frame_init(&f);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct jmsg m = plain(table[i]);
        int rc = wschannel_encode(&f, WSCHANNEL_LEGACY, JMSG_IOPUB, &m, DATE, &e);

        if (table[i][0] == '\0') { /* an empty part stands for {} */
            assert_int_equal(rc, 0);
            continue;
        }
        assert_int_equal(rc, -HC_EPARSE);
        assert_memory_equal(e.msg, "header: ", 8);
        assert_int_equal(f.count, 0);
        assert_int_equal(f.total, 0);
    }
    wschannel_frame_free(&f);
}

static void invalid_utf8_is_repaired_in_the_parts_concerned(void **state)
{
    (void)state;
    struct wschannel_frame f;
    autobuf struct buf out;
    struct jmsg m = plain("{\"msg_id\":\"\xff\",\"msg_type\":\"t\",\"date\":1,\"version\":1,"
                          "\"username\":1}");

    m.content = VIEW_STR("{\"text\":\"caf\xe9\xff\"}");
    m.buffers = two_buffers;
    wschannel_frame_init(&f);
    buf_init(&out, 10000);
    for (int round = 0; round < 2; round++) { /* the frame is used again */
        m.buffer_count = 0;
        struct view v = encode(&f, WSCHANNEL_LEGACY, JMSG_IOPUB, &m, &out);
        assert_true(view_equals(
            v, "{\"header\":{\"msg_id\":\"\xef\xbf\xbd\",\"msg_type\":\"t\",\"date\":1,\"version\":"
               "1,\"username\":1},\"parent_header\":{ },\"metadata\":{\"m\":NaN},\"content\":"
               "{\"text\":\"caf\xef\xbf\xbd\xef\xbf\xbd\"},\"channel\":\"iopub\",\"msg_id\":"
               "\"\xef\xbf\xbd\",\"msg_type\":\"t\",\"buffers\":[]}"));
        m.buffer_count = 1; /* buffers are bytes: never touched */
        v = encode(&f, WSCHANNEL_V1, JMSG_IOPUB, &m, &out);
        static const char end[] = "{ }{\"m\":NaN}{\"text\":\"caf\xef\xbf\xbd\xef\xbf\xbd\"}\xff";
        assert_memory_equal(v.p + v.n - sizeof end, end, sizeof end);
        assert_int_equal(buf_len(&f.repaired[3]), m.content.n + 4); /* nothing piles up */
    }
    wschannel_frame_free(&f);
}

static void big_parts_are_borrowed_and_small_ones_collected(void **state)
{
    (void)state;
    enum { BIG = 1 << 20 };
    struct wschannel_frame f;
    struct jmsg m = plain(FULL);
    char *big = malloc(BIG);

    assert_non_null(big);
    memset(big, ' ', BIG);
    big[0] = '{';
    big[BIG - 1] = '}';
    m.content = (struct view){ (const uint8_t *)big, BIG };
    wschannel_frame_init(&f);
    assert_int_equal(wschannel_encode(&f, WSCHANNEL_LEGACY, JMSG_IOPUB, &m, DATE, NULL), 0);
    assert_int_equal(f.count, 3);
    assert_ptr_equal(f.segments[1].p, big);
    assert_int_equal(f.segments[1].n, BIG);
    assert_int_equal(f.segments[0].n + BIG + f.segments[2].n, f.total);
    assert_int_equal(wschannel_encode(&f, WSCHANNEL_V1, JMSG_IOPUB, &m, DATE, NULL), 0);
    assert_int_equal(f.count, 2);
    assert_ptr_equal(f.segments[1].p, big);
    autobuf struct buf small;
    buf_init(&small, f.total - 1);
    assert_int_equal(wschannel_flatten(&f, &small), -EMSGSIZE);
    assert_int_equal(buf_len(&small), 0);
    wschannel_frame_free(&f);
    free(big);
}

/* The memory of a frame has no maximum; the test gives it one to see each failure. */
static void a_frame_without_memory_is_empty_and_says_so(void **state)
{
    (void)state;
    struct jmsg m = plain("{\"msg_id\":\"\xff\"}");

    m.content = VIEW_STR("{\"text\":\"caf\xe9\xff\"}");
    m.buffers = two_buffers;
    for (m.buffer_count = 0; m.buffer_count <= 3; m.buffer_count += 3)
        for (int framing = WSCHANNEL_LEGACY; framing <= WSCHANNEL_V1; framing++) {
            size_t max = 0;
            int rc = -1;

            for (; rc < 0; max++) {
                struct wschannel_frame f;
                struct err e = { 0 };

                assert_true(max < 1000);
                wschannel_frame_init(&f);
                f.own.max = max;
                f.repaired[3].max = max;
                rc =
                    wschannel_encode(&f, (enum wschannel_framing)framing, JMSG_IOPUB, &m, DATE, &e);
                assert_true(rc == 0 || (rc == -EMSGSIZE && e.code == EMSGSIZE));
                assert_true(rc == 0 || (f.count == 0 && f.total == 0));
                assert_true(rc < 0 || f.total == max);
                wschannel_frame_free(&f);
            }
        }
}

static void a_big_repaired_part_is_not_kept_for_ever(void **state)
{
    (void)state;
    enum { BIG = 1 << 17 };
    struct wschannel_frame f;
    struct jmsg m = plain(FULL);
    char *big = malloc(BIG);

    assert_non_null(big);
    memset(big, 'a', BIG);
    memcpy(big, "{\"t\":\"\xff", 7);
    memcpy(big + BIG - 2, "\"}", 2);
    wschannel_frame_init(&f);
    m.content = (struct view){ (const uint8_t *)big, BIG };
    assert_int_equal(wschannel_encode(&f, WSCHANNEL_V1, JMSG_IOPUB, &m, DATE, NULL), 0);
    assert_int_equal(f.segments[1].n, BIG + 2);
    assert_true(f.repaired[3].size >= BIG);
    m.content = VIEW_STR("{}");
    assert_int_equal(wschannel_encode(&f, WSCHANNEL_V1, JMSG_IOPUB, &m, DATE, NULL), 0);
    assert_int_equal(f.repaired[3].size, 0);
    wschannel_frame_free(&f);
    free(big);
}

static void offsets_beyond_32_bits_are_refused_in_legacy(void **state)
{
    (void)state;
    struct wschannel_frame f;
    struct jmsg m = plain(FULL);
    /* Borrowed, never read: only the sizes matter. */
    const struct view huge[] = { { (const uint8_t *)"", UINT32_MAX }, { (const uint8_t *)"", 1 } };
    struct err e;

    m.buffers = huge;
    wschannel_frame_init(&f);
    for (m.buffer_count = 1; m.buffer_count <= 2; m.buffer_count++) {
        assert_int_equal(wschannel_encode(&f, WSCHANNEL_LEGACY, JMSG_IOPUB, &m, DATE, &e),
                         -EMSGSIZE);
        assert_int_equal(f.count, 0);
        m.buffers = huge;
        assert_int_equal(wschannel_encode(&f, WSCHANNEL_V1, JMSG_IOPUB, &m, DATE, &e), 0);
    }
    wschannel_frame_free(&f);
}

/* 1000 buffers in both framings, each with its own bytes. */
static void many_buffers_come_back_as_they_were(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static uint8_t bytes[COUNT * 3];
    static struct view buffers[COUNT];
    struct wschannel_frame f;
    struct wschannel_in in = { 0 };
    autobuf struct buf out;
    struct jmsg m = plain(FULL);

    for (unsigned i = 0; i < COUNT; i++) {
        memset(bytes + 3 * i, (int)i, 3);
        buffers[i] = (struct view){ bytes + 3 * i, i % 4 };
        if (i == COUNT - 1)
            buffers[i].n = 3;
    }
    m.buffers = buffers;
    m.buffer_count = COUNT;
    wschannel_frame_init(&f);
    buf_init(&out, 100000);
    for (int framing = WSCHANNEL_LEGACY; framing <= WSCHANNEL_V1; framing++)
        for (int channel = 0; channel < JMSG_CHANNELS; channel++) {
            struct view v =
                encode(&f, (enum wschannel_framing)framing, (enum jmsg_channel)channel, &m, &out);

            assert_int_equal(
                wschannel_decode(&in, (enum wschannel_framing)framing, 0, v, limits, NULL), 0);
            assert_int_equal(in.channel, channel);
            assert_int_equal(in.msg.buffer_count, COUNT);
            for (unsigned i = 0; i < COUNT; i++) {
                assert_int_equal(in.msg.buffers[i].n, buffers[i].n);
                assert_memory_equal(in.msg.buffers[i].p, buffers[i].p, buffers[i].n);
            }
            for (int part = 0; part < JMSG_PARTS; part++) {
                assert_int_equal(in.msg.parts[part].n, m.parts[part].n);
                assert_memory_equal(in.msg.parts[part].p, m.parts[part].p, m.parts[part].n);
            }
        }
    wschannel_in_free(&in);
    wschannel_frame_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_v1_vector_comes_out_of_its_message),
        cmocka_unit_test(the_v1_vector_decodes_to_its_message),
        cmocka_unit_test(the_legacy_vector_decodes_to_its_message),
        cmocka_unit_test(a_legacy_text_is_spliced_from_the_parts),
        cmocka_unit_test(a_legacy_message_with_buffers_is_binary),
        cmocka_unit_test(absent_header_fields_of_old_kernels_are_filled_in),
        cmocka_unit_test(a_message_without_id_or_type_says_null),
        cmocka_unit_test(a_legacy_header_that_is_no_object_is_refused),
        cmocka_unit_test(invalid_utf8_is_repaired_in_the_parts_concerned),
        cmocka_unit_test(big_parts_are_borrowed_and_small_ones_collected),
        cmocka_unit_test(a_frame_without_memory_is_empty_and_says_so),
        cmocka_unit_test(a_big_repaired_part_is_not_kept_for_ever),
        cmocka_unit_test(offsets_beyond_32_bits_are_refused_in_legacy),
        cmocka_unit_test(many_buffers_come_back_as_they_were),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
