#include "tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "certs.h"
#include "cleanup.h"
#include "err.h"

enum { TUNNELS = 2048, PIECE = 16 * 1024, SMALL_BUFFER = 64 * 1024 };

struct tunnel {
    pthread_t thread;
    SSL *ssl;
    int plain_fd, server_fd;
};

struct tunnels {
    struct cert ca, server;
    SSL_CTX *ctx;
    struct tunnel all[TUNNELS];
    unsigned count;
};

struct tunnels *tunnels_new(void)
{
    struct tunnels *t = xcalloc(1, sizeof *t);

    signal(SIGPIPE, SIG_IGN); /* OpenSSL's socket BIO writes without MSG_NOSIGNAL */
    cert_make(&t->ca, "authority", NULL, -86400, 86400);
    cert_make(&t->server, "server", &t->ca, -86400, 86400);
    t->ctx = client_context(&t->ca, NULL);
    SSL_CTX_set_mode(t->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return t;
}

const char *tunnels_cert(const struct tunnels *t)
{
    return t->server.pem;
}

const char *tunnels_key(const struct tunnels *t)
{
    return t->server.key_pem;
}

struct pipe {
    char data[PIECE];
    int at, n; /* n - at bytes wait */
    int over;  /* nothing more will come in */
};

/* Test to server. Returns the events that it waits for on the server's side; *wait_plain
 * tells whether it waits for the test. */
static int pump_up(struct tunnel *t, struct pipe *p, int *wait_plain)
{
    *wait_plain = 0;
    for (;;) {
        if (p->at < p->n) {
            int n = SSL_write(t->ssl, p->data + p->at, p->n - p->at);

            if (n <= 0) {
                int why = SSL_get_error(t->ssl, n);

                if (why == SSL_ERROR_WANT_WRITE)
                    return POLLOUT;
                if (why == SSL_ERROR_WANT_READ)
                    return POLLIN;
                p->over = 1; /* the server has gone: a writer sees it */
                shutdown(t->plain_fd, SHUT_RD);
                p->at = p->n = 0;
                return 0;
            }
            p->at += n;
            continue;
        }
        if (p->over)
            return 0;
        ssize_t n = recv(t->plain_fd, p->data, sizeof p->data, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            *wait_plain = 1;
            return 0;
        }
        p->at = 0;
        p->n = n > 0 ? (int)n : 0;
        if (n <= 0) {
            p->over = 1;
            (void)SSL_shutdown(t->ssl);
        }
    }
}

/* Server to test; 0 when it is over. *wait_plain: the test has to read first. */
static int pump_down(struct tunnel *t, struct pipe *p, int *wait_plain)
{
    *wait_plain = 0;
    for (;;) {
        while (p->at < p->n) {
            ssize_t n = send(t->plain_fd, p->data + p->at, (size_t)(p->n - p->at),
                             MSG_DONTWAIT | MSG_NOSIGNAL);

            if (n < 0) {
                struct pollfd gone = { .fd = t->plain_fd };

                *wait_plain = 1;
                return poll(&gone, 1, 0) == 0 || !(gone.revents & (POLLERR | POLLHUP));
            }
            p->at += (int)n;
        }
        p->at = 0;
        p->n = SSL_read(t->ssl, p->data, sizeof p->data);
        if (p->n <= 0) {
            int why = SSL_get_error(t->ssl, p->n);

            p->n = 0;
            return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
        }
    }
}

static void *carry(void *arg)
{
    struct tunnel *t = arg;
    struct pipe *up = xcalloc(1, sizeof *up), *down = xcalloc(1, sizeof *down);

    for (;;) {
        int for_reading, for_writing, open;
        int wait_server = pump_up(t, up, &for_reading);

        open = pump_down(t, down, &for_writing);
        struct pollfd p[2] = {
            { .fd = t->server_fd, .events = (short)(wait_server | (for_writing ? 0 : POLLIN)) },
            { .fd = t->plain_fd,
              .events = (short)((for_reading ? POLLIN : 0) | (for_writing ? POLLOUT : 0)) },
        };
        if (!open)
            break;
        if (p[1].events == 0)
            p[1].fd = -1;
        (void)poll(p, 2, 5000);
    }
    free(up);
    free(down);
    close(t->plain_fd);
    close(t->server_fd);
    return NULL;
}

int tunnel_open(struct tunnels *all, int server_fd)
{
    struct tunnel *t = &all->all[all->count++];
    int pair[2], small = SMALL_BUFFER;

    check(all->count < TUNNELS);
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    (void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    t->server_fd = server_fd;
    t->plain_fd = pair[1];
    t->ssl = SSL_new(all->ctx);
    SSL_set_fd(t->ssl, server_fd);
    /* The server may refuse or be full: then the test sees the end. */
    if (SSL_connect(t->ssl) == 1)
        fcntl(server_fd, F_SETFL, O_NONBLOCK);
    check(pthread_create(&t->thread, NULL, carry, t) == 0);
    return pair[0];
}

struct tunnels *tunnels_free(struct tunnels *t)
{
    for (unsigned i = 0; t != NULL && i < t->count; i++) {
        pthread_join(t->all[i].thread, NULL);
        SSL_free(t->all[i].ssl);
    }
    if (t != NULL) {
        SSL_CTX_free(t->ctx);
        cert_free(&t->ca);
        cert_free(&t->server);
    }
    free(t);
    return NULL;
}
