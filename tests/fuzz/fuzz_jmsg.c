/*
 * A multipart message as a kernel may send it: frames are a little-endian 16-bit
 * length and that many bytes. What parses is packed again; what scans as JSON is
 * encoded for WebSockets in both framings and must come back.
 */
#include <stdint.h>
#include <string.h>

#include "err.h"
#include "jmsg.h"
#include "utf8.h"
#include "wschannel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MANY = 64 };
static const struct jmsg_limits limits = { 4096, 16384, 1024, 40, 20 };

static int same(struct view a, struct view b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static size_t split(const uint8_t *data, size_t n, struct view frames[MANY])
{
    size_t count = 0;

    while (n >= 2 && count < MANY) {
        size_t len = data[0] | (size_t)data[1] << 8;

        data += 2, n -= 2;
        if (len > n)
            len = n;
        frames[count++] = (struct view){ data, len };
        data += len, n -= len;
    }
    return count;
}

static void pack_again(struct jmsg_key *k, const struct view *frames, size_t count,
                       const struct jmsg *m)
{
    struct view packed[MANY];
    struct jmsg back;
    char hex[JMSG_SIGNATURE_SIZE];

    check(jmsg_pack(k, m, hex, packed, MANY, NULL) == (int)count);
    for (size_t i = 0; i < count; i++)
        check(i == m->routing_count + 1u || same(packed[i], frames[i]));
    check(jmsg_parse(packed, count, &jmsg_limits_default, &back, NULL) == 0);
    check(jmsg_verify(k, &back, NULL) == 0);
}

/* Without white space around it: legacy cuts values out of a document. */
static struct view trimmed(struct view part)
{
    const struct jsonscan_rules rules = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, JSONSCAN_DEPTH_MAX };
    struct jsonscan_value v;

    check(jsonscan_text(part, &rules, &v, NULL, NULL) == 0);
    return v.text;
}

/* 1 when the part is handed on to a client byte for byte. */
static int verbatim(const struct jmsg *m, int i)
{
    return utf8_valid(m->parts[i]);
}

static void check_decoded(const struct jmsg *m, enum wschannel_framing framing,
                          const struct wschannel_in *in)
{
    check(in->channel == JMSG_IOPUB && in->msg.buffer_count == m->buffer_count);
    for (int i = framing == WSCHANNEL_V1 ? 0 : 1; i < JMSG_PARTS; i++) {
        struct view sent = framing == WSCHANNEL_V1 ? m->parts[i] : trimmed(m->parts[i]);
        int null = view_equals(trimmed(m->parts[i]), "null");

        if (verbatim(m, i))
            check(same(in->msg.parts[i], sent) || (null && view_equals(in->msg.parts[i], "{}")));
    }
    for (unsigned i = 0; i < m->buffer_count; i++)
        check(same(in->msg.buffers[i], m->buffers[i]));
}

static void through_websocket(const struct jmsg *m, enum wschannel_framing framing)
{
    const struct jsonscan_rules nan = { JSONSCAN_NAN, JSONSCAN_DEPTH_MAX };
    struct wschannel_frame f;
    struct wschannel_in in = { 0 };
    autobuf struct buf out = { .max = SIZE_MAX };
    int objects = 1;

    for (int i = 0; i < JMSG_PARTS; i++) {
        struct view v = trimmed(m->parts[i]);

        objects = objects && (v.p[0] == '{' || view_equals(v, "null"));
    }
    wschannel_frame_init(&f);
    check(wschannel_encode(&f, framing, JMSG_IOPUB, m, "2025-01-01T00:00:00Z", NULL) == 0);
    check(wschannel_flatten(&f, &out) == 0);
    check(buf_len(&out) == f.total);
    check(f.binary == (framing == WSCHANNEL_V1 || m->buffer_count > 0));
    if (!f.binary) /* valid UTF-8 too: the rules do not allow other */
        check(jsonscan_text(buf_view(&out), &nan, NULL, NULL, NULL) == 0);
    int rc = wschannel_decode(&in, framing, !f.binary, buf_view(&out), &jmsg_limits_default, NULL);
    check((rc == 0) == objects);
    if (rc == 0)
        check_decoded(m, framing, &in);
    wschannel_in_free(&in);
    wschannel_frame_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct jmsg_key *k;
    struct view frames[MANY];
    struct jmsg m;
    struct jmsg_facts facts;
    size_t count = split(data, n, frames);

    if (k == NULL)
        check(jmsg_key_new(VIEW_STR("hmac-sha256"), VIEW_STR("key"), &k, NULL) == 0);
    if (jmsg_parse(frames, count, &limits, &m, NULL) < 0)
        return 0;
    (void)!jmsg_verify(k, &m, NULL);
    pack_again(k, frames, count, &m);
    if (jmsg_scan(&m, &limits, &facts, NULL) < 0)
        return 0;
    for (int i = 0; i < JMSG_PARTS; i++)
        check((facts.notes[i].bad_utf8 == 0) == verbatim(&m, i));
    through_websocket(&m, WSCHANNEL_V1);
    through_websocket(&m, WSCHANNEL_LEGACY);
    return 0;
}
