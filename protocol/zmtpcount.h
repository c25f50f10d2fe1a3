/*
 * zmtpcount - follows the bytes that a kernel sends on a ZMTP connection (RFC 23, RFC 37, and ZMTP
 * 2.0) without keeping any: how many parts, how large, where messages end. Who hands the bytes on
 * learns what they will cost before they do.
 */
#ifndef HC_ZMTPCOUNT_H
#define HC_ZMTPCOUNT_H

#include <stddef.h>
#include <stdint.h>

enum {
    ZMTPCOUNT_HEAD = 9,
    ZMTPCOUNT_COMMAND_MAX = 512, /* bytes; of ours none is above 100 */
    ZMTPCOUNT_PING = 7,          /* bytes of the shortest: its name, and two of a time to live */
};

struct zmtpcount_limits {
    uint64_t part;    /* bytes of one; whoever reads refuses the connection above it */
    uint64_t message; /* bytes of all its parts */
    uint32_t parts;   /* of one message */
};

struct zmtpcount_ops {
    /* A part of a message is announced; `first` of its message. 0: its bytes, and the last one of
     * its head, stay where they are. */
    int (*allow)(void *arg, uint64_t part, int first);
    void (*message)(void *arg); /* the last byte of a message went by */
};

/* Zeroed at the start of a connection; private. */
struct zmtpcount {
    uint8_t stage, flags, version;
    uint8_t head[ZMTPCOUNT_HEAD];
    uint8_t head_n;
    uint8_t in_message; /* a part with more to come went by */
    uint8_t identity;   /* ZMTP 2.0: the first frame is none of a message */
    uint8_t shaken;     /* a command, which begins the handshake, went by */
    uint32_t greeted;   /* bytes of the greeting */
    uint32_t parts;
    uint64_t left;                              /* of the frame */
    uint64_t bytes;                             /* of the message */
    uint8_t command[ZMTPCOUNT_PING], command_n; /* how it begins; as much of it went by */
    const char *fault;
};

/* How many of the next n bytes may go by: all, or fewer when allow() said no or the limits are
 * broken; zmtpcount_fault() tells which. After a fault nothing goes by. */
size_t zmtpcount_take(struct zmtpcount *z, const struct zmtpcount_limits *l, const uint8_t *p,
                      size_t n, const struct zmtpcount_ops *ops, void *arg);
/* What the peer did that no peer may, in words, or NULL. */
const char *zmtpcount_fault(const struct zmtpcount *z);
/* So many of the next bytes belong to a frame that was allowed already. */
uint64_t zmtpcount_allowed(const struct zmtpcount *z);
/* 1 when a message has begun and not ended. */
int zmtpcount_in_message(const struct zmtpcount *z);

#endif
