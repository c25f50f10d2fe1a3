/*
 * loop - the gateway's one event loop, a thin skin over libuv so that only
 * loop.c and the files of connections and ZMQ sockets see uv.h.
 *
 * Callbacks run one after another on the loop's thread. A handle that was
 * closed never calls back again; its memory goes in a later turn.
 */
#ifndef HC_LOOP_H
#define HC_LOOP_H

#include <stdint.h>

#include "cleanup.h"

struct err;
struct loop;
struct loop_timer; /* opaque, owned by who made it */
struct loop_poll;

typedef void loop_fn(void *arg);
typedef void
loop_poll_fn(void *arg,
             int events); /* LOOP_READ | LOOP_WRITE | LOOP_PRI, negative errno on failure */

enum { LOOP_READ = 1, LOOP_WRITE = 2, LOOP_PRI = 4 };

struct loop *loop_new(void);
struct loop *
loop_free(struct loop *l);     /* after loop_run() returned; checks that no handle is left open */
void loop_run(struct loop *l); /* until loop_stop() and the last close */
void loop_stop(struct loop *l);
void *loop_uv(struct loop *l); /* the uv_loop_t *, for connection and channel files */

uint64_t loop_now_ms(const struct loop *l); /* CLOCK_MONOTONIC of this turn */
uint64_t clock_realtime_us(void);           /* CLOCK_REALTIME, microseconds since 1970 */
uint64_t clock_monotonic_us(void);          /* CLOCK_MONOTONIC, now */

/* Runs fn once, delay_ms from now; a repeat of 0 means once. */
struct loop_timer *loop_timer_start(struct loop *l, uint64_t delay_ms, uint64_t repeat_ms,
                                    loop_fn *fn, void *arg);
struct loop_timer *loop_timer_close(struct loop_timer *t); /* NULL-safe, returns NULL */

struct loop_poll *
loop_poll_start(struct loop *l, int fd, int events, loop_poll_fn *fn,
                void *arg); /* fd stays the caller's: close it after loop_poll_close() */
void loop_poll_events(struct loop_poll *p, int events);
struct loop_poll *loop_poll_close(struct loop_poll *p);

/* Before each sleep and after each wake: where ZMQ's edge-triggered descriptors
 * are served (house-style.md B5 trap 1). before() returns 1 when something is
 * readable already, and the loop then does not sleep. */
void loop_hooks(struct loop *l, int (*before)(void *arg), loop_fn *after, void *arg);

#endif
