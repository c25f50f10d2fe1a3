/* Both WebSocket framings of Jupyter, in both directions. */
#include "wschannel.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"

static const struct jmsg_limits *const limits = &jmsg_limits_default;
#define DATE "2025-01-02T03:04:05.000006Z"

/* The vectors of the wire document. */
static const char legacy_vector[] = "\0\0\0\x03\0\0\0\x10\0\0\0\x17\0\0\0\x19{\"x\":1}\xff\0abc";
static const char v1_vector[] = "\x07\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x45\0\0\0\0\0\0\0"
                                "\x4c\0\0\0\0\0\0\0\x4e\0\0\0\0\0\0\0\x50\0\0\0\0\0\0\0"
                                "\x52\0\0\0\0\0\0\0\x54\0\0\0\0\0\0\0iopub{\"a\":1}{}{}{}\xff\0";
enum { V1_SIZE = sizeof v1_vector - 1, LEGACY_SIZE = sizeof legacy_vector - 1 };

static const struct view two_buffers[] = { { (const uint8_t *)"\xff\0", 2 },
                                           { (const uint8_t *)"", 0 },
                                           { (const uint8_t *)"abc", 3 } };

static struct jmsg plain(const char *header)
{
    return (struct jmsg){
        .header = view_cstr(header),
        .parent_header = VIEW_STR("{ }"),
        .metadata = VIEW_STR("{\"m\":NaN}"),
        .content = VIEW_STR("{\"c\":\"\\ud800\"}"),
    };
}

#define FULL                                                                             \
    "{\"msg_id\":\"i\\u0041\",\"msg_type\":\"stream\",\"date\":1.5,\"version\":\"5.3\"," \
    "\"username\":\"\"}"

/* Encodes and flattens; the segments have to add up. */
static struct view encode(struct wschannel_frame *f, enum wschannel_framing framing,
                          enum jmsg_channel channel, const struct jmsg *m, struct buf *out)
{
    struct err e = { 0 };

    assert_int_equal(wschannel_encode(f, framing, channel, m, DATE, &e), 0);
    buf_clear(out);
    assert_int_equal(wschannel_flatten(f, out), 0);
    assert_int_equal(buf_len(out), f->total);
    return buf_view(out);
}

/* Decodes a copy of exactly the payload's size, so that ASan sees reads beyond. */
static int decode_copy(struct wschannel_in *in, enum wschannel_framing framing, int text,
                       const void *p, size_t n, uint8_t **copy, struct err *e)
{
    *copy = malloc(n > 0 ? n : 1);
    assert_non_null(*copy);
    if (n > 0)
        memcpy(*copy, p, n);
    return wschannel_decode(in, framing, text, (struct view){ *copy, n }, limits, e);
}

/* The verdict only. */
static int verdict(enum wschannel_framing framing, int text, const void *p, size_t n, struct err *e)
{
    struct wschannel_in in = { 0 };
    volatile unsigned seen = 0;
    struct err own = { 0 };
    uint8_t *copy;
    int rc = decode_copy(&in, framing, text, p, n, &copy, &own);

    if (rc == 0) /* every byte that is handed on can be read */
        for (unsigned i = 0; i < in.msg.buffer_count; i++)
            for (size_t j = 0; j < in.msg.buffers[i].n; j++)
                seen = seen + in.msg.buffers[i].p[j];
    else
        assert_true(own.code == -rc && own.msg[0] != '\0');
    wschannel_in_free(&in);
    free(copy);
    if (e != NULL)
        *e = own;
    return rc;
}

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

/* --- what clients send ----------------------------------------------------- */

