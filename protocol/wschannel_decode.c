/* Client to server (wschannel.h): every number of a payload is compared with the
 * payload's length before it is used. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "err.h"
#include "wschannel.h"

enum { V1_FIXED = 6 }; /* offsets besides one per buffer */

static const char *const part_names[JMSG_PARTS] = { "header", "parent_header", "metadata",
                                                    "content" };

void wschannel_in_free(struct wschannel_in *in)
{
    free(in->buffers);
    *in = (struct wschannel_in){ 0 };
}

static int buffers_reserve(struct wschannel_in *in, size_t count, const struct jmsg_limits *limits,
                           struct err *e)
{
    if (count + JMSG_FRAMES_FIXED > limits->frames)
        return err_set(e, HC_ELIMIT, "message with %zu buffers; the limit is %u frames", count,
                       limits->frames);
    if (count <= in->room)
        return 0;
    struct view *buffers = reallocarray(in->buffers, count, sizeof *buffers);
    if (buffers == NULL)
        return err_set(e, ENOMEM, "no memory for %zu buffers", count);
    in->buffers = buffers;
    in->room = (unsigned)count;
    return 0;
}

/* A part that is missing or null stands for an empty object. */
static int accept_part(int i, struct jsonscan_value v, const struct jmsg_limits *limits,
                       struct view *ret, struct err *e)
{
    size_t max = i < 2 && limits->header < limits->frame ? limits->header : limits->frame;

    if (!jsonscan_given(v)) {
        *ret = VIEW_STR("{}");
        return 0;
    }
    if (v.kind != JSONSCAN_OBJECT)
        return err_set(e, HC_EPARSE, "%s is %s, not an object", part_names[i],
                       jsonscan_kind_name(v.kind));
    if (v.text.n > max)
        return err_set(e, HC_ELIMIT, "%s of %zu bytes; the limit is %zu", part_names[i], v.text.n,
                       max);
    *ret = v.text;
    return 0;
}

static int check_buffers(const struct jmsg *m, const struct jmsg_limits *limits, struct err *e)
{
    for (unsigned i = 0; i < m->buffer_count; i++)
        if (m->buffers[i].n > limits->frame)
            return err_set(e, HC_ELIMIT, "buffer of %zu bytes; the limit is %zu", m->buffers[i].n,
                           limits->frame);
    return 0;
}

static int unknown_channel(struct view name, struct err *e)
{
    return err_set(e, HC_EPARSE, "unknown channel '%.*s'", (int)(name.n < 32 ? name.n : 32),
                   (const char *)name.p);
}

/* --- legacy --------------------------------------------------------------- */

enum { KEY_CHANNEL = JMSG_PARTS, KEY_BUFFERS, KEYS };

static int legacy_channel(struct jsonscan_value v, enum jmsg_channel *ret, struct err *e)
{
    if (!jsonscan_given(v)) { /* GatewayKernelClient sends none */
        *ret = JMSG_SHELL;
        return 0;
    }
    if (v.kind != JSONSCAN_STRING)
        return err_set(e, HC_EPARSE, "channel is %s, not a string", jsonscan_kind_name(v.kind));
    for (int i = 0; i < JMSG_CHANNELS; i++)
        if (jsonscan_string_equals(v, jmsg_channel_name((enum jmsg_channel)i))) {
            *ret = (enum jmsg_channel)i;
            return 0;
        }
    return unknown_channel((struct view){ v.text.p + 1, v.text.n - 2 }, e);
}

/* Bytes cannot be written in JSON: only the empty forms that clients send pass. */
static int no_buffers(struct jsonscan_value v, const struct jsonscan_rules *rules, struct err *e)
{
    struct jsonscan_iter it;
    struct jsonscan_value member;

    if (!jsonscan_given(v))
        return 0;
    if (jsonscan_iter_init(&it, v, rules, NULL) < 0 ||
        jsonscan_iter_next(&it, NULL, &member, NULL) != 0)
        return err_set(e, HC_EPARSE, "buffers in a JSON text must be empty");
    return 0;
}

static int decode_document(struct view doc, int text, const struct jmsg_limits *limits,
                           struct jmsg *m, enum jmsg_channel *ret_channel, struct err *e)
{
    static const char *const keys[KEYS] = { "header",  "parent_header", "metadata",
                                            "content", "channel",       "buffers" };
    /* One level more: the parts are members here, and v1 shall accept as much. */
    const unsigned depth = limits->depth < JSONSCAN_DEPTH_MAX ? limits->depth + 1 : limits->depth;
    const struct jsonscan_rules rules = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, depth };
    struct jsonscan_value v[KEYS];
    int rc = jsonscan_object(doc, &rules, keys, KEYS, v, NULL, e);

    for (int i = 0; i < JMSG_PARTS && rc == 0; i++)
        rc = accept_part(i, v[i], limits, &m->parts[i], e);
    if (rc == 0 && text)
        rc = no_buffers(v[KEY_BUFFERS], &rules, e);
    return rc < 0 ? rc : legacy_channel(v[KEY_CHANNEL], ret_channel, e);
}

static uint32_t be32_at(struct view v, size_t index)
{
    uint32_t be;

    memcpy(&be, v.p + sizeof be * index, sizeof be);
    return be32toh(be);
}

