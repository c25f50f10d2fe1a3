#include "wsframe.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "err.h"
#include "utf8.h"

#define HEAD_MAX  14   /* bytes of a client frame's header */
#define KEEP_SIZE 4096 /* a message buffer up to this is kept for the next message */

struct wsframe {
    size_t max;
    int close_code; /* not 0: the connection has failed */

    uint8_t head[HEAD_MAX]; /* of the present frame, as far as received */
    unsigned head_len;
    int in_payload; /* the header is complete */
    uint64_t left;  /* bytes of the present frame's payload still to come */
    unsigned phase; /* of the mask */

    enum ws_opcode message; /* the data message under construction; 0: none */
    uint8_t *data;          /* owned: its payload so far */
    size_t len, size;
    uint8_t control[WS_CONTROL_MAX];
    size_t control_len;
    enum ws_opcode ready; /* of the message handed out by the last feed; 0: none */
};

struct wsframe *wsframe_new(size_t max_message)
{
    struct wsframe *w = xcalloc(1, sizeof *w);

    w->max = max_message;
    return w;
}

struct wsframe *wsframe_free(struct wsframe *w)
{
    if (w != NULL) {
        free(w->data);
        free(w);
    }
    return NULL;
}

static int fail(struct wsframe *w, int close_code, struct err *e, const char *why)
{
    w->close_code = close_code;
    return err_set(e, close_code == WS_TOO_BIG ? HC_ELIMIT : HC_EPARSE, "%s", why);
}

static int is_control(enum ws_opcode opcode)
{
    return opcode >= WS_CLOSE;
}

static enum ws_opcode frame_opcode(const struct wsframe *w)
{
    return (enum ws_opcode)(w->head[0] & 0x0f);
}

static int frame_fin(const struct wsframe *w)
{
    return w->head[0] >> 7;
}

static void data_drop(struct wsframe *w)
{
    free(w->data);
    w->data = NULL;
    w->len = w->size = 0;
}

/* The message handed out last is the caller's no longer. */
static void ready_drop(struct wsframe *w)
{
    if (w->ready == WS_TEXT || w->ready == WS_BINARY) {
        w->len = 0;
        if (w->size > KEEP_SIZE)
            data_drop(w);
    }
    w->ready = 0;
}

/* RFC 6455 5.2 and 5.4, on the two bytes that every frame has. */
static int head_check(struct wsframe *w, struct err *e)
{
    enum ws_opcode opcode = frame_opcode(w);

    if (w->head[0] & 0x70)
        return fail(w, WS_PROTOCOL_ERROR, e, "reserved bits without an extension");
    if ((opcode > WS_BINARY && opcode < WS_CLOSE) || opcode > WS_PONG)
        return fail(w, WS_PROTOCOL_ERROR, e, "unknown opcode");
    if (!(w->head[1] & 0x80))
        return fail(w, WS_PROTOCOL_ERROR, e, "a client frame without a mask");
    if (is_control(opcode)) {
        if (!frame_fin(w))
            return fail(w, WS_PROTOCOL_ERROR, e, "a fragmented control frame");
        if ((w->head[1] & 0x7f) > WS_CONTROL_MAX)
            return fail(w, WS_PROTOCOL_ERROR, e, "a control frame of more than 125 bytes");
        return 0;
    }
    if (opcode == WS_CONTINUATION && w->message == 0)
        return fail(w, WS_PROTOCOL_ERROR, e, "a continuation of nothing");
    if (opcode != WS_CONTINUATION && w->message != 0)
        return fail(w, WS_PROTOCOL_ERROR, e, "a new message within a fragmented one");
    return 0;
}

static unsigned head_size(const struct wsframe *w)
{
    unsigned size = w->head[1] & 0x7f;

    if (w->head_len < 2)
        return 2;
    return size < 126 ? 6 : size == 126 ? 8 : 14;
}

/* RFC 6455 5.2: the length is in its shortest form and has 63 bits at most. */
static int head_length(struct wsframe *w, struct err *e)
{
    uint64_t length = w->head[1] & 0x7f;

    if (length == 126) {
        uint16_t wide;

        memcpy(&wide, w->head + 2, sizeof wide);
        length = be16toh(wide);
        if (length < 126)
            return fail(w, WS_PROTOCOL_ERROR, e, "a length that is not in its shortest form");
    } else if (length == 127) {
        uint64_t wide;

        memcpy(&wide, w->head + 2, sizeof wide);
        length = be64toh(wide);
        if (length > INT64_MAX)
            return fail(w, WS_PROTOCOL_ERROR, e, "a length of more than 63 bits");
        if (length <= UINT16_MAX)
            return fail(w, WS_PROTOCOL_ERROR, e, "a length that is not in its shortest form");
    }
    if (!is_control(frame_opcode(w)) && length > w->max - w->len)
        return fail(w, WS_TOO_BIG, e, "the message is too large");
    w->left = length;
    return 0;
}

/* All of a frame is there: 1 when that makes a message. */
static int frame_end(struct wsframe *w)
{
    enum ws_opcode opcode = frame_opcode(w);
    int fin = frame_fin(w);

    w->in_payload = 0;
    w->head_len = 0;
    if (is_control(opcode)) {
        w->ready = opcode;
        return 1;
    }
    if (fin) {
        w->ready = w->message;
        w->message = 0;
    }
    return fin;
}