static void lenient_texts_of_real_clients_pass(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum jmsg_channel channel;
        const char *content;
    } table[] = {
        { "{}", JMSG_SHELL, "{}" },
        { "{\"header\":{\"session\":\"\",\"msg_id\":\"1\",\"date\":1.7e9},\"content\":{\"a\": 1}}",
          JMSG_SHELL, "{\"a\": 1}" },
        { "{\"channel\":\"control\",\"buffers\":{}}", JMSG_CONTROL, "{}" },
        { "{\"channel\":null,\"buffers\":null,\"content\":null}", JMSG_SHELL, "{}" },
        { " {\"channel\":\"std\\u0069n\",\"buffers\":[ ]} ", JMSG_STDIN, "{}" },
        { "{\"channel\":\"iopub\",\"content\":{\"x\":NaN,\"y\":\"\\ud800\"},\"foo\":[[[1]]]}",
          JMSG_IOPUB, "{\"x\":NaN,\"y\":\"\\ud800\"}" },
        { "{\"content\":{\"a\":1},\"content\":{ \"n\":123456789012345678901234567890 }}",
          JMSG_SHELL, "{ \"n\":123456789012345678901234567890 }" },
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int framing = WSCHANNEL_LEGACY; framing <= WSCHANNEL_V1; framing++) {
            struct wschannel_in in = { 0 };
            uint8_t *copy;

            assert_int_equal(decode_copy(&in, (enum wschannel_framing)framing, 1, table[i].text,
                                         strlen(table[i].text), &copy, NULL),
                             0);
            assert_int_equal(in.channel, table[i].channel);
            assert_true(view_equals(in.msg.content, table[i].content));
            assert_true(view_equals(in.msg.metadata, "{}"));
            assert_int_equal(in.msg.buffer_count, 0);
            wschannel_in_free(&in);
            free(copy);
        }
}

static void bad_texts_cost_one_error_each(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } table[] = {
        { "", "JSON byte 0: the text ends where a value should be" },
        { "[]", "JSON is an array, not an object" },
        { "hello", "JSON byte 0: expected a value" },
        { "{\"channel\":\"foo\"}", "unknown channel 'foo'" },
        { "{\"channel\":\"\"}", "unknown channel ''" },
        { "{\"channel\":\"hb\"}", "unknown channel 'hb'" },
        { "{\"channel\":\"shellshellshellshellshellshellshellshell\"}",
          "unknown channel 'shellshellshellshellshellshellsh'" },
        { "{\"channel\":1}", "channel is an integer, not a string" },
        { "{\"header\":[]}", "header is an array, not an object" },
        { "{\"parent_header\":\"\"}", "parent_header is a string, not an object" },
        { "{\"metadata\":false}", "metadata is false, not an object" },
        { "{\"content\":1.5}", "content is a number, not an object" },
        { "{\"buffers\":[\"x\"]}", "buffers in a JSON text must be empty" },
        { "{\"buffers\":\"\"}", "buffers in a JSON text must be empty" },
        { "{\"buffers\":{\"a\":1}}", "buffers in a JSON text must be empty" },
    };
    struct err e;

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(verdict(WSCHANNEL_LEGACY, 1, table[i].text, strlen(table[i].text), &e),
                         -HC_EPARSE);
        assert_string_equal(e.msg, table[i].error);
    }
}

/* A v1 payload with these offsets; the parts are "shell", {}, {}, {}, {}. */
static size_t build_v1(uint8_t *out, uint64_t n, const uint64_t *offsets, size_t count)
{
    static const char parts[] = "shell{}{}{}{}";
    uint64_t le = htole64(n);

    memcpy(out, &le, 8);
    for (size_t i = 0; i < count; i++) {
        le = htole64(offsets[i]);
        memcpy(out + 8 * (i + 1), &le, 8);
    }
    memcpy(out + 8 * (count + 1), parts, sizeof parts - 1);
    return 8 * (count + 1) + sizeof parts - 1;
}

