/*
 * jmsg - a Jupyter message as it travels over ZeroMQ:
 *     [routing...] <IDS|MSG> signature header parent_header metadata content buffer*
 * Everything is a view into the caller's frames; the JSON parts are never
 * re-serialised. A message that breaks a rule costs only itself.
 */
#ifndef HC_JMSG_H
#define HC_JMSG_H

#include <stddef.h>

#include "buf.h"
#include "jsonscan.h"

struct err;

#define JMSG_DELIMITER "<IDS|MSG>"
#define JMSG_VERSION   "5.4" /* of the headers that we make */

enum {
    JMSG_PARTS = 4,        /* header, parent_header, metadata, content: the signed ones */
    JMSG_FRAMES_FIXED = 6, /* delimiter, signature and the parts */
    JMSG_SIGNATURE_SIZE = 2 * 64 + 1, /* digits of the longest digest and a NUL */
};

/* Ceilings for one message; all sizes in bytes. */
struct jmsg_limits {
    size_t frame;    /* each frame */
    size_t message;  /* sum of the frames */
    size_t header;   /* header and parent_header, each */
    unsigned frames; /* routing frames and delimiter included */
    unsigned depth;  /* JSON nesting in a part */
};

/* 64 MB, 128 MB, 64 KB, 1024 frames, depth 512. */
extern const struct jmsg_limits jmsg_limits_default;

enum jmsg_channel { JMSG_SHELL, JMSG_CONTROL, JMSG_STDIN, JMSG_IOPUB, JMSG_CHANNELS };

const char *jmsg_channel_name(enum jmsg_channel channel); /* "shell", ... */
int jmsg_channel_find(struct view name);                  /* the channel, or -1 */

struct jmsg {
    const struct view *routing; /* routing_count frames; borrowed, as all below */
    unsigned routing_count;
    struct view signature; /* hexadecimal text, or empty */
    union {
        struct view parts[JMSG_PARTS]; /* in the order they are signed */
        struct {
            struct view header, parent_header, metadata, content;
        };
    };
    const struct view *buffers; /* buffer_count frames */
    unsigned buffer_count;
};

/* Splits the frames of one multipart message; ret borrows from the array too.
 * -HC_EPARSE (no delimiter, fewer than 5 frames after it), -HC_ELIMIT. */
int jmsg_parse(const struct view *frames, size_t count, const struct jmsg_limits *limits,
               struct jmsg *ret, struct err *e) MUST_CHECK;

uint64_t jmsg_bytes(const struct jmsg *m); /* of the four parts and the buffers */

/* The values of a header's keys, each absent when the key is. */
struct jmsg_header {
    struct jsonscan_value msg_id, msg_type, session, username, date, version, subshell_id;
};

/* Validates a header (an object within the limits) and finds its keys. */
int jmsg_header_scan(struct view header, const struct jmsg_limits *limits, struct jmsg_header *ret,
                     struct err *e) MUST_CHECK;

struct jmsg_facts {
    struct jmsg_header header;
    struct jmsg_header parent;               /* all absent when parent_header is {} or null */
    struct jsonscan_notes notes[JMSG_PARTS]; /* e.g. invalid UTF-8 in the part */
};

/* Validates all four parts: JSON within the limits; NaN tokens and invalid UTF-8
 * in strings pass; the header must be an object. The fields of the header are
 * for the caller to judge. The error names the part. */
int jmsg_scan(const struct jmsg *m, const struct jmsg_limits *limits, struct jmsg_facts *ret,
              struct err *e) MUST_CHECK;

/* A signature scheme with its key, made once per kernel generation: the keyed
 * state is computed here, a message costs the hash of its bytes. Not for two
 * threads at once. */
struct jmsg_key;

/* scheme is "hmac-<hash>", e.g. "hmac-sha256"; key is used as the bytes of its
 * text; empty = nothing is signed or checked. -EINVAL for an unknown scheme. */
int jmsg_key_new(struct view scheme, struct view key, struct jmsg_key **ret,
                 struct err *e) MUST_CHECK;
struct jmsg_key *jmsg_key_free(struct jmsg_key *k); /* accepts NULL, returns NULL */

/* Writes the signature of the parts as lower-case hexadecimal text and returns
 * its length (0 for an empty key). */
int jmsg_sign(struct jmsg_key *k, const struct view parts[JMSG_PARTS],
              char ret_hex[JMSG_SIGNATURE_SIZE], struct err *e) MUST_CHECK;

/* 0, or -HC_EAUTH when the message is unsigned or the signature is not its own. */
int jmsg_verify(struct jmsg_key *k, const struct jmsg *m, struct err *e) MUST_CHECK;

/* The frames to send: routing, delimiter, signature, parts, buffers. Signs m
 * into hex, which the frames borrow. Returns the number of frames, -EMSGSIZE
 * when there are more than max. */
int jmsg_pack(struct jmsg_key *k, const struct jmsg *m, char hex[JMSG_SIGNATURE_SIZE],
              struct view *ret_frames, size_t max, struct err *e) MUST_CHECK;

/* A header of our own; username and the others are UTF-8, date is ISO 8601 with zone. */
struct jmsg_own {
    struct view msg_id, msg_type, session, username, date;
    struct view subshell_id; /* left out when it is empty */
};

/* Appends the header's JSON to out. */
int jmsg_header_write(const struct jmsg_own *own, struct buf *out, struct err *e) MUST_CHECK;

#endif
