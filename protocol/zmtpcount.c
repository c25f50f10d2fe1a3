#include "zmtpcount.h"

#include <string.h>

enum { STAGE_GREETING, STAGE_HEAD, STAGE_BODY };
enum { MORE = 1, LARGE = 2, COMMAND = 4 }; /* flags of a frame */
enum {
    SIGNATURE = 10, /* 0xff, eight bytes, 0x7f */
    REVISION = 10,
    ZMTP_1 = 0, /* revisions as they stand in greetings */
    ZMTP_2 = 1,
    GREETING_2 = 12,
    GREETING_3 = 64,
    IDENTITY_MAX = 255,
};

static int fail(struct zmtpcount *z, const char *why)
{
    z->fault = why;
    return 0;
}

/* Of a message that ended nothing is left to count. */
static void begin_head(struct zmtpcount *z)
{
    z->stage = STAGE_HEAD;
    z->head_n = 0;
}

static int take_greeting(struct zmtpcount *z, uint8_t byte)
{
    uint32_t at = z->greeted;

    /* Without the signature it is ZMTP 1.0 (libzmq 2, of 2010), or anything. */
    if ((at == 0 && byte != 0xff) || (at == SIGNATURE - 1 && !(byte & 1)) ||
        (at == REVISION && byte == ZMTP_1))
        return fail(z, "it sent no greeting of ZMTP 2.0 or later");
    if (at == REVISION) {
        z->version = byte;
        z->identity = byte == ZMTP_2;
    }
    z->greeted++;
    if (z->greeted > REVISION && z->greeted == (z->version == ZMTP_2 ? GREETING_2 : GREETING_3))
        begin_head(z);
    return 1;
}

static uint64_t size_of(const struct zmtpcount *z)
{
    uint64_t n = 0;

    if (!(z->head[0] & LARGE))
        return z->head[1];
    for (unsigned i = 1; i < ZMTPCOUNT_HEAD; i++)
        n = n << 8 | z->head[i];
    return n;
}

static void end_frame(struct zmtpcount *z, const struct zmtpcount_ops *ops, void *arg)
{
    begin_head(z);
    if (z->flags & COMMAND)
        return;
    if (z->identity) {
        z->identity = 0;
        return;
    }
    if (z->flags & MORE)
        return;
    z->in_message = 0;
    z->parts = 0;
    z->bytes = 0;
    ops->message(arg);
}

/* A frame of a message. */
static int begin_part(struct zmtpcount *z, const struct zmtpcount_limits *l, uint64_t n,
                      const struct zmtpcount_ops *ops, void *arg)
{
    if (z->parts >= l->parts)
        return fail(z, "a message had more parts than any may have");
    /* One part that is too large alone ends the connection by the library's own limit, and costs
     * nothing before: that is no more than a message lost. */
    if (n <= l->part && n > l->message - z->bytes)
        return fail(z, "a message was larger than any may be");
    if (n <= l->part && !ops->allow(arg, n, !z->in_message))
        return 0;
    z->parts++;
    z->bytes += n <= l->part ? n : 0;
    z->in_message = 1;
    return 1;
}

/* Whatever the library takes for its handshake, or for an identity, must be none of a message here:
 * it looks at neither flag, and a frame that one of the two counts alone shifts the numbers of all
 * that follow. */
static int begin_frame(struct zmtpcount *z, const struct zmtpcount_limits *l,
                       const struct zmtpcount_ops *ops, void *arg)
{
    uint64_t n = size_of(z);

    z->flags = z->head[0];
    if (z->identity) {
        if (z->flags & (COMMAND | MORE))
            return fail(z, "it sent no identity where one has to be");
        if (n > IDENTITY_MAX)
            return fail(z, "it sent an identity longer than any may be");
    } else if (z->flags & COMMAND) {
        if (n == 0 || n > ZMTPCOUNT_COMMAND_MAX || z->flags & MORE)
            return fail(z, "it sent a command of ZMTP that is none");
        z->shaken = 1;
    } else if (!z->shaken && z->version != ZMTP_2) {
        return fail(z, "it sent a message before the handshake");
    } else if (!begin_part(z, l, n, ops, arg)) {
        return 0;
    }
    z->left = n;
    z->command_n = 0;
    z->stage = STAGE_BODY;
    return 1;
}

/* Up to the end of the head, which is begin_frame()'s to let by. */
static int take_head(struct zmtpcount *z, const struct zmtpcount_limits *l, uint8_t byte,
                     const struct zmtpcount_ops *ops, void *arg)
{
    z->head[z->head_n] = byte;
    unsigned all = z->head[0] & LARGE ? ZMTPCOUNT_HEAD : 2;
    if (z->head_n + 1U == all && !begin_frame(z, l, ops, arg))
        return 0;
    z->head_n++;
    if (z->head_n == all && z->left == 0)
        end_frame(z, ops, arg);
    return 1;
}

/*
 * PING and PONG, READY and ERROR have names of 4 and 5 bytes. A SUBSCRIBE or CANCEL would be queued
 * as a message by the library, and kernels subscribe to nothing. A PING (RFC 37) has two bytes of a
 * time to live, which the library (libzmq 4.3.4) reads and answers beyond the end of a shorter one.
 * The time makes it end the connection by a timer, at a moment that the peer chose: not even who
 * reads no more is safe from that then (zguard_receive()). Heartbeats come without one by default.
 */
static int look_at_command(struct zmtpcount *z, uint8_t byte)
{
    static const uint8_t ping[] = { 4, 'P', 'I', 'N', 'G' };

    z->command[z->command_n++] = byte;
    if (z->command[0] != 4 && z->command[0] != 5)
        return fail(z, "it sent a command of ZMTP that is none");
    if (z->command_n < sizeof ping || memcmp(z->command, ping, sizeof ping) != 0)
        return 1;
    if (z->command_n > sizeof ping && byte != 0)
        return fail(z, "it sent a PING with a time to live");
    if (z->command_n < ZMTPCOUNT_PING && z->left == 1)
        return fail(z, "it sent a PING without a time to live");
    return 1;
}

static size_t take_body(struct zmtpcount *z, const uint8_t *p, size_t n,
                        const struct zmtpcount_ops *ops, void *arg)
{
    const int looks = z->flags & COMMAND && z->command_n < ZMTPCOUNT_PING;
    size_t taken = looks ? 1 : n < z->left ? n : (size_t)z->left;

    if (looks && !look_at_command(z, p[0]))
        return 0;
    z->left -= taken;
    if (z->left == 0)
        end_frame(z, ops, arg);
    return taken;
}

size_t zmtpcount_take(struct zmtpcount *z, const struct zmtpcount_limits *l, const uint8_t *p,
                      size_t n, const struct zmtpcount_ops *ops, void *arg)
{
    size_t taken = 0;

    while (taken < n && z->fault == NULL) {
        size_t step = z->stage == STAGE_BODY   ? take_body(z, p + taken, n - taken, ops, arg)
                      : z->stage == STAGE_HEAD ? (size_t)take_head(z, l, p[taken], ops, arg)
                                               : (size_t)take_greeting(z, p[taken]);
        if (step == 0)
            break;
        taken += step;
    }
    return taken;
}

const char *zmtpcount_fault(const struct zmtpcount *z)
{
    return z->fault;
}

uint64_t zmtpcount_allowed(const struct zmtpcount *z)
{
    return z->stage == STAGE_BODY ? z->left : 0;
}

int zmtpcount_in_message(const struct zmtpcount *z)
{
    return z->in_message;
}
