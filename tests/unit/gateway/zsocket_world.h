/* zsocket_world - for the tests of zsocket: a loop, and the kernel's side of the sockets. */
#ifndef HC_TEST_ZSOCKET_WORLD_H
#define HC_TEST_ZSOCKET_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "zsocket.h"

struct loop_timer;

enum { DEALERS = 32 };

struct fixture {
    struct loop *loop;
    struct deferred *deferred;
    struct zsockets *all;
    void *ctx, *peer, *router; /* the kernel's side */
    char endpoint[64];
    struct loop_timer *late, *tick;
    unsigned messages, want, gone, writable, joined;
    char order[64];
    struct zsocket *dealers[DEALERS];
    unsigned sent[DEALERS], echoed;
};

int zsocket_world_setup(void **state); /* fails the test when it takes more than a minute */
int zsocket_world_teardown(void **state);

/* The kernel's side, by ZMQ. */
void bind_peer(struct fixture *f, int type);
/* A zsocket_fn: ends the loop once as many messages came as are wanted. */
void on_count(void *arg, const struct view *frames, size_t count);

struct raw { /* a kernel's socket without ZMQ */
    int listener, peer;
    struct zsocket *dealer;
};
void open_raw(struct fixture *f, struct raw *r, const struct zsocket_ops *ops);
void close_raw(struct raw *r);
void say(struct raw *r, const void *bytes, size_t n);

#define TEST(name) \
    cmocka_unit_test_setup_teardown(name, zsocket_world_setup, zsocket_world_teardown)

#endif