static void wrong_v1_tables_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t n, offsets[6];
        int ok;
    } table[] = {
        { 6, { 56, 61, 63, 65, 67, 69 }, 1 },
        { 0, { 56, 61, 63, 65, 67, 69 }, 0 },
        { 1, { 56, 61, 63, 65, 67, 69 }, 0 },
        { 5, { 56, 61, 63, 65, 67, 69 }, 0 },
        { 7, { 56, 61, 63, 65, 67, 69 }, 0 },
        { 8, { 56, 61, 63, 65, 67, 69 }, 0 },
        { 9, { 56, 61, 63, 65, 67, 69 }, 0 },
        { UINT64_C(1) << 31, { 56, 61, 63, 65, 67, 69 }, 0 },
        { UINT64_C(1) << 61, { 56, 61, 63, 65, 67, 69 }, 0 },
        { UINT64_C(1) << 63, { 56, 61, 63, 65, 67, 69 }, 0 },
        { (UINT64_C(1) << 61) + 6, { 56, 61, 63, 65, 67, 69 }, 0 }, /* times 8 is 48 */
        { UINT64_MAX, { 56, 61, 63, 65, 67, 69 }, 0 },
        { 6, { 55, 61, 63, 65, 67, 69 }, 0 }, /* inside the table */
        { 6, { 0, 61, 63, 65, 67, 69 }, 0 },
        { 6, { 56, 61, 60, 65, 67, 69 }, 0 }, /* descending */
        { 6, { 56, 61, 63, 65, 67, 66 }, 0 },
        { 6, { 61, 56, 63, 65, 67, 69 }, 0 }, /* overlapping */
        { 6, { 56, 61, 63, 65, 67, 70 }, 0 }, /* behind the end */
        { 6, { 56, 61, 63, 65, 67, UINT64_C(1) << 63 }, 0 },
        { 6, { 56, 61, 63, 65, UINT64_MAX, UINT64_MAX }, 0 },
        { 6, { 56, UINT64_C(1) << 32 | 61, 63, 65, 67, 69 }, 0 },
        { 6, { 56, 60, 63, 65, 67, 69 }, 0 }, /* channel "shel" */
        { 6, { 56, 56, 63, 65, 67, 69 }, 0 }, /* empty channel */
        { 6, { 56, 61, 61, 63, 65, 67 }, 1 }, /* an empty header stands for {} */
        { 6, { 56, 61, 63, 65, 67, 68 }, 0 }, /* content "{" */
        { 6, { 56, 61, 65, 65, 67, 69 }, 0 }, /* header "{}{}" */
    };
    uint8_t payload[256];

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        size_t n = build_v1(payload, table[i].n, table[i].offsets, 6);

        assert_int_equal(verdict(WSCHANNEL_V1, 0, payload, n, NULL), table[i].ok ? 0 : -HC_EPARSE);
    }
}

static void bad_v1_parts_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *part, *error;
    } table[] = {
        { "[]", "content is an array, not an object" },
        { "{", "content: JSON byte 1: expected a key in quotes" },
        { "x", "content: JSON byte 0: expected a value" },
        { "\xff", "content: JSON byte 0: expected a value" },
    };
    static const uint64_t offsets[] = { 56, 61, 63, 65, 67, 0 };
    uint8_t payload[256];
    struct err e;

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        size_t part = strlen(table[i].part);
        uint64_t end = htole64(67 + part);

        build_v1(payload, 6, offsets, 6);
        memcpy(payload + 48, &end, 8);
        memcpy(payload + 67, table[i].part, part);
        assert_int_equal(verdict(WSCHANNEL_V1, 0, payload, 67 + part, &e), -HC_EPARSE);
        assert_string_equal(e.msg, table[i].error);
    }
    memcpy(payload + 56, "sh\0ll", 5);
    assert_int_equal(verdict(WSCHANNEL_V1, 0, payload, 68, &e), -HC_EPARSE);
    assert_memory_equal(e.msg, "unknown channel", 15);
}

