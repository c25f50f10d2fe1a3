/* Jupyter messages: frames, signatures, ceilings, headers of our own. */
#include "jmsg.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"

#define KEY "a0436f6c-1916-498b-8eb9-e81ab9368e84"
#define HEADER                                                                                \
    "{\"msg_id\":\"m1\",\"msg_type\":\"kernel_info_request\",\"session\":\"s\",\"username\":" \
    "\"u\",\"version\":\"5.3\"}"
#define SIGNATURE "61401644ab33ddb3fac7e10da80be3b5f57c4284f83e95593e30b4badceaddca"

static struct jmsg_key *key_of(const char *scheme, const char *key)
{
    struct jmsg_key *k = NULL;

    assert_int_equal(jmsg_key_new(view_cstr(scheme), view_cstr(key), &k, NULL), 0);
    return k;
}

static struct jmsg example(void)
{
    return (struct jmsg){
        .signature = VIEW_STR(SIGNATURE),
        .header = VIEW_STR(HEADER),
        .parent_header = VIEW_STR("{}"),
        .metadata = VIEW_STR("{}"),
        .content = VIEW_STR("{}"),
    };
}

static void the_known_message_gets_the_known_signature(void **state)
{
    (void)state;
    struct jmsg m = example();
    struct jmsg_key *k = key_of("hmac-sha256", KEY);
    char hex[JMSG_SIGNATURE_SIZE];

    assert_int_equal(m.header.n, 93);
    for (int i = 0; i < 3; i++) { /* the key keeps its state */
        assert_int_equal(jmsg_sign(k, m.parts, hex, NULL), 64);
        assert_string_equal(hex, SIGNATURE);
        assert_int_equal(jmsg_verify(k, &m, NULL), 0);
    }
    k = jmsg_key_free(k);
}

/* Computed with Python's hmac over the same parts and key. */
static void other_hashes_give_the_signatures_of_python(void **state)
{
    (void)state;
    static const struct {
        const char *scheme, *hex;
    } table[] = {
#include "../../vectors/jmsg_signatures.inc"
    };
    struct jmsg m = example();
    char hex[JMSG_SIGNATURE_SIZE];

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct jmsg_key *k = key_of(table[i].scheme, KEY);

        assert_int_equal(jmsg_sign(k, m.parts, hex, NULL), strlen(table[i].hex));
        assert_string_equal(hex, table[i].hex);
        k = jmsg_key_free(k);
    }
}

static void an_unknown_scheme_is_refused(void **state)
{
    (void)state;
    static const char *const table[] = {
        "",
        "sha256",
        "hmac-",
        "hmac-nosuch",
        "HMAC-sha256",
        "hmac-shake_128",
        "hmac-shake-128",
        "hmac-a b",
        "hmac-?provider=x",
        "hmac_sha256",
        "hmac-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct jmsg_key *k = NULL;
        struct err e = { 0 };

        assert_int_equal(jmsg_key_new(view_cstr(table[i]), VIEW_STR("k"), &k, &e), -EINVAL);
        assert_null(k);
        assert_true(e.msg[0] != '\0');
    }
}

static void an_empty_key_signs_and_checks_nothing(void **state)
{
    (void)state;
    struct jmsg_key *k = key_of("hmac-sha256", "");
    struct jmsg m = example();
    char hex[JMSG_SIGNATURE_SIZE] = "x";

    assert_int_equal(jmsg_sign(k, m.parts, hex, NULL), 0);
    assert_string_equal(hex, "");
    assert_int_equal(jmsg_verify(k, &m, NULL), 0);
    m.signature = VIEW_STR("");
    assert_int_equal(jmsg_verify(k, &m, NULL), 0);
    m.signature = VIEW_STR("rubbish");
    assert_int_equal(jmsg_verify(k, &m, NULL), 0);
    k = jmsg_key_free(k);
    assert_null(jmsg_key_free(NULL));
}

static void an_unsigned_message_is_refused_when_there_is_a_key(void **state)
{
    (void)state;
    struct jmsg_key *k = key_of("hmac-sha256", KEY);
    struct jmsg m = example();
    struct err e;

    m.signature = (struct view){ NULL, 0 };
    assert_int_equal(jmsg_verify(k, &m, &e), -HC_EAUTH);
    assert_string_equal(e.msg, "message is not signed");
    k = jmsg_key_free(k);
}

