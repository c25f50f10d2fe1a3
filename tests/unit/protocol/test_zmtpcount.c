/* What a kernel sends on a ZMTP connection, counted before anybody keeps it. */
#include "zmtpcount.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "buf.h"

struct seen {
    struct zmtpcount z;
    unsigned parts, firsts, messages;
    uint64_t bytes, room; /* allowed */
};

static const struct zmtpcount_limits limits = { .part = 1000, .message = 2000, .parts = 4 };

static int on_part(void *arg, uint64_t part, int first)
{
    struct seen *s = arg;

    if (part > s->room)
        return 0;
    s->room -= part;
    s->parts++;
    s->firsts += first != 0;
    s->bytes += part;
    return 1;
}

static void on_message(void *arg)
{
    struct seen *s = arg;

    s->messages++;
}

static const struct zmtpcount_ops ops = { on_part, on_message };

static size_t take(struct seen *s, const void *p, size_t n)
{
    return zmtpcount_take(&s->z, &limits, p, n, &ops, s);
}

/* As take(), byte by byte. */
static size_t drip(struct seen *s, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (take(s, (const uint8_t *)p + i, 1) == 0)
            return i;
    }
    return n;
}

#define GREETING_3 "\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL"
#define READY      "\4\x19\5READY\x0bSocket-Type\0\0\0\3PUB"

static void greet(struct seen *s)
{
    char greeting[64] = GREETING_3;

    *s = (struct seen){ .room = UINT64_MAX };
    assert_int_equal(take(s, greeting, 64), 64);
    assert_int_equal(take(s, READY, sizeof READY - 1), sizeof READY - 1);
    assert_null(zmtpcount_fault(&s->z));
}

static void messages_are_counted_however_the_bytes_are_divided(void **state)
{
    static const char sent[] = "\1\2ab\0\0\3\0\0\0\0\0\0\0\1c\2\0\0\0\0\0\0\0\0\0\1x";
    struct seen whole, single;

    (void)state;
    greet(&whole);
    greet(&single);
    assert_int_equal(take(&whole, sent, sizeof sent - 1), sizeof sent - 1);
    assert_int_equal(drip(&single, sent, sizeof sent - 1), sizeof sent - 1);
    assert_int_equal(whole.messages, 3);
    assert_int_equal(whole.parts, 5);
    assert_int_equal(whole.firsts, 3);
    assert_int_equal(whole.bytes, 4);
    assert_int_equal(single.messages, whole.messages);
    assert_int_equal(single.parts, whole.parts);
    assert_int_equal(single.bytes, whole.bytes);
    assert_false(zmtpcount_in_message(&whole.z));
    assert_int_equal(take(&whole, "\1\1x", 3), 3);
    assert_true(zmtpcount_in_message(&whole.z));
}

static void a_part_that_is_not_allowed_keeps_the_last_byte_of_its_head(void **state)
{
    struct seen s;

    (void)state;
    greet(&s);
    s.room = 2;
    assert_int_equal(take(&s, "\0\2ab\0\2cd", 8), 5);
    assert_int_equal(take(&s, "\2cd", 3), 0);
    assert_null(zmtpcount_fault(&s.z));
    assert_int_equal(s.messages, 1);
    s.room = 2;
    assert_int_equal(take(&s, "\2cd", 3), 3);
    assert_int_equal(s.messages, 2);
    s.room = 0;
    assert_int_equal(take(&s, "\2\0\0\0\0\0\0\0\5", 9), 8);
}

static void bytes_of_an_allowed_part_are_told(void **state)
{
    struct seen s;

    (void)state;
    greet(&s);
    assert_int_equal(zmtpcount_allowed(&s.z), 0);
    assert_int_equal(take(&s, "\0\5ab", 4), 4);
    assert_int_equal(zmtpcount_allowed(&s.z), 3);
    assert_int_equal(take(&s, "cde", 3), 3);
    assert_int_equal(zmtpcount_allowed(&s.z), 0);
}

