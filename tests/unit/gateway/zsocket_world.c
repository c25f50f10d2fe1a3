#include "zsocket_world.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "deferred.h"
#include "err.h"
#include "loop.h"

static void too_late(void *arg)
{
    (void)arg;
    fail_msg("nothing happened in 60 s");
}

int zsocket_world_setup(void **state)
{
    static unsigned number;
    struct fixture *f = xcalloc(1, sizeof *f);

    snprintf(f->endpoint, sizeof f->endpoint, "ipc:///tmp/zsocket-%d-%u", (int)getpid(), ++number);
    f->loop = loop_new();
    f->deferred = deferred_new(f->loop);
    f->all = zsockets_new(f->loop, f->deferred, NULL);
    f->ctx = zmq_ctx_new();
    f->late = loop_timer_start(f->loop, 60000, 0, too_late, f);
    *state = f;
    return 0;
}

int zsocket_world_teardown(void **state)
{
    struct fixture *f = *state;
    int none = 0;

    if (f->peer != NULL) {
        zmq_setsockopt(f->peer, ZMQ_LINGER, &none, sizeof none);
        zmq_close(f->peer);
    }
    if (f->router != NULL)
        zmq_close(f->router);
    zmq_ctx_term(f->ctx);
    unlink(f->endpoint + strlen("ipc://"));
    f->late = loop_timer_close(f->late);
    f->tick = loop_timer_close(f->tick);
    f->all = zsockets_free(f->all);
    f->deferred = deferred_close(f->deferred);
    f->loop = loop_free(f->loop);
    free(f);
    return 0;
}

void bind_peer(struct fixture *f, int type)
{
    int none = 0;

    f->peer = zmq_socket(f->ctx, type);
    zmq_setsockopt(f->peer, ZMQ_SNDHWM, &none, sizeof none);
    assert_int_equal(zmq_bind(f->peer, f->endpoint), 0);
}

void on_count(void *arg, const struct view *frames, size_t count)
{
    struct fixture *f = arg;

    (void)frames;
    (void)count;
    if (++f->messages == f->want)
        loop_stop(f->loop);
}

void open_raw(struct fixture *f, struct raw *r, const struct zsocket_ops *ops)
{
    const struct zsocket_options o = { .type = ZSOCKET_DEALER,
                                       .path = f->endpoint + strlen("ipc://"),
                                       .identity = "d" };
    struct sockaddr_un a = { .sun_family = AF_UNIX };

    snprintf(a.sun_path, sizeof a.sun_path, "%s", f->endpoint + strlen("ipc://"));
    r->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(r->listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(r->listener, 1), 0);
    assert_int_equal(zsocket_open(f->all, &o, ops, f, &r->dealer, NULL), 0);
}

void close_raw(struct raw *r)
{
    r->dealer = zsocket_close(r->dealer);
    close(r->peer);
    close(r->listener);
}

void say(struct raw *r, const void *bytes, size_t n)
{
    assert_int_equal(send(r->peer, bytes, n, MSG_NOSIGNAL), n);
}
