/*
 * wsframe - RFC 6455 frames, server side: incremental decoder of what clients
 * send, encoder of what the server sends, the payload of close frames.
 */
#ifndef HC_WSFRAME_H
#define HC_WSFRAME_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "cleanup.h"

struct err;
struct wsframe; /* opaque: fields live in wsframe.c */

enum ws_opcode {
    WS_CONTINUATION = 0, /* never a message's opcode */
    WS_TEXT = 1,
    WS_BINARY = 2,
    WS_CLOSE = 8,
    WS_PING = 9,
    WS_PONG = 10,
};

/* Close codes of RFC 6455 7.4.1 that this program sends or must know. */
enum {
    WS_NORMAL = 1000,
    WS_GOING_AWAY = 1001,
    WS_PROTOCOL_ERROR = 1002,
    WS_UNSUPPORTED = 1003,
    WS_NO_STATUS = 1005, /* never on the wire: the close frame was empty */
    WS_BAD_DATA = 1007,  /* text that is not UTF-8 */
    WS_POLICY = 1008,
    WS_TOO_BIG = 1009,
    WS_INTERNAL = 1011,
    WS_TRY_LATER = 1013,
};

#define WS_CONTROL_MAX 125 /* bytes of payload in a control frame */
#define WS_HEADER_MAX  10  /* bytes of a server frame's header */

/* max_message bounds a data message over all its frames. Caller owns the result
 * and ends it with wsframe_free(). */
struct wsframe *wsframe_new(size_t max_message);
struct wsframe *wsframe_free(struct wsframe *w); /* accepts NULL, returns NULL */

/*
 * Takes up to len bytes; *used says how many. Returns 1 when a message is ready:
 * a whole data message with its fragments joined, or a control frame, which may
 * come between the fragments of a message. 0 when more bytes are needed (all
 * were taken). A negative code when the connection must fail: e has the reason,
 * wsframe_close_code() the code to send; the decoder takes nothing after that.
 * Memory follows the bytes received, not the length that a frame announces.
 */
int wsframe_feed(struct wsframe *w, const void *in, size_t len, size_t *used,
                 struct err *e) MUST_CHECK;

/* Of the ready message: WS_TEXT, WS_BINARY, WS_CLOSE, WS_PING or WS_PONG. */
enum ws_opcode wsframe_opcode(const struct wsframe *w);

/* Borrowed: valid until the next feed, take, release or free. Never NULL. */
const uint8_t *wsframe_payload(const struct wsframe *w, size_t *len);

/* Hands the payload of a ready data message over without a copy: the caller ends
 * it with free(). NULL with *len 0 for an empty message. */
uint8_t *wsframe_take_payload(struct wsframe *w, size_t *len);

/*
 * What a ready data message is to be read as: WS_TEXT (checked to be UTF-8) or
 * WS_BINARY; -HC_EPARSE for text that is not UTF-8 (close 1007). A text message
 * whose first byte is 0x00 is WS_BINARY: Jupyter's proxy sends the browser's
 * binary messages on in text frames (ipywidgets#3798), so the decoder itself
 * does not look at UTF-8.
 */
int wsframe_kind(const struct wsframe *w, struct err *e) MUST_CHECK;

/* After a failure: 1002, 1009 or (no memory) 1011. 0 otherwise. */
int wsframe_close_code(const struct wsframe *w);

/* 1 between the first byte of a frame and the end of its message. */
int wsframe_busy(const struct wsframe *w);

/* Drops a ready message and, when no message is being received, gives all memory
 * back. To be called when a connection has nothing more to read. */
void wsframe_release(struct wsframe *w);

/* Writes the header of a server frame (never masked); returns its size. Control
 * frames: fin set, len <= WS_CONTROL_MAX. */
size_t ws_header_encode(enum ws_opcode opcode, int fin, uint64_t len, uint8_t out[WS_HEADER_MAX]);

struct ws_close {
    int code;           /* WS_NO_STATUS when the payload was empty */
    struct view reason; /* UTF-8; borrowed from the payload */
};

/* -HC_EPARSE for a payload of 1 byte, a code that may not be sent (answer 1002)
 * or a reason that is not UTF-8 (answer 1007); *answer is the code to send back
 * in every case. */
int ws_close_parse(struct view payload, struct ws_close *close, int *answer,
                   struct err *e) MUST_CHECK;

/* Writes a close frame's payload, the reason cut to fit at a code point; returns its size. */
size_t ws_close_encode(int code, struct view reason, uint8_t out[WS_CONTROL_MAX]);

/* XORs n bytes with the mask, whose first byte to use is mask[phase % 4]; in and
 * out may be the same, else they do not overlap. Returns the phase to go on with. */
unsigned ws_unmask(uint8_t *out, const uint8_t *in, size_t n, const uint8_t mask[4],
                   unsigned phase);

#endif
