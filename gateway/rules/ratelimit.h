/*
 * ratelimit - how much of a kernel's output one socket is sent, by the rules of
 * jupyter_server (ZMQChannelsWebsocketConnection). Pure.
 *
 * Rates are counts within the window, divided by it. A limit that is crossed stays so
 * until the rate is below 80 % of it; what is dropped meanwhile does not count.
 */
#ifndef HC_RATELIMIT_H
#define HC_RATELIMIT_H

#include <stdint.h>

enum { RATELIMIT_SLICES = 64, RATELIMIT_WINDOW_MS = 3000 };

struct ratelimit_config {
    uint64_t messages;  /* a second; 0: no limit */
    uint64_t bytes;     /* of streams, a second; 0: no limit */
    uint64_t window_ms; /* 0: 3 s */
};

static inline int ratelimit_is_set(const struct ratelimit_config *c)
{
    return c->messages > 0 || c->bytes > 0;
}

struct ratelimit {
    struct ratelimit_config config;
    struct {
        uint64_t number; /* of the slice of time that the counts are of */
        uint64_t messages, bytes;
    } slices[RATELIMIT_SLICES];
    int over_messages, over_bytes;
};

enum ratelimit_verdict {
    RATELIMIT_PASS,
    RATELIMIT_DROP,
    RATELIMIT_DROP_MESSAGES, /* likewise, and it is the first: the client is told */
    RATELIMIT_DROP_BYTES,
};

void ratelimit_init(struct ratelimit *r, const struct ratelimit_config *c);
/* An idle status, of whomever: all is counted anew. */
void ratelimit_idle(struct ratelimit *r);
/* 1: messages of this type always pass. */
int ratelimit_exempts(const char *type);
/* One that does not. bytes: of all its parts for a stream, else 0. */
enum ratelimit_verdict ratelimit_ask(struct ratelimit *r, uint64_t bytes, uint64_t now_ms);

#endif
