#include "gatewayproc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "clock.h"
#include "err.h"
#include "gatewaydrop.h"
#include "launchlink.h"
#include "rmtree.h"

enum {
    CLOSED_MS = 2000,           /* from the closed link to the exit */
    HEALTHY_MS = 60000,         /* a life so long forgives the deaths before it */
    SOCKET_BYTES = 1024 * 1024, /* send buffer: a burst of events while the gateway is busy */
};

static const uint64_t backoff_ms[] = { 0, 0, 100, 500, 1000, 2000, 5000 };

uint64_t gatewayproc_backoff_ms(unsigned deaths)
{
    unsigned last = sizeof backoff_ms / sizeof backoff_ms[0] - 1;

    return backoff_ms[deaths < last ? deaths : last];
}

void gatewayproc_init(struct gatewayproc *g)
{
    *g = (struct gatewayproc){ .pidfd = -1, .pause_max_ms = UINT64_MAX };
}

static void run_child(const struct gateway_config *c, int link_fd, int status_fd, pid_t launcher)
{
    struct err e;
    ssize_t n;

    memset(&e, 0, sizeof e);
    gatewaydrop_exec(c, link_fd, &status_fd, launcher, &e);
    n = write(status_fd, &e, sizeof e);
    _exit(n == (ssize_t)sizeof e ? 127 : 126);
}

/* Nothing when exec closed the pipe; else the child's error. */
static int read_status(int fd, struct err *e)
{
    struct err told;
    ssize_t n;

    do
        n = read(fd, &told, sizeof told);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof told)
        return n == 0 ? 0 : err_set(e, EIO, "gateway: its start told nothing");
    told.msg[sizeof told.msg - 1] = '\0';
    return err_set(e, told.code != 0 ? told.code : EIO, "%s", told.msg);
}

static int make_sockets(int ret[2], struct err *e)
{
    int bytes = SOCKET_BYTES;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret) < 0)
        return err_sys(e, errno, "socketpair");
    for (int i = 0; i < 2; i++) {
        /* FORCE: above net.core.wmem_max; a refusal leaves the default, which works too. */
        if (setsockopt(ret[i], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) < 0)
            continue;
    }
    return 0;
}

int gatewayproc_start(struct gatewayproc *g, const struct gateway_config *c, struct err *e)
{
    struct gateway_config own = *c;
    int sockets[2], status[2];
    pid_t self = getpid();
    int rc = make_sockets(sockets, e);

    if (rc < 0)
        return rc;
    autoclose int ours = sockets[0];
    autoclose int theirs = sockets[1];
    if (pipe2(status, O_CLOEXEC) < 0)
        return err_sys(e, errno, "pipe");
    autoclose int read_end = status[0];
    autoclose int write_end = status[1];
    own.restarts = g->starts;
    own.first = !g->spoke && !g->inherited;
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(e, errno, "fork");
    if (pid == 0)
        run_child(&own, theirs, write_end, self);
    close(take_fd(&write_end));
    rc = read_status(read_end, e);
    /* Not reaped yet, so the number is still its own. */
    autoclose int pidfd = rc == 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (rc == 0 && pidfd < 0)
        rc = err_sys(e, errno, "pidfd of the gateway");
    if (rc < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return rc;
    }
    g->pid = pid;
    g->starts++;
    g->pidfd = take_fd(&pidfd);
    g->link = link_new(take_fd(&ours));
    g->started_ms = clock_ms();
    return 0;
}

void gatewayproc_failed(struct gatewayproc *g, uint64_t now_ms)
{
    g->deaths++;
    uint64_t pause = gatewayproc_backoff_ms(g->deaths);
    g->due_ms = now_ms + (pause < g->pause_max_ms ? pause : g->pause_max_ms);
}

void gatewayproc_ended(struct gatewayproc *g, uint64_t now_ms)
{
    g->link = link_free(g->link);
    closep(&g->pidfd);
    g->pidfd = -1;
    g->pid = 0;
    g->kill_ms = 0;
    if (now_ms - g->started_ms >= HEALTHY_MS)
        g->deaths = 0;
    gatewayproc_failed(g, now_ms);
}

void gatewayproc_signal(const struct gatewayproc *g, int signo)
{
    if (g->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, g->pidfd, signo, NULL, 0);
}

void gatewayproc_closed(struct gatewayproc *g, uint64_t now_ms)
{
    g->link = link_free(g->link);
    g->kill_ms = now_ms + CLOSED_MS;
}

void gatewayproc_kill(struct gatewayproc *g)
{
    g->kill_ms = 0;
    g->link = link_free(g->link);
    gatewayproc_signal(g, SIGKILL);
}

int gatewayproc_clear(const struct gatewayproc *g, const struct gateway_config *c, struct err *e)
{
    if (g->pid > 0 || c->dir_fd < 0)
        return 0;
    int rc = rmtree_inside(c->dir_fd, e);
    return rc < 0 ? err_wrap(e, "the gateway's directory") : 0;
}