static void a_change_of_any_byte_breaks_the_signature(void **state)
{
    (void)state;
    struct jmsg_key *k = key_of("hmac-sha256", KEY);
    struct jmsg good = example(), m = good;
    char text[128];

    for (size_t i = 0; i < sizeof SIGNATURE - 1; i++) {
        memcpy(text, SIGNATURE, sizeof SIGNATURE);
        text[i] ^= 1;
        m.signature = view_cstr(text);
        assert_int_equal(jmsg_verify(k, &m, NULL), -HC_EAUTH);
        m.signature = (struct view){ (const uint8_t *)SIGNATURE, i };
        assert_int_equal(jmsg_verify(k, &m, NULL), -HC_EAUTH);
    }
    m.signature = VIEW_STR(SIGNATURE "0");
    assert_int_equal(jmsg_verify(k, &m, NULL), -HC_EAUTH);
    m = good;
    for (size_t i = 0; i < good.header.n; i++) {
        memcpy(text, good.header.p, good.header.n);
        text[i] ^= 1;
        m.header = (struct view){ (const uint8_t *)text, good.header.n };
        assert_int_equal(jmsg_verify(k, &m, NULL), -HC_EAUTH);
    }
    m = good;
    m.content = VIEW_STR("{ }");
    assert_int_equal(jmsg_verify(k, &m, NULL), -HC_EAUTH);
    k = jmsg_key_free(k);
    k = key_of("hmac-sha256", KEY "x");
    assert_int_equal(jmsg_verify(k, &good, NULL), -HC_EAUTH);
    k = jmsg_key_free(k);
}

static void upper_case_digits_are_no_signature(void **state)
{
    (void)state;
    struct jmsg_key *k = key_of("hmac-sha256", KEY);
    struct jmsg m = example();
    char upper[] = SIGNATURE;

    for (char *p = upper; *p != '\0'; p++)
        if (*p >= 'a')
            *p = (char)(*p - 'a' + 'A');
    m.signature = view_cstr(upper);
    assert_int_equal(jmsg_verify(k, &m, NULL), -HC_EAUTH);
    k = jmsg_key_free(k);
}

enum { MANY = 1100 };

/* routing frames "r", then the message, then buffers "b". */
static size_t build(struct view frames[MANY], size_t routing, size_t buffers)
{
    struct jmsg m = example();
    size_t n = 0;

    for (size_t i = 0; i < routing; i++)
        frames[n++] = VIEW_STR("r");
    frames[n++] = VIEW_STR(JMSG_DELIMITER);
    frames[n++] = m.signature;
    for (int i = 0; i < JMSG_PARTS; i++)
        frames[n++] = m.parts[i];
    for (size_t i = 0; i < buffers; i++)
        frames[n++] = VIEW_STR("b");
    return n;
}

static void any_number_of_topics_and_buffers_is_the_same_message(void **state)
{
    (void)state;
    static const size_t counts[] = { 0, 1, 3, 20, 500 };
    struct view frames[MANY];

    for (size_t r = 0; r < 5; r++)
        for (size_t b = 0; b < 5; b++) {
            struct jmsg m = { 0 };
            size_t n = build(frames, counts[r], counts[b]);

            assert_int_equal(jmsg_parse(frames, n, &jmsg_limits_default, &m, NULL), 0);
            assert_int_equal(m.routing_count, counts[r]);
            assert_int_equal(m.buffer_count, counts[b]);
            assert_true(view_equals(m.signature, SIGNATURE));
            assert_true(view_equals(m.header, HEADER));
            assert_true(view_equals(m.content, "{}"));
            assert_ptr_equal(m.routing, frames);
            assert_true(b == 0 || view_equals(m.buffers[counts[b] - 1], "b"));
        }
}

static void the_first_delimiter_counts(void **state)
{
    (void)state;
    struct view frames[MANY];
    size_t n = build(frames, 1, 2);
    struct jmsg m;

    frames[n - 1] = VIEW_STR(JMSG_DELIMITER); /* a buffer may look like one */
    assert_int_equal(jmsg_parse(frames, n, &jmsg_limits_default, &m, NULL), 0);
    assert_int_equal(m.routing_count, 1);
    assert_true(view_equals(m.buffers[1], JMSG_DELIMITER));
}

static void a_message_without_its_frames_is_refused(void **state)
{
    (void)state;
    struct view frames[MANY];
    struct jmsg m = { .routing_count = 77 };
    struct err e;
    size_t n = build(frames, 2, 0);

    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(jmsg_parse(frames, cut, &jmsg_limits_default, &m, &e), -HC_EPARSE);
    assert_string_equal(e.msg, "4 frames follow the delimiter; 5 are needed");
    frames[2] = VIEW_STR("<IDS|MSG");
    assert_int_equal(jmsg_parse(frames, n, &jmsg_limits_default, &m, &e), -HC_EPARSE);
    assert_string_equal(e.msg, "no delimiter in a message of 8 frames");
    assert_int_equal(jmsg_parse(NULL, 0, &jmsg_limits_default, &m, &e), -HC_EPARSE);
    assert_int_equal(m.routing_count, 77);
}

