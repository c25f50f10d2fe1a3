/*
 * The whole front on bytes of one connection: HTTP, upgrade, WebSocket, routes,
 * on the fake core. The first byte says in which pieces the rest comes. What
 * comes back must be HTTP, and nothing of the connection may stay behind.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <uv.h>

#include "auth.h"
#include "cleanup.h"
#include "err.h"
#include "fake_core.h"
#include "httpconn.h"
#include "jupyter.h"
#include "nbsessions.h"
#include "router.h"
#include "server.h"
#include "sessions.h"

static struct loop *loop;
static struct server *server;
static struct jupyter jupyter;

static void nothing(void *arg, uint64_t token, struct kernel *k, const struct err *e)
{
    (void)arg;
    (void)token;
    (void)k;
    (void)e;
}

/* A kernel of a known id for the seeds, made again when an input deleted it. */
static void make_kernel(void)
{
    struct principal p = { .name = "default" };
    struct kernel_request r = { .kernel_id = "00000000-0000-4000-8000-00000000cafe" };

    sessions_create_kernel(jupyter.sessions, &p, &r, nothing, NULL, 0);
}

static void start(void)
{
    struct server_limits limits = { .connections = 8,
                                    .head_ms = 60000,
                                    .body_ms = 60000,
                                    .idle_ms = 60000,
                                    .stall_ms = 60000,
                                    .ws_silence_ms = 60000,
                                    .ws_message = 65536,
                                    .bodies = 1 << 20,
                                    .ws_messages = 1 << 20 };
    struct auth *auth = NULL;

    check(auth_new(&(struct auth_config){ .token = "t" }, &auth, NULL) == 0);
    loop = loop_new();
    fake.max_kernels = 4;
    server = server_new(loop, router_new("/"), auth, xstrdup(""), xstrdup(""), &limits);
    jupyter = (struct jupyter){ .server = server,
                                .sessions = fake_sessions_new(loop),
                                .specs = fake_specs_new("/nonexistent"),
                                .notebooks = nbsessions_new(),
                                .base = "/",
                                .version = "1",
                                .list_kernels = 1 };
    router_add(server->router, jupyter_routes, jupyter_route_count, &jupyter);
}

/* Runs what is ready and takes what was answered; keeps the first bytes. */
static void step(int fd, char *first, size_t size, size_t *got)
{
    static char scratch[65536];
    ssize_t n;

    for (int i = 0; i < 6; i++)
        uv_run(loop_uv(loop), UV_RUN_NOWAIT);
    while ((n = recv(fd, scratch, sizeof scratch, MSG_DONTWAIT)) > 0) {
        size_t take = (size_t)n < size - *got ? (size_t)n : size - *got;

        memcpy(first + *got, scratch, take);
        *got += take;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char first[9];
    size_t got = 0, piece;
    int fds[2];

    if (n < 1)
        return 0;
    if (server == NULL)
        start();
    make_kernel();
    piece = data[0] == 0 ? n : data[0];
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    httpconn_start(&(struct listener){ .server = server, .fd = -1 }, fds[0]);
    for (size_t at = 1; at < n; at += piece) {
        size_t want = n - at < piece ? n - at : piece;

        if (send(fds[1], data + at, want, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break;
        step(fds[1], first, sizeof first, &got);
    }
    step(fds[1], first, sizeof first, &got);
    check(memcmp(first, "HTTP/1.1 ", got) == 0);
    close(fds[1]);
    for (int i = 0; i < 100 && server_connections(server) > 0; i++)
        uv_run(loop_uv(loop), UV_RUN_NOWAIT);
    if (server_connections(server) > 0) { /* one that a full kernel holds */
        server_abort(server);
        for (int i = 0; i < 4; i++)
            uv_run(loop_uv(loop), UV_RUN_NOWAIT);
    }
    check(server_connections(server) == 0 && fake.clients == 0 && jupyter.calls == 0);
    check(server->waiting == NULL && server->tenants.first == NULL);
    for (unsigned i = 0; i < TENANT_GOODS; i++)
        check(server->tenants.all[i] == 0);
    return 0;
}