static int decode_legacy_binary(struct wschannel_in *in, struct view payload,
                                const struct jmsg_limits *limits, struct jmsg *m,
                                enum jmsg_channel *ret_channel, struct err *e)
{
    size_t slots = payload.n / 4; /* 32-bit numbers that fit */
    size_t count = slots > 0 ? be32_at(payload, 0) : 0;

    if (count < 1 || count >= slots)
        return err_set(e, HC_EPARSE, "binary message of %zu bytes with %zu offsets", payload.n,
                       count);
    int rc = buffers_reserve(in, count - 1, limits, e);
    if (rc < 0)
        return rc;

    struct view doc = { 0 };
    size_t start = be32_at(payload, 1);
    if (start < 4 * (count + 1))
        return err_set(e, HC_EPARSE, "first offset %zu points into the table", start);
    for (size_t i = 0; i < count; i++) {
        size_t end = i + 1 < count ? be32_at(payload, i + 2) : payload.n;

        if (start > end || end > payload.n)
            return err_set(e, HC_EPARSE, "offset %zu: %zu to %zu in a message of %zu bytes", i,
                           start, end, payload.n);
        struct view piece = { payload.p + start, end - start };
        if (i == 0)
            doc = piece;
        else
            in->buffers[i - 1] = piece;
        start = end;
    }
    m->buffers = in->buffers;
    m->buffer_count = (unsigned)count - 1;
    return decode_document(doc, 0, limits, m, ret_channel, e);
}

/* --- v1 ------------------------------------------------------------------- */

static uint64_t le64_at(struct view v, size_t index)
{
    uint64_t le;

    memcpy(&le, v.p + sizeof le * index, sizeof le);
    return le64toh(le);
}

/* The bytes between offset i and the next. */
static struct view v1_piece(struct view payload, size_t i)
{
    size_t start = le64_at(payload, i + 1), end = le64_at(payload, i + 2);

    return (struct view){ payload.p + start, end - start };
}

/* Returns the number of offsets; afterwards every piece lies inside the payload. */
static int64_t v1_offsets(struct view payload, struct err *e)
{
    size_t slots = payload.n / 8; /* 64-bit numbers that fit */
    uint64_t count = slots > 0 ? le64_at(payload, 0) : 0;

    if (count < V1_FIXED || count >= slots || count > INT32_MAX)
        return err_set(e, HC_EPARSE, "v1 message of %zu bytes with %llu offsets", payload.n,
                       (unsigned long long)count);
    uint64_t before = 8 * (count + 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = le64_at(payload, i + 1);

        if (offset < before || offset > payload.n)
            return err_set(e, HC_EPARSE, "v1 offset %zu is %llu; it must lie in %llu..%zu", i,
                           (unsigned long long)offset, (unsigned long long)before, payload.n);
        before = offset;
    }
    return (int64_t)count;
}

static int v1_part(int i, struct view text, const struct jmsg_limits *limits, struct view *ret,
                   struct err *e)
{
    const struct jsonscan_rules rules = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, limits->depth };
    struct jsonscan_value v = { 0 };
    int rc = text.n > 0 ? jsonscan_text(text, &rules, &v, NULL, e) : 0;

    if (rc < 0) {
        err_wrap(e, "%s", part_names[i]);
        return rc;
    }
    if (jsonscan_given(v))
        v.text = text; /* white space around it was signed by nobody, but is the client's */
    return accept_part(i, v, limits, ret, e);
}

static int decode_v1(struct wschannel_in *in, struct view payload, const struct jmsg_limits *limits,
                     struct jmsg *m, enum jmsg_channel *ret_channel, struct err *e)
{
    int64_t count = v1_offsets(payload, e);

    if (count < 0)
        return (int)count;
    size_t buffers = (size_t)count - V1_FIXED;
    int rc = buffers_reserve(in, buffers, limits, e);
    if (rc < 0)
        return rc;
    int channel = jmsg_channel_find(v1_piece(payload, 0));
    if (channel < 0)
        return unknown_channel(v1_piece(payload, 0), e);
    for (int i = 0; i < JMSG_PARTS && rc == 0; i++)
        rc = v1_part(i, v1_piece(payload, 1 + (size_t)i), limits, &m->parts[i], e);
    for (size_t i = 0; i < buffers; i++)
        in->buffers[i] = v1_piece(payload, 1 + JMSG_PARTS + i);
    m->buffers = in->buffers;
    m->buffer_count = (unsigned)buffers;
    *ret_channel = (enum jmsg_channel)channel;
    return rc;
}

int wschannel_decode(struct wschannel_in *in, enum wschannel_framing framing, int text,
                     struct view payload, const struct jmsg_limits *limits, struct err *e)
{
    struct jmsg m = { 0 };
    enum jmsg_channel channel = JMSG_SHELL;
    int rc;

    in->msg = m; /* the last message ends here: its buffers may move */
    if (payload.n > limits->message)
        return err_set(e, HC_ELIMIT, "message of %zu bytes; the limit is %zu", payload.n,
                       limits->message);
    if (framing == WSCHANNEL_V1 && !text)
        rc = decode_v1(in, payload, limits, &m, &channel, e);
    else if (!text || wschannel_is_binary_text(payload))
        rc = decode_legacy_binary(in, payload, limits, &m, &channel, e);
    else
        rc = decode_document(payload, 1, limits, &m, &channel, e);
    if (rc == 0)
        rc = check_buffers(&m, limits, e);
    if (rc < 0)
        return rc;
    in->msg = m;
    in->channel = channel;
    return 0;
}
