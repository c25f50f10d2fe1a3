#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

#include "cleanup.h"
#include "err.h"
#include "fake_core.h"
#include "loop.h"
#include "tunnel.h"

struct harness {
    pthread_t thread;
    struct loop *loop;
    struct loop_poll *wake;
    struct sessions *sessions;
    struct kernelspecs *specs;
    struct front *front;
    struct front_config config;
    int listen_fd, wake_fd, port, stopping;
    char dir[64];
    struct tunnels *tunnels; /* NULL: clients speak plain */
};

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[200];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void on_done(void *arg)
{
    struct harness *h = arg;

    h->front = NULL;
    h->wake = loop_poll_close(h->wake);
    loop_stop(h->loop);
}

static void on_wake(void *arg, int events)
{
    struct harness *h = arg;
    uint64_t n;

    (void)events;
    if (read(h->wake_fd, &n, sizeof n) == sizeof n && !h->stopping) {
        h->stopping = 1;
        front_stop(h->front, on_done, h);
    }
}

static void *run(void *arg)
{
    struct harness *h = arg;

    loop_run(h->loop);
    h->sessions = fake_sessions_free(h->sessions);
    h->specs = fake_specs_free(h->specs);
    h->loop = loop_free(h->loop);
    return NULL;
}

static int listen_socket(int *port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t n = sizeof a;

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 512), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

/* HC_TEST_TLS: the same tests, with TLS between client and front. */
int harness_tunnelled(void)
{
    return getenv("HC_TEST_TLS") != NULL;
}

static struct harness *start(const struct front_config *config, const char *token)
{
    struct harness *h = xcalloc(1, sizeof *h);
    struct err e = { 0 };

    fake_reset();
    strcpy(h->dir, "/tmp/hc-front-XXXXXX");
    assert_non_null(mkdtemp(h->dir));
    write_file(h->dir, "logo-64x64.png", "\x89PNG");
    write_file(h->dir, "kernel.js", "// script");
    if (config != NULL)
        h->config = *config;
    h->config.token = token;
    h->config.version = "1.2.3";
    if (harness_tunnelled() && h->config.tls_cert == NULL) {
        h->tunnels = tunnels_new();
        h->config.tls_cert = tunnels_cert(h->tunnels);
        h->config.tls_key = tunnels_key(h->tunnels);
    }
    h->listen_fd = listen_socket(&h->port);
    h->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    h->loop = loop_new();
    h->sessions = fake_sessions_new(h->loop);
    h->specs = fake_specs_new(h->dir);
    h->wake = loop_poll_start(h->loop, h->wake_fd, LOOP_READ, on_wake, h);
    if (front_start(h->loop, h->sessions, h->specs, &h->config, &h->listen_fd, 1, &h->front, &e) !=
        0)
        fail_msg("front_start: %s", e.msg);
    assert_int_equal(pthread_create(&h->thread, NULL, run, h), 0);
    return h;
}

struct harness *harness_start(const struct front_config *config)
{
    return start(config, "secret");
}

struct harness *harness_start_open(const struct front_config *config)
{
    return start(config, NULL);
}

const char *harness_dir(const struct harness *h)
{
    return h->dir;
}

int harness_port(const struct harness *h)
{
    return h->port;
}

void harness_stop_begin(struct harness *h)
{
    uint64_t one = 1;

    assert_int_equal(write(h->wake_fd, &one, sizeof one), sizeof one);
}

void harness_stop(struct harness *h)
{
    char path[200];

    harness_stop_begin(h);
    assert_int_equal(pthread_join(h->thread, NULL), 0);
    assert_int_equal(fake.calls, 0);
    assert_int_equal(fake.clients, 0);
    h->tunnels = tunnels_free(h->tunnels);
    close(h->listen_fd);
    close(h->wake_fd);
    snprintf(path, sizeof path, "%s/logo-64x64.png", h->dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/kernel.js", h->dir);
    unlink(path);
    rmdir(h->dir);
    free(h);
}

/* ---- client --------------------------------------------------------------- */

int dial(struct harness *h)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons((uint16_t)h->port),
                             .sin_addr = { htonl(INADDR_LOOPBACK) } };

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return h->tunnels != NULL ? tunnel_open(h->tunnels, fd) : fd;
}