static void expect_fault(struct seen *s, const void *p, size_t n, size_t before, const char *word)
{
    assert_int_equal(take(s, p, n), before);
    assert_non_null(zmtpcount_fault(&s->z));
    assert_non_null(strstr(zmtpcount_fault(&s->z), word));
    assert_int_equal(take(s, p, n), 0);
}

static void a_message_has_no_more_parts_than_any_may(void **state)
{
    struct seen s;

    (void)state;
    greet(&s);
    assert_int_equal(take(&s, "\1\0\1\0\1\0\0\0", 8), 8);
    assert_int_equal(s.messages, 1);
    expect_fault(&s, "\1\0\1\0\1\0\1\0\1\0", 10, 9, "parts");
}

static void a_message_is_no_larger_than_any_may_be(void **state)
{
    static const uint8_t body[1000];
    struct seen s;

    (void)state;
    greet(&s);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(take(&s, "\3\0\0\0\0\0\0\3\xe8", 9), 9);
        assert_int_equal(take(&s, body, 1000), 1000);
    }
    expect_fault(&s, "\0\1x", 3, 1, "larger");
}

/* The library ends the connection itself, and nothing was taken for it. */
static void a_part_above_its_limit_goes_by_unasked(void **state)
{
    struct seen s;

    (void)state;
    greet(&s);
    assert_int_equal(take(&s, "\2\xff\xff\xff\xff\xff\xff\xff\xff", 9), 9);
    assert_null(zmtpcount_fault(&s.z));
    assert_int_equal(s.parts, 0);
}

static void commands_are_those_of_a_kernel(void **state)
{
    static const char *const bad[] = { "\4\x0a\x09SUBSCRIBE", "\4\7\6CANCEL" };
    struct seen s;

    (void)state;
    greet(&s);
    assert_int_equal(take(&s, "\4\7\4PING\0\0\4\5\4PONG", 16), 16);
    assert_null(zmtpcount_fault(&s.z));
    assert_int_equal(s.parts + s.messages, 0);
    for (unsigned i = 0; i < 2; i++) {
        greet(&s);
        expect_fault(&s, bad[i], strlen(bad[i]), 2, "command");
    }
    greet(&s);
    expect_fault(&s, "\4\0", 2, 1, "command");
    greet(&s);
    expect_fault(&s, "\6\0\0\0\0\0\0\2\1", 9, 8, "command");
}

/* The byte with which it is none does not go by, however the bytes are divided. */
static void a_ping_has_a_time_to_live_and_that_is_none(void **state)
{
    static const struct {
        struct view bytes;
        size_t before;
        const char *word;
    } bad[] = {
        { VIEW_STR("\4\5\4PING"), 6, "without" },
        { VIEW_STR("\4\6\4PING\0"), 7, "without" },
        { VIEW_STR("\4\7\4PING\0\1"), 8, "with a" },
        { VIEW_STR("\4\7\4PING\1\0"), 7, "with a" },
        { VIEW_STR("\6\0\0\0\0\0\0\0\7\4PING\xff\xff"), 14, "with a" },
        { VIEW_STR("\4\x0b\4PING\0\1abcd"), 8, "with a" },
    };
    static const struct view good[] = {
        VIEW_STR("\4\7\4PING\0\0"), VIEW_STR("\4\x0b\4PING\0\0abcd"),
        VIEW_STR("\4\5\4PONG"),     VIEW_STR("\4\7\4PONG\0\1"),
        VIEW_STR("\4\1\4"),         VIEW_STR("\4\7\5PING!\1"),
    };
    struct seen s;

    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        greet(&s);
        expect_fault(&s, bad[i].bytes.p, bad[i].bytes.n, bad[i].before, bad[i].word);
        greet(&s);
        assert_int_equal(drip(&s, bad[i].bytes.p, bad[i].bytes.n), bad[i].before);
    }
    for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
        greet(&s);
        assert_int_equal(take(&s, good[i].p, good[i].n), good[i].n);
        assert_int_equal(drip(&s, good[i].p, good[i].n), good[i].n);
        assert_int_equal(take(&s, "\4\7\4PING\0\0", 9), 9);
    }
}