/* A legacy binary payload with these offsets and the JSON text {}. */
static void wrong_legacy_tables_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t n, offsets[3];
        int ok;
    } table[] = {
        { 3, { 16, 18, 19 }, 1 },
        { 3, { 16, 18, 18 }, 1 }, /* an empty buffer */
        { 3, { 16, 18, 20 }, 1 }, /* an empty last one */
        { 1, { 16, 0, 0 }, 0 },   /* "{}" and two bytes more is no JSON */
        { 0, { 16, 18, 19 }, 0 },
        { 4, { 20, 20, 20 }, 0 }, /* the fourth offset is made of the text */
        { 5, { 16, 18, 19 }, 0 },
        { 1u << 30, { 16, 18, 19 }, 0 },
        { (1u << 30) + 3, { 16, 18, 19 }, 0 }, /* times 4 is 12 */
        { 1u << 31, { 16, 18, 19 }, 0 },
        { UINT32_MAX, { 16, 18, 19 }, 0 },
        { 3, { 15, 18, 19 }, 0 },
        { 3, { 0, 18, 19 }, 0 },
        { 3, { 16, 19, 18 }, 0 },
        { 3, { 18, 16, 19 }, 0 },
        { 3, { 16, 18, 21 }, 0 },
        { 3, { 16, 18, 1u << 31 }, 0 },
        { 3, { 16, 17, 19 }, 0 }, /* text "{" */
        { 3, { 18, 18, 19 }, 0 }, /* empty text */
        { 3, { UINT32_MAX, UINT32_MAX, UINT32_MAX }, 0 },
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        uint8_t payload[20];
        uint32_t be = htobe32(table[i].n);

        memcpy(payload, &be, 4);
        for (int j = 0; j < 3; j++) {
            be = htobe32(table[i].offsets[j]);
            memcpy(payload + 4 * (j + 1), &be, 4);
        }
        memcpy(payload + 16, "{}xy", 4);
        assert_int_equal(verdict(WSCHANNEL_LEGACY, 0, payload, sizeof payload, NULL),
                         table[i].ok ? 0 : -HC_EPARSE);
    }
    /* The last byte of the table, a blank, would do as part of the text. */
    static const char table_as_text[] = "\0\0\0\x02\0\0\0\x0b\0\0\0 {}                  z";
    assert_int_equal(verdict(WSCHANNEL_LEGACY, 0, table_as_text, 33, NULL), -HC_EPARSE);
    static const char one[] = "\0\0\0\x01\0\0\0\x08{}"; /* our encoder never makes it */
    assert_int_equal(verdict(WSCHANNEL_LEGACY, 0, one, 10, NULL), 0);
}

static void the_text_in_a_legacy_binary_message_may_name_buffers(void **state)
{
    (void)state;
    static const char doc[] = "\0\0\0\x02\0\0\0\x0c\0\0\0\x1b{\"buffers\":[1]}z";
    struct wschannel_in in = { 0 };
    uint8_t *copy;

    assert_int_equal(decode_copy(&in, WSCHANNEL_LEGACY, 0, doc, sizeof doc - 1, &copy, NULL), 0);
    assert_int_equal(in.msg.buffer_count, 1);
    assert_true(view_equals(in.msg.buffers[0], "z"));
    wschannel_in_free(&in);
    free(copy);
}

static void a_payload_cut_at_any_byte_is_refused_without_reading_on(void **state)
{
    (void)state;
    for (size_t n = 0; n < V1_SIZE; n++)
        assert_int_equal(verdict(WSCHANNEL_V1, 0, v1_vector, n, NULL), -HC_EPARSE);
    for (size_t n = 0; n < 25; n++) /* later the last buffer is only shorter */
        assert_int_equal(verdict(WSCHANNEL_LEGACY, 0, legacy_vector, n, NULL), -HC_EPARSE);
    for (size_t n = 25; n <= LEGACY_SIZE; n++)
        assert_int_equal(verdict(WSCHANNEL_LEGACY, 0, legacy_vector, n, NULL), 0);
}

static void a_change_of_any_byte_is_survived(void **state)
{
    (void)state;
    for (size_t i = 0; i < V1_SIZE; i++)
        for (unsigned x = 1; x < 256; x++) {
            uint8_t bad[V1_SIZE];

            memcpy(bad, v1_vector, V1_SIZE);
            bad[i] ^= (uint8_t)x;
            int rc = verdict(WSCHANNEL_V1, 0, bad, V1_SIZE, NULL);
            assert_true(rc == 0 || rc == -HC_EPARSE);
            (void)verdict(WSCHANNEL_LEGACY, (int)(x & 1), bad, V1_SIZE, NULL);
        }
    for (size_t i = 0; i < LEGACY_SIZE; i++)
        for (unsigned x = 1; x < 256; x++) {
            uint8_t bad[LEGACY_SIZE];

            memcpy(bad, legacy_vector, LEGACY_SIZE);
            bad[i] ^= (uint8_t)x;
            int rc = verdict(WSCHANNEL_LEGACY, 0, bad, LEGACY_SIZE, NULL);
            assert_true(rc == 0 || rc == -HC_EPARSE);
        }
}

