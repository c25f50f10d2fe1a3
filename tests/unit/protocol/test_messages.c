/* Every message of every protocol between our processes: comes back as it was sent, whole or not at all. */
#include "msgcodec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "initmsg.h"
#include "keepermsg.h"
#include "launchmsg.h"

enum { VERBS = 256, BODY_MAX = 512, USUAL = 40 };

static const struct {
    const char *name;
    const struct msg_spec *(*find)(unsigned verb);
    unsigned kinds; /* in its table: a new one is put here on purpose */
} tables[] = {
    { "launcher's requests", launch_request_spec, 11 },
    { "launcher's answers", launch_answer_spec, 12 },
    { "launcher's events", launch_event_spec, 4 },
    { "init's requests", init_request_spec, 9 },
    { "init's answers", init_answer_spec, 10 },
    { "init's events", init_event_spec, 1 },
    { "keeper's requests", keeper_request_spec, 4 },
    { "keeper's answers", keeper_answer_spec, 6 },
};

/* What strings and blobs of the bodies below point into: text without NUL, and all bytes. */
static uint8_t letters[MSG_MAX], bytes[MSG_MAX];

/* As the verb's struct, and aligned for it. */
union body {
    uint64_t align;
    uint8_t at[BODY_MAX];
};

static int fill_sources(void **state)
{
    (void)state;
    for (size_t i = 0; i < MSG_MAX; i++) {
        letters[i] = (uint8_t)(1 + i % 255);
        bytes[i] = (uint8_t)(i * 7);
    }
    return 0;
}

static size_t width_of(const struct msg_field *f)
{
    switch ((enum msg_kind)f->kind) {
    case MSG_U32:
    case MSG_I32:
        return 4;
    case MSG_U64:
        return 8;
    case MSG_STR:
    case MSG_BLOB:
        return sizeof(struct view);
    }
    return 0;
}

static void put_view(const struct msg_field *f, union body *body, size_t n)
{
    const uint8_t *from = f->kind == MSG_STR ? letters : bytes;
    struct view v = { from + f->offset % 100, n }; /* no two fields hold the same */

    memcpy(body->at + f->offset, &v, sizeof v);
}

/* Each field another value, the largest that its bound allows; strings and blobs of at most `length`. */
static void fill_body(const struct msg_spec *spec, union body *body, size_t length)
{
    memset(body, 0, sizeof *body);
    for (unsigned i = 0; i < spec->count; i++) {
        const struct msg_field *f = &spec->fields[i];
        uint32_t u32 = f->max > 0 ? f->max : UINT32_C(0xfedc0000) + i;
        uint64_t u64 = f->max > 0 ? f->max : UINT64_C(0xfedcba9876540000) + i;
        int32_t i32 = -1000 - (int32_t)i;
        size_t room = f->max < MSG_MAX - 100 ? f->max : MSG_MAX - 100;

        if (f->kind == MSG_U32)
            memcpy(body->at + f->offset, &u32, sizeof u32);
        else if (f->kind == MSG_U64)
            memcpy(body->at + f->offset, &u64, sizeof u64);
        else if (f->kind == MSG_I32)
            memcpy(body->at + f->offset, &i32, sizeof i32);
        else
            put_view(f, body, length < room ? length : room);
    }
}

static void assert_same(const struct msg_spec *spec, const union body *sent, const union body *got)
{
    for (unsigned i = 0; i < spec->count; i++) {
        const struct msg_field *f = &spec->fields[i];
        const void *a = sent->at + f->offset, *b = got->at + f->offset;
        struct view v, w;

        if (f->kind != MSG_STR && f->kind != MSG_BLOB) {
            if (memcmp(a, b, width_of(f)) != 0)
                fail_msg("%s: field '%s' came back as another", spec->name, f->name);
            continue;
        }
        memcpy(&v, a, sizeof v);
        memcpy(&w, b, sizeof w);
        if (v.n != w.n || (v.n > 0 && memcmp(v.p, w.p, v.n) != 0))
            fail_msg("%s: field '%s' came back as another", spec->name, f->name);
    }
}