static void what_does_not_greet_is_refused(void **state)
{
    struct seen s = { .room = UINT64_MAX };

    (void)state;
    expect_fault(&s, "GET / HTTP/1.1\r\n", 16, 0, "greeting");
    s = (struct seen){ .room = UINT64_MAX }; /* ZMTP 1.0: a long identity */
    expect_fault(&s, "\xff\0\0\0\0\0\0\0\1\0", 10, 9, "greeting");
    s = (struct seen){ .room = UINT64_MAX };
    expect_fault(&s, "\xff\0\0\0\0\0\0\0\1\x7f\0", 11, 10, "greeting");
}

static void the_identity_of_an_old_peer_is_no_message(void **state)
{
    static const char greeting[12] = "\xff\0\0\0\0\0\0\0\1\x7f\1\6";
    struct seen s = { .room = UINT64_MAX };

    (void)state;
    assert_int_equal(take(&s, greeting, 12), 12);
    assert_int_equal(take(&s, "\0\3abc\0\1x", 8), 8);
    assert_int_equal(s.messages, 1);
    assert_int_equal(s.parts, 1);
    s = (struct seen){ .room = UINT64_MAX };
    assert_int_equal(take(&s, greeting, 12), 12);
    expect_fault(&s, "\2\0\0\0\0\0\0\1\0", 9, 8, "identity");
}

/* The library would take such a READY for its handshake, and no message of it would reach the reader. */
static void no_message_comes_before_the_handshake(void **state)
{
    static const char plain[] = "\0\x19\5READY\x0bSocket-Type\0\0\0\3PUB";
    static const char with_more[] = "\1\x19\5READY\x0bSocket-Type\0\0\0\3PUB";
    const char *const bad[] = { plain, with_more };
    char greeting[64] = GREETING_3;

    (void)state;
    for (unsigned minor = 0; minor < 2; minor++) {
        for (unsigned i = 0; i < 2; i++) {
            struct seen s = { .room = UINT64_MAX };

            greeting[11] = (char)minor;
            assert_int_equal(take(&s, greeting, 64), 64);
            expect_fault(&s, bad[i], sizeof plain - 1, 1, "before the handshake");
            assert_int_equal(s.parts + s.messages, 0);
        }
    }
}

/* The library would take the first frame for an identity, whatever its flags are, and the second for a
 * message. */
static void an_identity_is_one_frame_and_no_command(void **state)
{
    static const char greeting[12] = "\xff\0\0\0\0\0\0\0\1\x7f\1\6";
    static const char *const bad[] = { "\4\5\4PING", "\1\3abc", "\5\3abc" };

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct seen s = { .room = UINT64_MAX };

        assert_int_equal(take(&s, greeting, 12), 12);
        expect_fault(&s, bad[i], strlen(bad[i]), 1, "identity");
        assert_int_equal(s.parts + s.messages, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_counted_however_the_bytes_are_divided),
        cmocka_unit_test(a_part_that_is_not_allowed_keeps_the_last_byte_of_its_head),
        cmocka_unit_test(bytes_of_an_allowed_part_are_told),
        cmocka_unit_test(a_message_has_no_more_parts_than_any_may),
        cmocka_unit_test(a_message_is_no_larger_than_any_may_be),
        cmocka_unit_test(a_part_above_its_limit_goes_by_unasked),
        cmocka_unit_test(commands_are_those_of_a_kernel),
        cmocka_unit_test(a_ping_has_a_time_to_live_and_that_is_none),
        cmocka_unit_test(what_does_not_greet_is_refused),
        cmocka_unit_test(the_identity_of_an_old_peer_is_no_message),
        cmocka_unit_test(no_message_comes_before_the_handshake),
        cmocka_unit_test(an_identity_is_one_frame_and_no_command),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
