/* Server to client (wschannel.h). The table of offsets, keys and short parts are
 * collected in memory of the frame; long parts and buffers are borrowed. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "err.h"
#include "jsonwrite.h"
#include "utf8.h"
#include "wschannel.h"

enum {
    COPY_MAX = 512,          /* a shorter piece is cheaper to copy than to list for writev */
    REPAIRED_KEPT = 1 << 16, /* a larger buffer is given back after use */
    V1_FIXED = 6,            /* offsets besides one per buffer */
};

void wschannel_frame_init(struct wschannel_frame *f)
{
    *f = (struct wschannel_frame){ 0 };
    buf_init(&f->own, SIZE_MAX);
    for (int i = 0; i < JMSG_PARTS; i++)
        buf_init(&f->repaired[i], SIZE_MAX);
}

void wschannel_frame_free(struct wschannel_frame *f)
{
    free(f->segments);
    free(f->offsets);
    buf_free(&f->own);
    for (int i = 0; i < JMSG_PARTS; i++)
        buf_free(&f->repaired[i]);
    wschannel_frame_init(f);
}

static void frame_clear(struct wschannel_frame *f)
{
    f->binary = 0;
    f->total = 0;
    f->count = 0;
    f->error = 0;
    buf_clear(&f->own);
    for (int i = 0; i < JMSG_PARTS; i++) {
        if (f->repaired[i].size > REPAIRED_KEPT)
            buf_release(&f->repaired[i]);
        buf_clear(&f->repaired[i]);
    }
}

static int segment_reserve(struct wschannel_frame *f)
{
    if (f->count < f->room)
        return 0;
    unsigned room = f->room > 0 ? 2 * f->room : 16;
    struct view *segments = reallocarray(f->segments, room, sizeof *segments);
    if (segments == NULL)
        return -ENOMEM;
    f->segments = segments;
    size_t *offsets = reallocarray(f->offsets, room, sizeof *offsets);
    if (offsets == NULL)
        return -ENOMEM;
    f->offsets = offsets;
    f->room = room;
    return 0;
}

/* Appends v to the payload. Errors stick: they are looked at once, at the end. */
static void add(struct wschannel_frame *f, struct view v)
{
    int own = v.n <= COPY_MAX;
    size_t offset = own ? buf_len(&f->own) : SIZE_MAX;

    if (f->error < 0 || v.n == 0)
        return;
    if (own && (f->error = buf_add_view(&f->own, v)) < 0)
        return;
    f->total += v.n;
    if (own && f->count > 0 && f->offsets[f->count - 1] != SIZE_MAX) {
        f->segments[f->count - 1].n += v.n; /* own pieces that follow each other are adjacent */
        return;
    }
    if ((f->error = segment_reserve(f)) < 0)
        return;
    f->segments[f->count] = v;
    f->offsets[f->count] = offset;
    f->count++;
}

static void add_str(struct wschannel_frame *f, const char *s)
{
    add(f, view_cstr(s));
}

/* The own memory does not move any more: offsets become addresses. */
static int finish(struct wschannel_frame *f, struct err *e)
{
    int rc = f->error;

    if (rc < 0) {
        frame_clear(f);
        return err_sys(e, -rc, "encode a WebSocket message");
    }
    for (unsigned i = 0; i < f->count; i++)
        if (f->offsets[i] != SIZE_MAX)
            f->segments[i].p = buf_view(&f->own).p + f->offsets[i];
    return 0;
}

/* The parts as they are to be sent. */
static void prepare_parts(struct wschannel_frame *f, const struct jmsg *m,
                          struct view ret_parts[JMSG_PARTS])
{
    for (int i = 0; i < JMSG_PARTS; i++) {
        /* ipykernel puts raw bytes of surrogateescape texts into its frames. */
        int rc = utf8_repair(m->parts[i], &f->repaired[i], &ret_parts[i], NULL);

        if (rc < 0)
            f->error = rc;
        if (rc < 0 || ret_parts[i].n == 0)
            ret_parts[i] = VIEW_STR("{}");
    }
}

/* --- v1 ------------------------------------------------------------------- */

static void add_le64(struct wschannel_frame *f, uint64_t n)
{
    uint64_t le = htole64(n);

    add(f, (struct view){ (const uint8_t *)&le, sizeof le });
}

static void encode_v1(struct wschannel_frame *f, struct view channel, const struct view *parts,
                      const struct jmsg *m)
{
    uint64_t count = V1_FIXED + (uint64_t)m->buffer_count, at = 8 * (count + 1);

    f->binary = 1;
    add_le64(f, count);
    add_le64(f, at);
    add_le64(f, at += channel.n);
    for (int i = 0; i < JMSG_PARTS; i++)
        add_le64(f, at += parts[i].n);
    for (unsigned i = 0; i < m->buffer_count; i++)
        add_le64(f, at += m->buffers[i].n);

    add(f, channel);
    for (int i = 0; i < JMSG_PARTS; i++)
        add(f, parts[i]);
    for (unsigned i = 0; i < m->buffer_count; i++)
        add(f, m->buffers[i]);
}

/* --- legacy --------------------------------------------------------------- */

enum { KEY_MSG_ID, KEY_MSG_TYPE, KEY_DATE, KEY_VERSION, KEY_USERNAME, KEYS };
static const char *const keys[KEYS] = { "msg_id", "msg_type", "date", "version", "username" };

/* Filled in at the end of the object: should the key be there with null, the
 * last one counts for every reader. */