static void ceilings_are_kept_to_the_byte(void **state)
{
    (void)state;
    struct view frames[MANY];
    struct jmsg m;
    struct err e;
    size_t n = build(frames, 1, 2), total = 0;

    for (size_t i = 0; i < n; i++)
        total += frames[i].n;
    struct jmsg_limits limits = { 93, total, 93, (unsigned)n, 1 };
    struct jmsg_facts facts;
    assert_int_equal(jmsg_parse(frames, n, &limits, &m, NULL), 0);
    assert_int_equal(jmsg_scan(&m, &limits, &facts, NULL), 0);

    limits.frame--;
    assert_int_equal(jmsg_parse(frames, n, &limits, &m, &e), -HC_ELIMIT);
    assert_string_equal(e.msg, "frame of 93 bytes; the limit is 92");
    limits.frame++, limits.message--;
    assert_int_equal(jmsg_parse(frames, n, &limits, &m, &e), -HC_ELIMIT);
    limits.message++, limits.frames--;
    assert_int_equal(jmsg_parse(frames, n, &limits, &m, &e), -HC_ELIMIT);
    assert_string_equal(e.msg, "message of 9 frames; the limit is 8");
    limits.header--;
    assert_int_equal(jmsg_scan(&m, &limits, &facts, &e), -HC_ELIMIT);
    assert_string_equal(e.msg, "header: 93 bytes; the limit is 92");
    limits.header++, limits.depth--;
    assert_int_equal(jmsg_scan(&m, &limits, &facts, &e), -HC_ELIMIT);
    assert_string_equal(e.msg, "header: JSON byte 0: nested deeper than 0 levels");

    n = build(frames, 0, 1024 - JMSG_FRAMES_FIXED);
    assert_int_equal(jmsg_parse(frames, n, &jmsg_limits_default, &m, NULL), 0);
    n = build(frames, 1, 1024 - JMSG_FRAMES_FIXED);
    assert_int_equal(jmsg_parse(frames, n, &jmsg_limits_default, &m, NULL), -HC_ELIMIT);
    /* Sizes whose sum overflows; the bytes are not looked at. */
    frames[7].n = frames[8].n = SIZE_MAX / 2 + 1;
    limits = (struct jmsg_limits){ SIZE_MAX, 1000, 1000, 1024, 1 };
    assert_int_equal(jmsg_parse(frames, 12, &limits, &m, NULL), -HC_ELIMIT);
}

static void the_header_s_keys_are_found(void **state)
{
    (void)state;
    struct jmsg m = example();
    struct jmsg_facts f;

    m.header = VIEW_STR("{\"msg_id\":\"\",\"msg_type\":\"execute_\\u0072equest\",\"date\":1.5e9,"
                        "\"subshell_id\":null,\"future\":{\"msg_id\":3}}");
    m.parent_header = VIEW_STR(HEADER);
    m.content = VIEW_STR("{\"x\":NaN,\"s\":\"\xe9\xff\",\"t\":\"\\ud800\"}");
    assert_int_equal(jmsg_scan(&m, &jmsg_limits_default, &f, NULL), 0);
    assert_true(view_equals(f.header.msg_id.text, "\"\""));
    assert_true(jsonscan_string_equals(f.header.msg_type, "execute_request"));
    assert_int_equal(f.header.date.kind, JSONSCAN_REAL);
    assert_int_equal(f.header.subshell_id.kind, JSONSCAN_NULL);
    assert_int_equal(f.header.session.kind, JSONSCAN_ABSENT);
    assert_true(jsonscan_string_equals(f.parent.msg_id, "m1"));
    assert_true(jsonscan_string_equals(f.parent.username, "u"));
    assert_int_equal(f.notes[0].bad_utf8, 0);
    assert_int_equal(f.notes[3].bad_utf8, 2);
    assert_int_equal(f.notes[3].nan_tokens, 1);
    assert_int_equal(f.notes[3].lone_surrogates, 1);
}

static void a_message_without_a_parent_has_no_parent_fields(void **state)
{
    (void)state;
    static const char *const table[] = { "{}", "null", " { } " };

    for (size_t i = 0; i < 3; i++) {
        struct jmsg m = example();
        struct jmsg_facts f;

        m.parent_header = view_cstr(table[i]);
        assert_int_equal(jmsg_scan(&m, &jmsg_limits_default, &f, NULL), 0);
        assert_int_equal(f.parent.msg_id.kind, JSONSCAN_ABSENT);
    }
}

