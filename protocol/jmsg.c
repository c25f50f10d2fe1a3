#include "jmsg.h"

#include <errno.h>
#include <string.h>

#include "err.h"
#include "jsonwrite.h"

const struct jmsg_limits jmsg_limits_default = {
    .frame = 64u << 20,
    .message = 128u << 20,
    .header = 64u << 10,
    .frames = 1024,
    .depth = 512,
};

static const char *const part_names[JMSG_PARTS] = { "header", "parent_header", "metadata",
                                                    "content" };

static const char *const channel_names[JMSG_CHANNELS] = {
    [JMSG_SHELL] = "shell",
    [JMSG_CONTROL] = "control",
    [JMSG_STDIN] = "stdin",
    [JMSG_IOPUB] = "iopub",
};

const char *jmsg_channel_name(enum jmsg_channel channel)
{
    check((unsigned)channel < JMSG_CHANNELS);
    return channel_names[channel];
}

int jmsg_channel_find(struct view name)
{
    for (int i = 0; i < JMSG_CHANNELS; i++)
        if (view_equals(name, channel_names[i]))
            return i;
    return -1;
}

static int check_sizes(const struct view *frames, size_t count, const struct jmsg_limits *limits,
                       struct err *e)
{
    size_t left = limits->message;

    if (count > limits->frames)
        return err_set(e, HC_ELIMIT, "message of %zu frames; the limit is %u", count,
                       limits->frames);
    for (size_t i = 0; i < count; i++) {
        if (frames[i].n > limits->frame)
            return err_set(e, HC_ELIMIT, "frame of %zu bytes; the limit is %zu", frames[i].n,
                           limits->frame);
        if (frames[i].n > left)
            return err_set(e, HC_ELIMIT, "message is larger than the limit of %zu bytes",
                           limits->message);
        left -= frames[i].n;
    }
    return 0;
}

int jmsg_parse(const struct view *frames, size_t count, const struct jmsg_limits *limits,
               struct jmsg *ret, struct err *e)
{
    size_t at = 0;
    int rc = check_sizes(frames, count, limits, e);

    if (rc < 0)
        return rc;
    /* The number of routing frames says nothing: none on a DEALER, any number of
     * topics on iopub (ipykernel's iopub_welcome has none). */
    while (at < count && !view_equals(frames[at], JMSG_DELIMITER))
        at++;
    if (at == count)
        return err_set(e, HC_EPARSE, "no delimiter in a message of %zu frames", count);
    if (count - at < JMSG_FRAMES_FIXED)
        return err_set(e, HC_EPARSE, "%zu frames follow the delimiter; 5 are needed",
                       count - at - 1);

    struct jmsg m = {
        .routing = frames,
        .routing_count = (unsigned)at,
        .signature = frames[at + 1],
        .buffers = frames + at + JMSG_FRAMES_FIXED,
        .buffer_count = (unsigned)(count - at - JMSG_FRAMES_FIXED),
    };
    for (int i = 0; i < JMSG_PARTS; i++)
        m.parts[i] = frames[at + 2 + (size_t)i];
    *ret = m;
    return 0;
}

uint64_t jmsg_bytes(const struct jmsg *m)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < JMSG_PARTS; i++)
        bytes += m->parts[i].n;
    for (unsigned i = 0; i < m->buffer_count; i++)
        bytes += m->buffers[i].n;
    return bytes;
}

enum { HEADER_KEYS = 7 };
static const char *const header_keys[HEADER_KEYS] = {
    "msg_id", "msg_type", "session", "username", "date", "version", "subshell_id",
};

static struct jsonscan_rules rules_of(const struct jmsg_limits *limits)
{
    return (struct jsonscan_rules){ JSONSCAN_NAN | JSONSCAN_BAD_UTF8, limits->depth };
}

static int header_scan(struct view header, const struct jmsg_limits *limits,
                       struct jmsg_header *ret, struct jsonscan_notes *ret_notes, struct err *e)
{
    struct jsonscan_rules rules = rules_of(limits);
    struct jsonscan_value v[HEADER_KEYS];

