/* Both WebSocket framings of Jupyter: what clients send, well and badly formed. */
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
