#include "runclock.h"

#include <string.h>

/* What came from a note may lie ahead. */
static uint64_t since(uint64_t then, uint64_t now)
{
    return now > then ? now - then : 0;
}

void runclock_run(struct runclock *c, uint64_t now_ms)
{
    if (c->since_ms == 0 && c->asked_ms == 0)
        c->since_ms = now_ms;
}

void runclock_withdraw(struct runclock *c)
{
    if (c->rung == RUNCLOCK_WAIT && c->asked_ms == 0)
        c->since_ms = 0;
}

void runclock_ask(struct runclock *c, uint64_t now_ms)
{
    if (c->asked_ms != 0) /* a second question gives no more time to the first */
        return;
    if (c->since_ms != 0)
        c->ran_ms += since(c->since_ms, now_ms);
    c->since_ms = 0;
    c->asked_ms = now_ms;
}

void runclock_answer(struct runclock *c, uint64_t now_ms)
{
    if (c->asked_ms == 0)
        return;
    c->waited_ms += since(c->asked_ms, now_ms);
    c->asked_ms = 0;
    c->since_ms = now_ms;
}

void runclock_shift(struct runclock *c, uint64_t ms)
{
    if (c->since_ms != 0)
        c->since_ms += ms;
    if (c->asked_ms != 0)
        c->asked_ms += ms;
    if (c->rung != RUNCLOCK_WAIT)
        c->due_ms += ms;
}

static uint64_t cell_time(const struct runclock *c, uint64_t stdin_ms, uint64_t now)
{
    uint64_t waited = c->waited_ms + (c->asked_ms != 0 ? since(c->asked_ms, now) : 0);

    return c->ran_ms + (c->since_ms != 0 ? since(c->since_ms, now) : 0) + since(stdin_ms, waited);
}

static int has_passed(struct runclock *c, const struct time_limits *l, uint64_t now)
{
    if (l->stdin_ms != 0 && c->asked_ms != 0 && since(c->asked_ms, now) >= l->stdin_ms) {
        c->why = RUNCLOCK_STDIN;
        return 1;
    }
    c->why = RUNCLOCK_CELL;
    return l->cell_ms != 0 && (c->since_ms != 0 || c->asked_ms != 0) &&
           cell_time(c, l->stdin_ms, now) >= l->cell_ms;
}

static enum runclock_rung take(struct runclock *c, enum runclock_rung rung)
{
    if (rung <= c->rung)
        return RUNCLOCK_WAIT;
    c->rung = rung;
    return rung;
}

enum runclock_rung runclock_check(struct runclock *c, const struct time_limits *limits,
                                  uint64_t now_ms)
{
    if (now_ms < c->hold_ms)
        return RUNCLOCK_WAIT;
    if (c->rung == RUNCLOCK_WAIT) {
        if (!has_passed(c, limits, now_ms))
            return RUNCLOCK_WAIT;
        c->due_ms = now_ms;
    }
    uint64_t late = since(c->due_ms, now_ms);
    return take(c, late >= RUNCLOCK_END_MS     ? RUNCLOCK_END
                   : late >= RUNCLOCK_AGAIN_MS ? RUNCLOCK_INTERRUPT_AGAIN
                                               : RUNCLOCK_INTERRUPT);
}

/* ---- in a note ---- */

static void put(uint8_t **at, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        *(*at)++ = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t **at)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < 8; i++)
        value |= (uint64_t) * (*at)++ << (8 * i);
    return value;
}

void runclock_pack(const struct runclock *c, uint8_t out[RUNCLOCK_BYTES])
{
    put(&out, c->ran_ms);
    put(&out, c->since_ms);
    put(&out, c->waited_ms);
    put(&out, c->asked_ms);
}

static uint64_t no_later(uint64_t then, uint64_t now)
{
    return then < now ? then : now;
}

void runclock_adopt(struct runclock *c, const uint8_t in[RUNCLOCK_BYTES], uint64_t now_ms)
{
    *c = (struct runclock){ .hold_ms = now_ms + RUNCLOCK_ADOPTED_MS };
    c->ran_ms = get(&in);
    c->since_ms = no_later(get(&in), now_ms);
    c->waited_ms = get(&in);
    c->asked_ms = no_later(get(&in), now_ms);
    if (c->since_ms != 0 && c->asked_ms != 0) /* never both */
        c->asked_ms = 0;
}
