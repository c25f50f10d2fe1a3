/*
 * wschannel - Jupyter messages on the WebSocket /api/kernels/ID/channels, in
 * both framings: v1.kernel.websocket.jupyter.org (binary, little-endian 64-bit
 * offsets) and legacy (one JSON text; with buffers big-endian 32-bit offsets).
 * A payload here is that of a whole WebSocket message; signatures never travel.
 */
#ifndef HC_WSCHANNEL_H
#define HC_WSCHANNEL_H

#include <stddef.h>

#include "buf.h"
#include "jmsg.h"

struct err;

#define WSCHANNEL_V1_PROTOCOL "v1.kernel.websocket.jupyter.org"

enum wschannel_framing { WSCHANNEL_LEGACY, WSCHANNEL_V1 };

/* --- server to client ---------------------------------------------------- */

/* An encoded payload as segments for writev: short pieces are collected in the
 * struct's own memory, long ones borrow from the message. Keep one and use it
 * for message after message. Callers read binary, total, segments, count. */
struct wschannel_frame {
    int binary;                      /* WebSocket opcode: 1 binary, 0 text */
    size_t total;                    /* payload bytes */
    struct view *segments;           /* count of them, in order; owned */
    unsigned count;                  /* may exceed IOV_MAX */
    unsigned room;                   /* private, as all below */
    int error;                       /* the first that happened */
    size_t *offsets;                 /* of the segments in own; SIZE_MAX = borrowed */
    struct buf own;                  /* short pieces */
    struct buf repaired[JMSG_PARTS]; /* parts that were not valid UTF-8 */
};

void wschannel_frame_init(struct wschannel_frame *f);
/* Gives the memory back; accepts a zeroed one; usable again afterwards. */
void wschannel_frame_free(struct wschannel_frame *f);

/* Encodes the parts and buffers of m. Precondition: jmsg_scan() passed (legacy
 * splices the parts into one JSON text). A part that is not valid UTF-8 is sent
 * with U+FFFD for each invalid sequence, an empty one as {}, the others as they
 * are. fill_date, an ISO 8601 text, is for legacy headers whose `date` is absent
 * or null (NULL: leave it); such a `version` or `username` is filled in there as
 * well, because JupyterLab's validator refuses these messages of old kernels.
 * The segments are valid until the next encode or free and as long as m is.
 * -HC_EPARSE for a legacy header that is no object, -EMSGSIZE when an offset does
 * not fit the legacy framing, -ENOMEM; the frame is empty then. */
int wschannel_encode(struct wschannel_frame *f, enum wschannel_framing framing,
                     enum jmsg_channel channel, const struct jmsg *m, const char *fill_date,
                     struct err *e) MUST_CHECK;

/* Appends the whole payload to out: -EMSGSIZE above its maximum, -ENOMEM. */
int wschannel_flatten(const struct wschannel_frame *f, struct buf *out) MUST_CHECK;

/* --- client to server ---------------------------------------------------- */

/* A decoded payload. Zero it before the first use; use it for payload after
 * payload; end with wschannel_in_free(). */
struct wschannel_in {
    enum jmsg_channel channel;
    struct jmsg msg;      /* no routing, no signature; borrows from the payload and from here */
    struct view *buffers; /* private: owned array behind msg.buffers */
    unsigned room;        /* private */
};

void wschannel_in_free(struct wschannel_in *in);

/* Decodes one payload of a socket that speaks framing; text is 1 for a text
 * message. Text on a v1 socket is read as legacy, a text that begins with a NUL
 * byte is a legacy binary message (JupyterLab's proxy forwards binary so): check
 * UTF-8 of texts only when wschannel_is_binary_text() says 0.
 * Missing or null parts become {}, a missing or null channel shell; other
 * channels than the four, parts that are no objects or not JSON, bad offsets:
 * -HC_EPARSE; above the limits -HC_ELIMIT. Such a payload is to be dropped with
 * a log line and the socket kept. */
int wschannel_decode(struct wschannel_in *in, enum wschannel_framing framing, int text,
                     struct view payload, const struct jmsg_limits *limits,
                     struct err *e) MUST_CHECK;

static inline int wschannel_is_binary_text(struct view payload)
{
    return payload.n > 0 && payload.p[0] == 0;
}

#endif