/* Calls act for each kind of message. */
static void for_each_kind(void (*act)(const struct msg_spec *spec))
{
    for (unsigned t = 0; t < sizeof tables / sizeof *tables; t++) {
        unsigned kinds = 0;

        for (unsigned verb = 0; verb < VERBS; verb++) {
            const struct msg_spec *spec = tables[t].find(verb);

            if (spec == NULL)
                continue;
            kinds++;
            assert_int_equal(spec->verb, verb);
            assert_true(spec->size <= BODY_MAX);
            act(spec);
        }
        if (kinds != tables[t].kinds)
            fail_msg("%s: %u kinds, %u known here", tables[t].name, kinds, tables[t].kinds);
    }
}

static void encode(const struct msg_spec *spec, const union body *body, unsigned fds, struct buf *b)
{
    struct err e = { 0 };

    buf_init(b, MSG_MAX);
    if (msg_encode(spec, 9, 0, body, fds, b, &e) != 0)
        fail_msg("%s: %s", spec->name, e.msg);
}

static void comes_back(const struct msg_spec *spec, size_t length, unsigned fds)
{
    union body sent, got;
    struct msg_head head;
    struct err e = { 0 };
    autobuf struct buf b;

    fill_body(spec, &sent, length);
    encode(spec, &sent, fds, &b);
    assert_int_equal(msg_head_decode(buf_view(&b), fds, &head, &e), 0);
    assert_int_equal(head.verb, spec->verb);
    assert_int_equal(head.request, 9);
    if (msg_decode(spec, &head, buf_view(&b), &got, &e) != 0)
        fail_msg("%s: %s", spec->name, e.msg);
    assert_same(spec, &sent, &got);
}

static void kind_comes_back(const struct msg_spec *spec)
{
    comes_back(spec, USUAL, spec->fds_min);
    comes_back(spec, 1, spec->fds_max);
    comes_back(spec, MSG_MAX,
               spec->fds_min); /* every field as long as its bound says: fits a packet */
}

static void every_message_comes_back_as_it_was_sent(void **state)
{
    (void)state;
    for_each_kind(kind_comes_back);
}

static void kind_is_refused_when_cut(const struct msg_spec *spec)
{
    union body sent, got;
    struct msg_head head;
    struct err e = { 0 };
    autobuf struct buf b;

    fill_body(spec, &sent, USUAL);
    encode(spec, &sent, spec->fds_min, &b);
    for (size_t n = 0; n < buf_len(&b); n++) {
        uint8_t *cut = malloc(n + 1); /* of its own: the sanitizer sees a read behind it */
        struct view packet = { cut, n };

        assert_non_null(cut);
        memcpy(cut, buf_view(&b).p, n);
        assert_int_equal(msg_head_decode(packet, spec->fds_min, &head, &e), -HC_EPARSE);
        if (n >= sizeof head) {
            memcpy(&head, cut, sizeof head);
            head.size = (uint32_t)n; /* an honest head on a short body */
            if (msg_decode(spec, &head, packet, &got, &e) != -HC_EPARSE)
                fail_msg("%s: %zu of %zu bytes are taken", spec->name, n, buf_len(&b));
            assert_non_null(strstr(e.msg, spec->name));
        }
        free(cut);
    }
}

static void every_message_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    for_each_kind(kind_is_refused_when_cut);
}

static void kind_is_refused_with_more(const struct msg_spec *spec)
{
    union body sent, got;
    struct msg_head head;
    autobuf struct buf b;

    fill_body(spec, &sent, USUAL);
    encode(spec, &sent, spec->fds_min, &b);
    assert_int_equal(buf_add(&b, "", 1), 0);
    memcpy(&head, buf_view(&b).p, sizeof head);
    head.size++;
    assert_int_equal(msg_decode(spec, &head, buf_view(&b), &got, NULL), -HC_EPARSE);
}

static void every_message_with_a_byte_more_is_refused(void **state)
{
    (void)state;
    for_each_kind(kind_is_refused_with_more);
}

static void kind_is_refused_with_other_descriptors(const struct msg_spec *spec)
{
    union body sent, got;
    struct msg_head head;
    autobuf struct buf b;

    fill_body(spec, &sent, USUAL);
    encode(spec, &sent, spec->fds_min, &b);
    memcpy(&head, buf_view(&b).p, sizeof head);
    for (unsigned fds = 0; fds <= MSG_FDS_MAX + 1; fds++) {
        autobuf struct buf other;
        int wrong = fds < spec->fds_min || fds > spec->fds_max;

        buf_init(&other, MSG_MAX);
        assert_int_equal(msg_encode(spec, 9, 0, &sent, fds, &other, NULL), wrong ? -EINVAL : 0);
        head.fds = fds;
        assert_int_equal(msg_decode(spec, &head, buf_view(&b), &got, NULL), wrong ? -HC_EPARSE : 0);
    }
}

