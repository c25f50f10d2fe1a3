#include "ratelimit.h"

#include <string.h>

enum { RESUME_PERCENT = 80 };

void ratelimit_init(struct ratelimit *r, const struct ratelimit_config *c)
{
    memset(r, 0, sizeof *r);
    r->config = *c;
    if (r->config.window_ms == 0)
        r->config.window_ms = RATELIMIT_WINDOW_MS;
}

void ratelimit_idle(struct ratelimit *r)
{
    const struct ratelimit_config c = r->config;

    ratelimit_init(r, &c);
}

int ratelimit_exempts(const char *type)
{
    static const char *const types[] = { "status", "comm_open", "execute_input" };

    for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(type, types[i]) == 0)
            return 1;
    }
    return 0;
}

static uint64_t slice_of(const struct ratelimit *r, uint64_t now_ms)
{
    return now_ms * RATELIMIT_SLICES / r->config.window_ms + 1; /* 0 is one never used */
}

static void sum(const struct ratelimit *r, uint64_t slice, uint64_t *messages, uint64_t *bytes)
{
    *messages = *bytes = 0;
    for (unsigned i = 0; i < RATELIMIT_SLICES; i++) {
        if (r->slices[i].number == 0 || r->slices[i].number + RATELIMIT_SLICES <= slice)
            continue;
        *messages += r->slices[i].messages;
        *bytes += r->slices[i].bytes;
    }
}

/* Keeps *over; 1 when it has just come up. */
static int judge(const struct ratelimit *r, uint64_t count, uint64_t limit, int *over)
{
    /* count / window > limit, in whole numbers */
    const uint64_t rate = count * 1000, most = limit * r->config.window_ms;

    if (limit == 0)
        return 0;
    if (rate > most) {
        int first = !*over;
        *over = 1;
        return first;
    }
    if (rate * 100 < most * RESUME_PERCENT)
        *over = 0;
    return 0;
}

enum ratelimit_verdict ratelimit_ask(struct ratelimit *r, uint64_t bytes, uint64_t now_ms)
{
    uint64_t slice = slice_of(r, now_ms), sent_messages, sent_bytes;

    sum(r, slice, &sent_messages, &sent_bytes);
    int first_messages = judge(r, sent_messages + 1, r->config.messages, &r->over_messages);
    int first_bytes = judge(r, sent_bytes + bytes, r->config.bytes, &r->over_bytes);
    if (r->over_messages || r->over_bytes)
        return first_messages ? RATELIMIT_DROP_MESSAGES
               : first_bytes  ? RATELIMIT_DROP_BYTES
                              : RATELIMIT_DROP;
    unsigned i = slice % RATELIMIT_SLICES;
    if (r->slices[i].number != slice) {
        r->slices[i].number = slice;
        r->slices[i].messages = r->slices[i].bytes = 0;
    }
    r->slices[i].messages++;
    r->slices[i].bytes += bytes;
    return RATELIMIT_PASS;
}
