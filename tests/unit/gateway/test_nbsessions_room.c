/* What happens when there is no room for another notebook session: of one principal, of all. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "auth.h"
#include "err.h"
#include "fake_core.h"
#include "httpconn.h"
#include "jupyter.h"
#include "loop.h"
#include "nbsessions_own.h"
#include "router.h"
#include "server.h"

enum { NEVER_MS = 600000, DEADLINE_MS = 10000 };

static const char gone[] = "00000000-0000-4000-8000-00000000dead";

/* A front that this file can look into; the table is touched only while nothing is asked. */
struct world {
    pthread_t thread;
    struct loop *loop;
    struct loop_timer *timer;
    struct listener listener;
    struct jupyter jupyter;
    struct server *server;
    int peer;
    atomic_int stopping;
};

static void on_tick(void *arg)
{
    struct world *w = arg;

    if (!w->stopping)
        return;
    server_abort(w->server);
    if (server_connections(w->server) > 0 || w->jupyter.calls > 0)
        return;
    w->timer = loop_timer_close(w->timer);
    w->server = server_free(w->server);
    w->jupyter.sessions = fake_sessions_free(w->jupyter.sessions);
    loop_stop(w->loop);
}

static void *run(void *arg)
{
    const struct world *w = arg;

    loop_run(w->loop);
    return NULL;
}

static void start(struct world *w)
{
    const struct auth_config config = { .token = "secret" };
    const struct server_limits limits = { .connections = 8,
                                          .head_ms = NEVER_MS,
                                          .body_ms = NEVER_MS,
                                          .idle_ms = NEVER_MS,
                                          .stall_ms = NEVER_MS,
                                          .bodies = 1 << 20,
                                          .output = 1 << 20 };
    struct router *router = router_new("/");
    struct auth *auth = NULL;
    struct err e = { 0 };
    int ends[2];

    fake_reset();
    *w = (struct world){ .loop = loop_new() };
    assert_int_equal(auth_new(&config, &auth, &e), 0);
    w->server = server_new(w->loop, router, auth, xstrdup(""), xstrdup(""), &limits);
    w->jupyter = (struct jupyter){ .server = w->server,
                                   .sessions = fake_sessions_new(w->loop),
                                   .notebooks = nbsessions_new(),
                                   .base = router_base(router),
                                   .list_kernels = 1 };
    router_add(router, jupyter_routes, jupyter_route_count, &w->jupyter);
    w->listener = (struct listener){ .server = w->server, .fd = -1, .unix_socket = 1 };
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    w->peer = ends[0];
    httpconn_start(&w->listener, ends[1]);
    w->timer = loop_timer_start(w->loop, 1, 1, on_tick, w);
    assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

static void finish(struct world *w)
{
    w->stopping = 1;
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    w->jupyter.notebooks = nbsessions_free(w->jupyter.notebooks);
    w->loop = loop_free(w->loop);
    close(w->peer);
}

/* One whose kernel has gone; token: what it waits for. */
static void add(struct world *w, const char *owner, size_t path_n, uint64_t token)
{
    struct nbsession_body body = { .path = xcalloc(1, path_n + 1), .type = xstrdup("notebook") };
    struct principal p = { .role = ROLE_FULL };
    struct nbsession *s = NULL;
    struct err e = { 0 };

    snprintf(p.name, sizeof p.name, "%s", owner);
    memset(body.path, 'x', path_n);
    if (nbsessions_add(w->jupyter.notebooks, &p, &body, &s, &e) != 0)
        fail_msg("%s", e.msg);
    memcpy(s->kernel_id, gone, sizeof s->kernel_id);
    s->token = token;
    nbsession_body_free(&body);
}

/* Asks for a session; the answer's status, and its text in out. */
static int ask(struct world *w, char out[4096])
{
    static const char body[] =
        "{\"path\":\"mine\",\"type\":\"notebook\",\"kernel\":{\"name\":\"fake\"}}";
    struct pollfd p = { .fd = w->peer, .events = POLLIN };
    size_t n = 0;
    int status = 0;

    n = (size_t)snprintf(out, 4096,
                         "POST /api/sessions HTTP/1.1\r\nHost: a\r\nAuthorization: token secret\r\n"
                         "Content-Length: %zu\r\n\r\n%s",
                         sizeof body - 1, body);
    assert_int_equal(send(w->peer, out, n, 0), n);
    assert_int_equal(poll(&p, 1, DEADLINE_MS), 1); /* answers come in one piece */
    ssize_t got = recv(w->peer, out, 4095, 0);
    assert_true(got > 0);
    out[got] = '\0';
    assert_int_equal(sscanf(out, "HTTP/1.1 %d ", &status), 1);
    return status;
}

static int has(const struct world *w, const char *owner, size_t path_n)
{
    for (const struct nbsession *s = nbsessions_first(w->jupyter.notebooks); s != NULL; s = s->next)
        if (strcmp(s->owner, owner) == 0 && strlen(s->path) == path_n)
            return 1;
    return 0;
}

static void who_has_no_room_gets_it_from_its_own_that_are_gone_alone(void **state)
{
    enum { ALL = NBSESSIONS_TEXT_MAX - sizeof "notebook" };
    char text[4096];
    struct world w;

    (void)state;
    start(&w);
    add(&w, "other", 7, 0); /* the fake core ends the test when it is asked for this one */
    add(&w, "default", ALL, 0);
    assert_int_equal(ask(&w, text), 201);
    assert_false(has(&w, "default", ALL));
    assert_true(has(&w, "other", 7));
    finish(&w);
}

static void what_is_still_being_started_makes_no_room(void **state)
{
    char text[4096];
    struct world w;

    (void)state;
    start(&w);
    add(&w, "default", NBSESSIONS_TEXT_MAX - sizeof "notebook", UINT64_MAX);
    assert_int_equal(ask(&w, text), 403);
    assert_non_null(strstr(text, "4096 sessions"));
    finish(&w);
}

static void when_nobody_has_room_it_is_for_now_and_tells_of_nobody(void **state)
{
    char text[4096];
    struct world w;

    (void)state;
    start(&w);
    add(&w, "default", 7, UINT64_MAX);
    w.jupyter.notebooks->count = NBSESSIONS_ALL_MAX;
    assert_int_equal(ask(&w, text), 503);
    assert_non_null(strstr(text, "retry_after"));
    assert_null(strstr(text, "4096"));
    assert_null(strstr(text, "65536"));
    w.jupyter.notebooks->count = 1;
    add(&w, "default", 8, 0); /* one that is of no use to anybody */
    w.jupyter.notebooks->count = NBSESSIONS_ALL_MAX;
    assert_int_equal(ask(&w, text), 201);
    assert_false(has(&w, "default", 8));
    assert_true(has(&w, "default", 7));
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_no_room_gets_it_from_its_own_that_are_gone_alone),
        cmocka_unit_test(what_is_still_being_started_makes_no_room),
        cmocka_unit_test(when_nobody_has_room_it_is_for_now_and_tells_of_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