static void add_header(struct wschannel_frame *f, struct view header,
                       const struct jsonscan_value *v, const char *fill_date)
{
    const char *const fill[KEYS] = {
        [KEY_DATE] = fill_date,
        [KEY_VERSION] = "5.0", /* the lowest of this message format */
        [KEY_USERNAME] = "kernel",
    };
    size_t end = header.n, inner;

    while (header.p[--end] != '}') /* the scan has seen it */
        ;
    for (inner = end; strchr(" \t\r\n", header.p[inner - 1]) != NULL; inner--)
        ;
    const char *comma = header.p[inner - 1] == '{' ? "" : ",";
    add(f, (struct view){ header.p, end });
    for (int i = KEY_DATE; i < KEYS; i++) {
        if (jsonscan_given(v[i]) || fill[i] == NULL)
            continue;
        autobuf struct buf value = { .max = SIZE_MAX };
        int rc = jsonwrite_quoted(&value, view_cstr(fill[i]));

        if (rc < 0)
            f->error = rc;
        add_str(f, comma);
        add_str(f, "\"");
        add_str(f, keys[i]);
        add_str(f, "\":");
        add(f, buf_view(&value));
        comma = ",";
    }
    add_str(f, "}");
}

/* The JSON text. Clients index msg_id and msg_type at the top level. */
static void add_document(struct wschannel_frame *f, enum jmsg_channel channel,
                         const struct view *parts, const struct jsonscan_value *v,
                         const char *fill_date)
{
    add_str(f, "{\"header\":");
    add_header(f, parts[0], v, fill_date);
    add_str(f, ",\"parent_header\":");
    add(f, parts[1]);
    add_str(f, ",\"metadata\":");
    add(f, parts[2]);
    add_str(f, ",\"content\":");
    add(f, parts[3]);
    add_str(f, ",\"channel\":\"");
    add_str(f, jmsg_channel_name(channel));
    add_str(f, "\",\"msg_id\":");
    add(f, v[KEY_MSG_ID].kind != JSONSCAN_ABSENT ? v[KEY_MSG_ID].text : VIEW_STR("null"));
    add_str(f, ",\"msg_type\":");
    add(f, v[KEY_MSG_TYPE].kind != JSONSCAN_ABSENT ? v[KEY_MSG_TYPE].text : VIEW_STR("null"));
    add_str(f, f->binary ? "}" : ",\"buffers\":[]}");
}

static void put_be32(struct wschannel_frame *f, size_t index, size_t n)
{
    uint32_t be = htobe32((uint32_t)n);

    memcpy(f->own.data + f->own.head + sizeof be * index, &be, sizeof be);
}

/* Room for the table first: its numbers are known when the JSON text is. */
static int encode_legacy_binary(struct wschannel_frame *f, enum jmsg_channel channel,
                                const struct view *parts, const struct jsonscan_value *v,
                                const struct jmsg *m, const char *fill_date)
{
    size_t count = (size_t)m->buffer_count + 1, table = 4 * (count + 1);

    f->binary = 1;
    for (size_t i = 0; i <= count; i++)
        add(f, VIEW_STR("\0\0\0\0"));
    add_document(f, channel, parts, v, fill_date);
    if (f->error < 0)
        return 0;
    put_be32(f, 0, count);
    put_be32(f, 1, table);
    for (unsigned i = 0; i < m->buffer_count; i++) {
        put_be32(f, 2 + i, f->total);
        add(f, m->buffers[i]);
        if (f->error < 0)
            return 0;
    }
    return f->total > UINT32_MAX ? -EMSGSIZE : 0;
}

static int encode_legacy(struct wschannel_frame *f, enum jmsg_channel channel,
                         const struct view *parts, const struct jmsg *m, const char *fill_date,
                         struct err *e)
{
    const struct jsonscan_rules rules = { JSONSCAN_NAN, JSONSCAN_DEPTH_MAX };
    struct jsonscan_value v[KEYS];
    int rc = jsonscan_object(parts[0], &rules, keys, KEYS, v, NULL, e);

    if (rc < 0) {
        err_wrap(e, "header");
        return rc;
    }
    if (m->buffer_count == 0) { /* receivers refuse a binary message without buffers */
        add_document(f, channel, parts, v, fill_date);
        return 0;
    }
    rc = encode_legacy_binary(f, channel, parts, v, m, fill_date);
    return rc < 0 ? err_set(e, -rc, "message is too large for 32-bit offsets") : 0;
}

int wschannel_encode(struct wschannel_frame *f, enum wschannel_framing framing,
                     enum jmsg_channel channel, const struct jmsg *m, const char *fill_date,
                     struct err *e)
{
    struct view parts[JMSG_PARTS];
    int rc = 0;

    frame_clear(f);
    prepare_parts(f, m, parts);
    if (framing == WSCHANNEL_V1)
        encode_v1(f, view_cstr(jmsg_channel_name(channel)), parts, m);
    else if (f->error == 0)
        rc = encode_legacy(f, channel, parts, m, fill_date, e);
    if (rc < 0) {
        frame_clear(f);
        return rc;
    }
    return finish(f, e);
}

int wschannel_flatten(const struct wschannel_frame *f, struct buf *out)
{
    int rc = buf_reserve(out, f->total);

    for (unsigned i = 0; rc == 0 && i < f->count; i++)
        rc = buf_add_view(out, f->segments[i]);
    return rc;
}
