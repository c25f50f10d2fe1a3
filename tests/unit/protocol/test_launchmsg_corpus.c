/* The fuzzer of the messages begins with one of each kind. HC_MAKE_CORPUS=1 writes the files anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleanup.h"
#include "err.h"
#include "initmsg.h"
#include "keepermsg.h"
#include "launchmsg.h"

typedef const struct msg_spec *find_fn(unsigned verb);

static const struct {
    const char *name;
    find_fn *find;
} tables[] = {
    { "launch-request", launch_request_spec }, { "launch-answer", launch_answer_spec },
    { "launch-event", launch_event_spec },     { "init-request", init_request_spec },
    { "init-answer", init_answer_spec },       { "init-event", init_event_spec },
    { "keeper-request", keeper_request_spec }, { "keeper-answer", keeper_answer_spec },
};

static void path_of(char *out, size_t n, const char *table, const struct msg_spec *spec)
{
    snprintf(out, n, HC_SOURCE_DIR "/tests/fuzz/corpus/launchmsg/%s-%s", table, spec->name);
}

/* A value in every field, none the same as zero. */
static void fill(const struct msg_spec *spec, char *body)
{
    static const uint8_t text[] = "one\0two";

    for (unsigned i = 0; i < spec->count; i++) {
        const struct msg_field *f = &spec->fields[i];
        uint64_t wide = 0x0102030405060708 + i;
        uint32_t narrow = f->max > 0 ? f->max : 100 + i;
        struct view v = { text, f->kind == MSG_STR ? strlen((const char *)text) : sizeof text };

        if (f->kind == MSG_U64)
            memcpy(body + f->offset, &wide, sizeof wide);
        else if (f->kind == MSG_STR || f->kind == MSG_BLOB)
            memcpy(body + f->offset, &v, sizeof v);
        else
            memcpy(body + f->offset, &narrow, sizeof narrow);
    }
}

static void write_one(const char *path, const struct msg_spec *spec)
{
    autofree char *body = calloc(1, spec->size);
    struct buf out;
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_non_null(body);
    fill(spec, body);
    buf_init(&out, MSG_MAX);
    assert_int_equal(msg_encode(spec, 7, 0, body, spec->fds_min, &out, NULL), 0);
    assert_int_equal(fwrite(buf_view(&out).p, 1, buf_len(&out), f), buf_len(&out));
    assert_int_equal(fclose(f), 0);
    buf_free(&out);
}

static void read_one(const char *path, const struct msg_spec *spec)
{
    static uint8_t packet[MSG_MAX];
    autofree void *body = malloc(spec->size);
    FILE *f = fopen(path, "rb");
    struct msg_head head;
    struct view v = { packet, 0 };
    struct err e = { 0 };

    if (f == NULL)
        fail_msg("no input of its own: %s", path);
    v.n = fread(packet, 1, sizeof packet, f);
    fclose(f);
    if (msg_head_decode(v, spec->fds_min, &head, &e) < 0 ||
        msg_decode(spec, &head, v, body, &e) < 0)
        fail_msg("%s: %s", path, e.msg);
    assert_int_equal(head.verb, spec->verb);
}

static void every_request_answer_and_event_has_an_input_that_is_understood(void **state)
{
    unsigned count = 0;

    (void)state;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (unsigned verb = 0; verb <= UINT8_MAX; verb++) {
            const struct msg_spec *spec = tables[t].find(verb);
            char path[4096];

            if (spec == NULL)
                continue;
            path_of(path, sizeof path, tables[t].name, spec);
            if (getenv("HC_MAKE_CORPUS") != NULL)
                write_one(path, spec);
            read_one(path, spec);
            count++;
        }
    }
    /* What the verbs say: each has a request and an answer, errors beside, and the events. */
    assert_int_equal(
        count, 2 * (LAUNCH_VERBS_END - 1) + 1 + (LAUNCH_TASKS_REFUSED - LAUNCH_KERNEL_EXITED + 1) +
                   2 * (INIT_VERBS_END - 1) + 1 + 1 +
                   /* KEEP is answered by events. */
                   2 * (KEEPER_VERBS_END - 1) - 1 + 1 + (KEEPER_ENDED - KEEPER_KEPT + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_answer_and_event_has_an_input_that_is_understood),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