static int limited(const struct jmsg_limits *l, const char *text)
{
    struct wschannel_in in = { 0 };
    int rc = wschannel_decode(&in, WSCHANNEL_LEGACY, 1, view_cstr(text), l, NULL);

    wschannel_in_free(&in);
    return rc;
}

static void ceilings_hold_for_clients_too(void **state)
{
    (void)state;
    struct jmsg_limits l = { 20, 100, 10, 8, 2 };
    struct wschannel_in in = { 0 };
    struct view v1 = { (const uint8_t *)v1_vector, V1_SIZE };

    assert_int_equal(limited(&l, "{\"header\":{\"a\":1234}}"), 0);
    assert_int_equal(limited(&l, "{\"header\":{\"a\":12345}}"), -HC_ELIMIT);
    assert_int_equal(limited(&l, "{\"parent_header\":{\"a\":12345}}"), -HC_ELIMIT);
    assert_int_equal(limited(&l, "{\"content\":{\"a\":12345678901234}}"), 0);
    assert_int_equal(limited(&l, "{\"content\":{\"a\":123456789012345}}"), -HC_ELIMIT);
    assert_int_equal(limited(&l, "{\"content\":{\"a\":{}}}"), 0);
    assert_int_equal(limited(&l, "{\"content\":{\"a\":[{}]}}"), -HC_ELIMIT);
    l.message = V1_SIZE;
    assert_int_equal(wschannel_decode(&in, WSCHANNEL_V1, 0, v1, &l, NULL), 0);
    l.message--;
    assert_int_equal(wschannel_decode(&in, WSCHANNEL_V1, 0, v1, &l, NULL), -HC_ELIMIT);
    l.message++, l.frames = 6;
    assert_int_equal(wschannel_decode(&in, WSCHANNEL_V1, 0, v1, &l, NULL), -HC_ELIMIT);
    l.frames = 7, l.depth = 0;
    assert_int_equal(wschannel_decode(&in, WSCHANNEL_V1, 0, v1, &l, NULL), -HC_ELIMIT);
    l.depth = 1, l.frame = 2;
    struct view legacy = { (const uint8_t *)legacy_vector, LEGACY_SIZE };
    l.frames = 8;
    assert_int_equal(wschannel_decode(&in, WSCHANNEL_LEGACY, 0, legacy, &l, NULL), -HC_ELIMIT);
    l.frame = 3;
    assert_int_equal(wschannel_decode(&in, WSCHANNEL_LEGACY, 0, legacy, &l, NULL), 0);
    l.frames = 7;
    assert_int_equal(wschannel_decode(&in, WSCHANNEL_LEGACY, 0, legacy, &l, NULL), -HC_ELIMIT);
    wschannel_in_free(&in);
}

static void a_decoder_goes_on_after_a_bad_payload(void **state)
{
    (void)state;
    struct wschannel_in in = { 0 };

    for (int i = 0; i < 3; i++) {
        assert_int_equal(wschannel_decode(&in, WSCHANNEL_V1, 1, VIEW_STR("{"), limits, NULL),
                         -HC_EPARSE);
        assert_int_equal(in.msg.buffer_count, 0);
        assert_int_equal(wschannel_decode(&in, WSCHANNEL_V1, 0,
                                          (struct view){ (const uint8_t *)v1_vector, V1_SIZE },
                                          limits, NULL),
                         0);
        assert_int_equal(in.msg.buffer_count, 1);
    }
    wschannel_in_free(&in);
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
        cmocka_unit_test(lenient_texts_of_real_clients_pass),
        cmocka_unit_test(bad_texts_cost_one_error_each),
        cmocka_unit_test(wrong_v1_tables_are_refused),
        cmocka_unit_test(bad_v1_parts_are_named),
        cmocka_unit_test(wrong_legacy_tables_are_refused),
        cmocka_unit_test(the_text_in_a_legacy_binary_message_may_name_buffers),
        cmocka_unit_test(a_payload_cut_at_any_byte_is_refused_without_reading_on),
        cmocka_unit_test(a_change_of_any_byte_is_survived),
        cmocka_unit_test(ceilings_hold_for_clients_too),
        cmocka_unit_test(a_decoder_goes_on_after_a_bad_payload),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