static int take_head(struct wsframe *w, const uint8_t *in, size_t len, size_t *used, struct err *e)
{
    int rc = 0;

    while (*used < len && w->head_len < head_size(w) && rc == 0) {
        w->head[w->head_len++] = in[(*used)++];
        if (w->head_len == 2)
            rc = head_check(w, e);
        if (rc == 0 && w->head_len >= 2 && w->head_len + 4 == head_size(w))
            rc = head_length(w, e); /* only the mask is still to come */
    }
    if (rc < 0 || w->head_len < head_size(w))
        return rc;
    w->in_payload = 1;
    w->phase = 0;
    if (is_control(frame_opcode(w)))
        w->control_len = 0;
    else if (w->message == 0)
        w->message = frame_opcode(w);
    return w->left == 0 ? frame_end(w) : 0;
}

/*
 * Room for n more bytes. Grows with what was received, so that a peer which only
 * announces a large frame costs nothing; never beyond what the message can have.
 */
static int data_reserve(struct wsframe *w, size_t n, struct err *e)
{
    size_t most = frame_fin(w) ? w->len + (size_t)w->left : w->max;
    size_t size = w->size > most / 2 ? most : w->size * 2;

    if (n <= w->size - w->len)
        return 0;
    if (size < w->len + n)
        size = w->len + n;
    uint8_t *data = realloc(w->data, size);
    if (data == NULL) {
        w->close_code = WS_INTERNAL;
        return err_set(e, ENOMEM, "no memory for a message");
    }
    w->data = data;
    w->size = size;
    return 0;
}

static int take_data(struct wsframe *w, const uint8_t *in, size_t len, size_t *used, struct err *e)
{
    size_t n = w->left < len - *used ? (size_t)w->left : len - *used;
    const uint8_t *mask = w->head + head_size(w) - 4;
    int rc = 0;

    if (is_control(frame_opcode(w))) {
        w->phase = ws_unmask(w->control + w->control_len, in + *used, n, mask, w->phase);
        w->control_len += n;
    } else {
        rc = data_reserve(w, n, e);
        if (rc < 0)
            return rc;
        w->phase = ws_unmask(w->data + w->len, in + *used, n, mask, w->phase);
        w->len += n;
    }
    *used += n;
    w->left -= n;
    return w->left == 0 ? frame_end(w) : 0;
}

int wsframe_feed(struct wsframe *w, const void *in, size_t len, size_t *used, struct err *e)
{
    size_t i = 0;
    int rc = 0;

    if (w->close_code != 0)
        return err_set(e, HC_ESTATE, "the connection has failed before");
    ready_drop(w);
    while (rc == 0 && i < len)
        rc = w->in_payload ? take_data(w, in, len, &i, e) : take_head(w, in, len, &i, e);
    *used = i;
    return rc;
}

enum ws_opcode wsframe_opcode(const struct wsframe *w)
{
    check(w->ready != 0);
    return w->ready;
}

const uint8_t *wsframe_payload(const struct wsframe *w, size_t *len)
{
    check(w->ready != 0);
    if (is_control(w->ready)) {
        *len = w->control_len;
        return w->control;
    }
    *len = w->len;
    return w->len > 0 ? w->data : (const uint8_t *)"";
}

uint8_t *wsframe_take_payload(struct wsframe *w, size_t *len)
{
    check(w->ready == WS_TEXT || w->ready == WS_BINARY);
    uint8_t *data = w->data;

    *len = w->len;
    w->ready = 0;
    if (w->len == 0)
        return NULL;
    if (w->size - w->len > KEEP_SIZE) {
        uint8_t *exact = realloc(data, w->len);

        data = exact != NULL ? exact : data;
    }
    w->data = NULL;
    w->len = w->size = 0;
    return data;
}

int wsframe_kind(const struct wsframe *w, struct err *e)
{
    check(w->ready == WS_TEXT || w->ready == WS_BINARY);
    struct view v = { w->data, w->len };

    if (w->ready == WS_BINARY || (v.n > 0 && v.p[0] == 0))
        return WS_BINARY;
    return utf8_valid(v) ? WS_TEXT : err_set(e, HC_EPARSE, "a text message is not UTF-8");
}

int wsframe_close_code(const struct wsframe *w)
{
    return w->close_code;
}

int wsframe_busy(const struct wsframe *w)
{
    return w->head_len > 0 || w->message != 0;
}

void wsframe_release(struct wsframe *w)
{
    ready_drop(w);
    if (w->message == 0)
        data_drop(w);
}

unsigned ws_unmask(uint8_t *out, const uint8_t *in, size_t n, const uint8_t mask[4], unsigned phase)
{
    uint8_t pattern[8];
    uint64_t words, v;
    size_t i = 0;

    for (unsigned k = 0; k < sizeof pattern; k++)
        pattern[k] = mask[(phase + k) % 4];
    memcpy(&words, pattern, sizeof words);
    for (; n - i >= sizeof v; i += sizeof v) {
        memcpy(&v, in + i, sizeof v);
        v ^= words;
        memcpy(out + i, &v, sizeof v);
    }
    for (; i < n; i++)
        out[i] = in[i] ^ pattern[i % sizeof pattern];
    return (unsigned)((phase + n) % 4);
}
