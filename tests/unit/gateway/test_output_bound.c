/* How often the output that clients have not taken is counted over all connections. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "auth.h"
#include "conn.h"
#include "err.h"
#include "httpconn.h"
#include "loop.h"
#include "router.h"
#include "server.h"

enum { LARGE = 1024 * 1024, STEP = 64 * 1024, NEVER_MS = 600000 };

struct world {
    struct loop *loop;
    struct server *server;
    struct listener listener;
    struct conn *conn; /* the only one */
    struct loop_timer *timer;
    int peer, again; /* again: what the last look said */
};

static void find(struct conn *c, void *arg)
{
    *(struct conn **)arg = c;
}

static void start(struct world *w)
{
    const struct auth_config config = { .open = 1 };
    const struct server_limits limits = { .connections = 8,
                                          .head_ms = NEVER_MS,
                                          .body_ms = NEVER_MS,
                                          .idle_ms = NEVER_MS,
                                          .stall_ms = NEVER_MS,
                                          .output = 1 << 30 };
    struct auth *auth = NULL;
    struct err e = { 0 };
    int ends[2];

    *w = (struct world){ .loop = loop_new(), .again = -1 };
    assert_int_equal(auth_new(&config, &auth, &e), 0);
    w->server = server_new(w->loop, router_new("/"), auth, xstrdup(""), xstrdup(""), &limits);
    w->listener = (struct listener){ .server = w->server, .fd = -1, .unix_socket = 1 };
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    w->peer = ends[0];
    httpconn_start(&w->listener, ends[1]);
    conns_each(w->server->conns, find, &w->conn);
    assert_non_null(w->conn);
}

/* 1 when all output was counted and found too much. */
static int write_and_look(struct world *w, size_t n)
{
    static const uint8_t bytes[LARGE];

    conn_write(w->conn, &(struct view){ bytes, n }, 1);
    return server_bound_output(w->server, w->conn);
}

static void on_end(void *arg)
{
    struct world *w = arg;

    if (server_connections(w->server) > 0)
        return;
    w->timer = loop_timer_close(w->timer);
    w->server = server_free(w->server);
    loop_stop(w->loop);
}

static void finish(struct world *w)
{
    server_abort(w->server);
    w->timer = loop_timer_start(w->loop, 0, 1, on_end, w);
    loop_run(w->loop);
    w->loop = loop_free(w->loop);
    close(w->peer);
}

static void small_frames_that_nobody_takes_are_counted_once_in_a_while(void **state)
{
    struct world w;
    unsigned frames = 1;

    (void)state;
    start(&w);
    assert_false(write_and_look(&w, LARGE));
    assert_true(conn_queued(w.conn) > STEP);
    w.server->limits.output = 1; /* the next look ends the connection: that is how it is seen */
    while (!write_and_look(&w, 2) && frames <= STEP)
        frames++;
    assert_int_equal(frames, STEP / 2);
    assert_true(conn_ended(w.conn));
    finish(&w);
}

static void on_take(void *arg)
{
    struct world *w = arg;
    static char scratch[64 * 1024];

    while (recv(w->peer, scratch, sizeof scratch, 0) > 0)
        ;
    if (conn_queued(w->conn) > 0)
        return;
    w->timer = loop_timer_close(w->timer);
    w->again = write_and_look(w, LARGE);
    server_abort(w->server);
    w->timer = loop_timer_start(w->loop, 0, 1, on_end, w);
}

static void what_was_taken_and_comes_again_is_counted_again(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    assert_false(write_and_look(&w, LARGE));
    w.server->limits.output = 1;
    w.timer = loop_timer_start(w.loop, 0, 1, on_take, &w);
    loop_run(w.loop);
    w.loop = loop_free(w.loop);
    close(w.peer);
    assert_int_equal(w.again, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_frames_that_nobody_takes_are_counted_once_in_a_while),
        cmocka_unit_test(what_was_taken_and_comes_again_is_counted_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