    if (header.n > limits->header)
        return err_set(e, HC_ELIMIT, "%zu bytes; the limit is %zu", header.n, limits->header);
    int rc = jsonscan_object(header, &rules, header_keys, HEADER_KEYS, v, ret_notes, e);
    if (rc < 0)
        return rc;
    *ret = (struct jmsg_header){ v[0], v[1], v[2], v[3], v[4], v[5], v[6] };
    return 0;
}

int jmsg_header_scan(struct view header, const struct jmsg_limits *limits, struct jmsg_header *ret,
                     struct err *e)
{
    int rc = header_scan(header, limits, ret, NULL, e);

    if (rc < 0)
        err_wrap(e, "header");
    return rc;
}

/* {} is the rule for a message without a parent; null is seen too. */
static int parent_scan(struct view parent, const struct jmsg_limits *limits,
                       struct jmsg_header *ret, struct jsonscan_notes *ret_notes, struct err *e)
{
    const struct jsonscan_rules scalar = { 0, 0 };
    struct jsonscan_value v;

    if (parent.n <= limits->header && jsonscan_text(parent, &scalar, &v, ret_notes, NULL) == 0 &&
        v.kind == JSONSCAN_NULL) {
        *ret = (struct jmsg_header){ 0 };
        return 0;
    }
    return header_scan(parent, limits, ret, ret_notes, e);
}

int jmsg_scan(const struct jmsg *m, const struct jmsg_limits *limits, struct jmsg_facts *ret,
              struct err *e)
{
    struct jsonscan_rules rules = rules_of(limits);
    struct jmsg_facts facts = { 0 };
    int rc = 0;

    for (int i = 0; i < JMSG_PARTS && rc == 0; i++) {
        struct jsonscan_notes *notes = &facts.notes[i];

        if (i == 0)
            rc = header_scan(m->parts[i], limits, &facts.header, notes, e);
        else if (i == 1)
            rc = parent_scan(m->parts[i], limits, &facts.parent, notes, e);
        else
            rc = jsonscan_text(m->parts[i], &rules, NULL, notes, e);
        if (rc < 0)
            err_wrap(e, "%s", part_names[i]);
    }
    if (rc == 0)
        *ret = facts;
    return rc;
}

int jmsg_pack(struct jmsg_key *k, const struct jmsg *m, char hex[JMSG_SIGNATURE_SIZE],
              struct view *ret_frames, size_t max, struct err *e)
{
    size_t count = (size_t)m->routing_count + JMSG_FRAMES_FIXED + m->buffer_count;
    size_t at = 0;

    if (count > max || count > INT32_MAX)
        return err_set(e, EMSGSIZE, "message of %zu frames; there is room for %zu", count, max);
    int digits = jmsg_sign(k, m->parts, hex, e);
    if (digits < 0)
        return digits;
    for (unsigned i = 0; i < m->routing_count; i++)
        ret_frames[at++] = m->routing[i];
    ret_frames[at++] = VIEW_STR(JMSG_DELIMITER);
    ret_frames[at++] = (struct view){ (const uint8_t *)hex, (size_t)digits };
    for (int i = 0; i < JMSG_PARTS; i++)
        ret_frames[at++] = m->parts[i];
    for (unsigned i = 0; i < m->buffer_count; i++)
        ret_frames[at++] = m->buffers[i];
    return (int)at;
}

int jmsg_header_write(const struct jmsg_own *own, struct buf *out, struct err *e)
{
    struct jsonwrite w = jsonwrite_to(out);

    jsonwrite_object(&w);
    jsonwrite_key(&w, "msg_id");
    jsonwrite_string(&w, own->msg_id);
    jsonwrite_key(&w, "msg_type");
    jsonwrite_string(&w, own->msg_type);
    jsonwrite_key(&w, "session");
    jsonwrite_string(&w, own->session);
    jsonwrite_key(&w, "username");
    jsonwrite_string(&w, own->username);
    jsonwrite_key(&w, "date");
    jsonwrite_string(&w, own->date);
    jsonwrite_key(&w, "version");
    jsonwrite_str(&w, JMSG_VERSION);
    if (own->subshell_id.n > 0) {
        jsonwrite_key(&w, "subshell_id");
        jsonwrite_string(&w, own->subshell_id);
    }
    jsonwrite_end(&w);
    return jsonwrite_finish(&w, e);
}