static void every_message_with_a_wrong_number_of_descriptors_is_refused(void **state)
{
    (void)state;
    for_each_kind(kind_is_refused_with_other_descriptors);
}

/* A value beyond the field's bound; 0 when it has none. */
static int break_bound(const struct msg_field *f, union body *body)
{
    uint32_t u32 = f->max + 1;
    uint64_t u64 = (uint64_t)f->max + 1;

    if (f->kind == MSG_I32 || f->max == 0)
        return 0;
    if (f->kind == MSG_U32)
        memcpy(body->at + f->offset, &u32, sizeof u32);
    else if (f->kind == MSG_U64)
        memcpy(body->at + f->offset, &u64, sizeof u64);
    else
        put_view(f, body, (size_t)f->max + 1);
    return 1;
}

static void assert_named(const struct msg_spec *spec, const struct msg_field *f,
                         const struct err *e)
{
    char name[80];

    snprintf(name, sizeof name, "'%s'", f->name);
    if (strstr(e->msg, name) == NULL)
        fail_msg("%s: field %s is not named: %s", spec->name, name, e->msg);
}

static void kind_is_refused_beyond_bounds(const struct msg_spec *spec)
{
    for (unsigned i = 0; i < spec->count; i++) {
        const struct msg_field *f = &spec->fields[i];
        struct msg_spec lax = *spec; /* of a peer who keeps to no bound */
        struct msg_field fields[32];
        union body sent, got;
        struct msg_head head;
        struct err e = { 0 };
        autobuf struct buf b;

        fill_body(spec, &sent, USUAL);
        if (!break_bound(f, &sent))
            continue;
        buf_init(&b, MSG_MAX);
        assert_int_equal(msg_encode(spec, 9, 0, &sent, spec->fds_min, &b, &e), -EINVAL);
        assert_named(spec, f, &e);
        assert_int_equal(buf_len(&b), 0);
        buf_free(&b);
        assert_true(spec->count <= sizeof fields / sizeof *fields);
        memcpy(fields, spec->fields, spec->count * sizeof *fields);
        fields[i].max = UINT32_MAX;
        lax.fields = fields;
        encode(&lax, &sent, spec->fds_min, &b);
        assert_int_equal(msg_head_decode(buf_view(&b), spec->fds_min, &head, &e), 0);
        assert_int_equal(msg_decode(spec, &head, buf_view(&b), &got, &e), -HC_EPARSE);
        assert_named(spec, f, &e);
    }
}

static void every_field_beyond_its_bound_is_refused_by_its_name(void **state)
{
    (void)state;
    for_each_kind(kind_is_refused_beyond_bounds);
}

static void kind_covers_its_struct(const struct msg_spec *spec)
{
    uint8_t taken[BODY_MAX] = { 0 };
    size_t gap = 0;

    for (unsigned i = 0; i < spec->count; i++) {
        const struct msg_field *f = &spec->fields[i];

        assert_true(f->offset + width_of(f) <= spec->size);
        for (size_t at = f->offset; at < f->offset + width_of(f); at++)
            if (taken[at]++)
                fail_msg("%s: field '%s' lies over another", spec->name, f->name);
    }
    for (size_t at = 0; at < spec->size; at++) {
        gap = taken[at] ? 0 : gap + 1;
        if (gap > 4) /* more than padding: a member that never travels */
            fail_msg("%s: byte %zu of its struct is in no field", spec->name, at);
    }
}

static void no_member_is_left_out_or_sent_twice(void **state)
{
    (void)state;
    for_each_kind(kind_covers_its_struct);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_comes_back_as_it_was_sent),
        cmocka_unit_test(every_message_cut_at_any_byte_is_refused),
        cmocka_unit_test(every_message_with_a_byte_more_is_refused),
        cmocka_unit_test(every_message_with_a_wrong_number_of_descriptors_is_refused),
        cmocka_unit_test(every_field_beyond_its_bound_is_refused_by_its_name),
        cmocka_unit_test(no_member_is_left_out_or_sent_twice),
    };

    return cmocka_run_group_tests(tests, fill_sources, NULL);
}