static void the_error_of_a_scan_names_the_part(void **state)
{
    (void)state;
    static const struct {
        int part;
        const char *text, *error;
    } table[] = {
        { 0, "[]", "header: JSON is an array, not an object" },
        { 0, "null", "header: JSON is null, not an object" },
        { 0, "\xff", "header: JSON byte 0: expected a value" },
        { 0, "", "header: JSON byte 0: the text ends where a value should be" },
        { 1, "[]", "parent_header: JSON is an array, not an object" },
        { 1, "nul", "parent_header: JSON byte 0: expected a value" },
        { 2, "{", "metadata: JSON byte 1: expected a key in quotes" },
        { 3, "{\"a\":1}x", "content: JSON byte 7: something follows the value" },
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct jmsg m = example();
        struct jmsg_facts f;
        struct err e = { 0 };

        m.parts[table[i].part] = view_cstr(table[i].text);
        assert_int_equal(jmsg_scan(&m, &jmsg_limits_default, &f, &e), -HC_EPARSE);
        assert_string_equal(e.msg, table[i].error);
        assert_int_equal(jmsg_scan(&m, &jmsg_limits_default, &f, NULL), -HC_EPARSE);
    }
}

static void what_is_packed_parses_to_the_same_message(void **state)
{
    (void)state;
    struct view frames[MANY], again[MANY];
    struct jmsg_key *k = key_of("hmac-sha256", KEY);
    char hex[JMSG_SIGNATURE_SIZE];
    struct jmsg m, back;
    size_t n = build(frames, 2, 3);

    assert_int_equal(jmsg_parse(frames, n, &jmsg_limits_default, &m, NULL), 0);
    m.signature = VIEW_STR("is computed anew");
    assert_int_equal(jmsg_pack(k, &m, hex, again, n - 1, NULL), -EMSGSIZE);
    assert_int_equal(jmsg_pack(k, &m, hex, again, n, NULL), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(again[i].n, frames[i].n);
        assert_memory_equal(again[i].p, frames[i].p, frames[i].n);
    }
    assert_int_equal(jmsg_parse(again, n, &jmsg_limits_default, &back, NULL), 0);
    assert_int_equal(jmsg_verify(k, &back, NULL), 0);
    k = jmsg_key_free(k);
}

static void our_own_header_is_complete_and_escaped(void **state)
{
    (void)state;
    const struct jmsg_own own = {
        .msg_id = VIEW_STR("id-1"),
        .msg_type = VIEW_STR("status"),
        .session = VIEW_STR("a\"b"),
        .username = VIEW_STR("u\xff"),
        .date = VIEW_STR("2025-01-02T03:04:05.000006Z"),
    };
    autobuf struct buf b;
    autobuf struct buf small;
    struct jmsg_header h;

    buf_init(&b, 1000);
    buf_init(&small, 40);
    assert_int_equal(jmsg_header_write(&own, &b, NULL), 0);
    assert_true(view_equals(buf_view(&b),
                            "{\"msg_id\":\"id-1\",\"msg_type\":\"status\",\"session\":\"a\\\"b\","
                            "\"username\":\"u\xef\xbf\xbd\",\"date\":"
                            "\"2025-01-02T03:04:05.000006Z\",\"version\":\"5.4\"}"));
    assert_int_equal(jmsg_header_scan(buf_view(&b), &jmsg_limits_default, &h, NULL), 0);
    assert_true(jsonscan_string_equals(h.version, "5.4"));
    assert_int_equal(jmsg_header_write(&own, &small, NULL), -EMSGSIZE);
}

static void channels_have_their_names(void **state)
{
    (void)state;
    for (int i = 0; i < JMSG_CHANNELS; i++)
        assert_int_equal(jmsg_channel_find(view_cstr(jmsg_channel_name((enum jmsg_channel)i))), i);
    assert_string_equal(jmsg_channel_name(JMSG_STDIN), "stdin");
    assert_int_equal(jmsg_channel_find(VIEW_STR("hb")), -1);
    assert_int_equal(jmsg_channel_find(VIEW_STR("")), -1);
    assert_int_equal(jmsg_channel_find(VIEW_STR("SHELL")), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_known_message_gets_the_known_signature),
        cmocka_unit_test(other_hashes_give_the_signatures_of_python),
        cmocka_unit_test(an_unknown_scheme_is_refused),
        cmocka_unit_test(an_empty_key_signs_and_checks_nothing),
        cmocka_unit_test(an_unsigned_message_is_refused_when_there_is_a_key),
        cmocka_unit_test(a_change_of_any_byte_breaks_the_signature),
        cmocka_unit_test(upper_case_digits_are_no_signature),
        cmocka_unit_test(any_number_of_topics_and_buffers_is_the_same_message),
        cmocka_unit_test(the_first_delimiter_counts),
        cmocka_unit_test(a_message_without_its_frames_is_refused),
        cmocka_unit_test(ceilings_are_kept_to_the_byte),
        cmocka_unit_test(the_header_s_keys_are_found),
        cmocka_unit_test(a_message_without_a_parent_has_no_parent_fields),
        cmocka_unit_test(the_error_of_a_scan_names_the_part),
        cmocka_unit_test(what_is_packed_parses_to_the_same_message),
        cmocka_unit_test(our_own_header_is_complete_and_escaped),
        cmocka_unit_test(channels_have_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
