/*
 * A WebSocket payload as a client may send it. First byte: bit 0 is the framing,
 * bit 1 says text. What decodes is encoded again in both framings and decoded.
 */
#include <stdint.h>
#include <string.h>

#include "err.h"
#include "utf8.h"
#include "wschannel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct jmsg_limits limits = { 4096, 16384, 1024, 40, 20 };

static int same(struct view a, struct view b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static int inside(struct view part, struct view payload)
{
    return view_equals(part, "{}") || part.n == 0 ||
           (part.p >= payload.p && part.p + part.n <= payload.p + payload.n);
}

static void check_message(const struct wschannel_in *in, struct view payload)
{
    struct jmsg_facts facts;

    for (int i = 0; i < JMSG_PARTS; i++)
        check(inside(in->msg.parts[i], payload));
    for (unsigned i = 0; i < in->msg.buffer_count; i++)
        check(inside(in->msg.buffers[i], payload));
    /* What decodes can be sent to a kernel: the same rules hold there. */
    check(jmsg_scan(&in->msg, &limits, &facts, NULL) == 0);
}

static void round_trip(const struct wschannel_in *in, enum wschannel_framing framing)
{
    struct wschannel_frame f;
    struct wschannel_in back = { 0 };
    autobuf struct buf out = { .max = SIZE_MAX };

    wschannel_frame_init(&f);
    check(wschannel_encode(&f, framing, in->channel, &in->msg, "now", NULL) == 0);
    check(wschannel_flatten(&f, &out) == 0);
    check(wschannel_decode(&back, framing, !f.binary, buf_view(&out), &jmsg_limits_default, NULL) ==
          0);
    check(back.channel == in->channel && back.msg.buffer_count == in->msg.buffer_count);
    for (int i = framing == WSCHANNEL_V1 ? 0 : 1; i < JMSG_PARTS; i++)
        if (framing == WSCHANNEL_V1 && utf8_valid(in->msg.parts[i]))
            check(same(back.msg.parts[i], in->msg.parts[i]));
    for (unsigned i = 0; i < in->msg.buffer_count; i++)
        check(same(back.msg.buffers[i], in->msg.buffers[i]));
    wschannel_in_free(&back);
    wschannel_frame_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct wschannel_in in = { 0 };
    struct err e = { 0 };

    if (n < 1)
        return 0;
    struct view payload = { data + 1, n - 1 };
    int rc = wschannel_decode(&in, data[0] & 1 ? WSCHANNEL_V1 : WSCHANNEL_LEGACY,
                              (data[0] >> 1) & 1, payload, &limits, &e);
    check(rc == -e.code);
    if (rc == 0) {
        check_message(&in, payload);
        round_trip(&in, WSCHANNEL_V1);
        round_trip(&in, WSCHANNEL_LEGACY);
    }
    wschannel_in_free(&in);
    return 0;
}