void hang_up(int fd)
{
    close(fd);
}

void reset(int fd)
{
    struct linger hard = { 1, 0 };

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
}

/* The peer may close at any time: that is for the test to see when it reads. */
void put_bytes(int fd, const void *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t sent = send(fd, (const char *)p + at, n - at, MSG_NOSIGNAL);

        if (sent < 0)
            return;
        at += (size_t)sent;
    }
}

void put(int fd, const char *text)
{
    put_bytes(fd, text, strlen(text));
}

void putf(int fd, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    assert_true(n >= 0);
    put_bytes(fd, text, (size_t)n);
    free(text);
}

int get_bytes(int fd, void *out, size_t n)
{
    for (size_t at = 0; at < n;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        ssize_t got;

        if (poll(&p, 1, DEADLINE_MS) != 1)
            fail_msg("nothing came within %d ms", DEADLINE_MS);
        got = recv(fd, (char *)out + at, n - at, 0);
        if (got <= 0)
            return 0;
        at += (size_t)got;
    }
    return 1;
}

static void read_reply(int fd, struct reply *r, int no_body)
{
    size_t n = 0;
    char *length;

    *r = (struct reply){ 0 };
    while (n < 4 || memcmp(r->head + n - 4, "\r\n\r\n", 4) != 0) {
        assert_true(n < sizeof r->head - 1);
        if (!get_bytes(fd, r->head + n, 1))
            return;
        n++;
    }
    if (sscanf(r->head, "HTTP/1.1 %d ", &r->status) != 1)
        fail_msg("no status line: %s", r->head);
    length = strcasestr(r->head, "\r\ncontent-length:");
    r->body_n = length != NULL && !no_body ? strtoul(length + 17, NULL, 10) : 0;
    r->body = xcalloc(1, r->body_n + 1);
    if (!get_bytes(fd, r->body, r->body_n))
        r->status = 0;
}

void get_reply(int fd, struct reply *r)
{
    read_reply(fd, r, 0);
}

void get_reply_to_head(int fd, struct reply *r)
{
    read_reply(fd, r, 1);
}

int ended(int fd)
{
    char scratch[65536];

    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        if (poll(&p, 1, DEADLINE_MS) != 1)
            return 0;
        if (recv(fd, scratch, sizeof scratch, 0) <= 0)
            return 1;
    }
}

void reply_free(struct reply *r)
{
    free(r->body);
    r->body = NULL;
}

int ask(struct harness *h, const char *method, const char *path, const char *body, struct reply *r)
{
    int fd = dial(h);

    putf(fd, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: token secret\r\n", method, path);
    if (body != NULL)
        putf(fd, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    else
        put(fd, "\r\n");
    read_reply(fd, r, strcmp(method, "HEAD") == 0);
    hang_up(fd);
    return r->status;
}

const char *reply_header(const struct reply *r, const char *name)
{
    static char value[1024];
    char key[128];
    const char *at;

    snprintf(key, sizeof key, "\r\n%s: ", name);
    at = strcasestr(r->head, key);
    if (at == NULL)
        return NULL;
    at += strlen(key);
    snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
    return value;
}

void until(_Atomic int *value, int want)
{
    for (int i = 0; i < DEADLINE_MS; i++) {
        if (*value == want)
            return;
        nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    }
    fail_msg("%d did not become %d", *value, want);
}

void expect(struct harness *h, const char *method, const char *path, const char *body, int status,
            const char *part)
{
    struct reply r;

    ask(h, method, path, body, &r);
    if (r.status != status || (part != NULL && strstr(r.body, part) == NULL))
        fail_msg("%s %s %s: %d %s\n(wanted %d %s)", method, path, body != NULL ? body : "",
                 r.status, r.body, status, part != NULL ? part : "");
    reply_free(&r);
}
