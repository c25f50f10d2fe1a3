/* wschannel_samples - messages in both framings and ways through the codec, for its tests. */
#ifndef HC_TEST_WSCHANNEL_SAMPLES_H
#define HC_TEST_WSCHANNEL_SAMPLES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "wschannel.h"

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

static inline struct jmsg plain(const char *header)
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
static inline struct view encode(struct wschannel_frame *f, enum wschannel_framing framing,
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
static inline int decode_copy(struct wschannel_in *in, enum wschannel_framing framing, int text,
                              const void *p, size_t n, uint8_t **copy, struct err *e)
{
    *copy = malloc(n > 0 ? n : 1);
    assert_non_null(*copy);
    if (n > 0)
        memcpy(*copy, p, n);
    return wschannel_decode(in, framing, text, (struct view){ *copy, n }, limits, e);
}

/* The verdict only. */
static inline int verdict(enum wschannel_framing framing, int text, const void *p, size_t n,
                          struct err *e)
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

#endif
