#include "takeover.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "clock.h"
#include "err.h"
#include "keepermsg.h"
#include "launchlink.h"

enum { ANSWER_MS = 10000 };

/* 1: connected; 0: nobody listens. */
static int connect_keeper(int state_dir_fd, int *ret, struct err *e)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_sys(e, errno, "make a socket");
    snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/%s", state_dir_fd, KEEPER_SOCKET);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        if (errno == ENOENT || errno == ECONNREFUSED)
            return 0;
        return err_sys(e, errno, "connect to the keeper of the state directory");
    }
    *ret = take_fd(&fd);
    return 1;
}

/* A keeper that another server is just taking over answers at once and closes: then a new connection is the proof. */
static int still_listens(int fd, int state_dir_fd, struct err *e)
{
    struct pollfd p = { .fd = fd, .events = 0 };
    autoclose int again = -1;

    if (poll(&p, 1, 0) == 0)
        return 1;
    return connect_keeper(state_dir_fd, &again, e);
}

/* The credentials are those of the moment when it listened; what proves that the number is
 * still its own is that it listens yet when the pidfd is there. */
static int open_peer(int fd, int state_dir_fd, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
    struct ucred who;
    socklen_t n = sizeof who;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
        return err_sys(e, errno, "credentials of the keeper");
    if (who.uid != 0 || who.pid <= 0)
        return err_set(e, EPERM, "who listens in the state directory is no keeper of this host");
    autoclose int pidfd = (int)syscall(SYS_pidfd_open, who.pid, 0);
    if (pidfd < 0)
        return errno == ESRCH ? 0 : err_sys(e, errno, "pidfd of the keeper");
    int rc = still_listens(fd, state_dir_fd, e);
    if (rc == 1) {
        *ret_pid = who.pid;
        *ret_pidfd = take_fd(&pidfd);
    }
    return rc;
}

int takeover_find(int state_dir_fd, int *ret_pidfd, struct err *e)
{
    autoclose int fd = -1;
    pid_t pid;
    int rc = connect_keeper(state_dir_fd, &fd, e);

    return rc == 1 ? open_peer(fd, state_dir_fd, &pid, ret_pidfd, e) : rc;
}

/* Waits for the answer; -HC_EGONE when the keeper closed its end. */
static int hear(struct takeover *t, unsigned verb, void *ret_body, struct link_packet *ret,
                struct err *e)
{
    uint64_t end = clock_ms() + ANSWER_MS;
    struct keeper_error error;

    while (link_receive(t->link, ret) == 0) {
        struct pollfd p = { .fd = link_fd(t->link), .events = link_events(t->link) };
        uint64_t now = clock_ms();

        if (link_closed(t->link))
            return err_set(e, HC_EGONE, "the keeper has ended");
        if (link_broken(t->link) != NULL)
            return err_set(e, EPROTO, "the keeper: %s", link_broken(t->link));
        if (now >= end)
            return err_set(e, ETIMEDOUT, "the keeper does not answer");
        if (poll(&p, 1, (int)(end - now)) > 0 && (p.revents & POLLOUT) != 0)
            link_flush(t->link);
    }
    const struct msg_spec *spec = keeper_answer_spec(ret->head.verb);
    if (ret->head.verb == KEEPER_ERROR && msg_decode(spec, &ret->head, ret->bytes, &error, e) == 0)
        return err_set(e, ret->head.error > 0 ? ret->head.error : EPROTO, "%.*s", (int)error.text.n,
                       (const char *)error.text.p);
    if (ret->head.verb != verb)
        return err_set(e, EPROTO, "the keeper answers by verb %u", ret->head.verb);
    return msg_decode(spec, &ret->head, ret->bytes, ret_body, e);
}

static int say_hello(struct takeover *t, struct err *e)
{
    struct keeper_hello body = { .version = KEEPER_VERSION };
    struct link_packet p;

    link_post(t->link, keeper_request_spec(KEEPER_HELLO), 1, 0, &body, NULL, 0);
    memset(p.fds, 0xff, sizeof p.fds);
    p.head.fds = 0;
    int rc = hear(t, KEEPER_HELLO, &body, &p, e);
    if (rc == 0) {
        t->slot = body.slot;
        snprintf(t->runtime, sizeof t->runtime, "%.*s", (int)body.runtime.n,
                 (const char *)body.runtime.p);
        t->state_fd = take_fd(&p.fds[KEEPER_STATE_FD]);
        t->slot_fd = take_fd(&p.fds[KEEPER_SLOT_FD]);
        t->dir_fd = take_fd(&p.fds[KEEPER_DIR_FD]);
    }
    link_packet_close(&p);
    return rc;
}

int takeover_open(int state_dir_fd, struct takeover *ret, struct err *e)
{
    struct takeover t = TAKEOVER_NONE;
    autoclose int fd = -1;
    int rc = connect_keeper(state_dir_fd, &fd, e);

    if (rc == 1)
        rc = open_peer(fd, state_dir_fd, &t.pid, &t.pidfd, e);
    if (rc != 1)
        return rc;
    t.link = link_new(take_fd(&fd));
    rc = say_hello(&t, e);
    if (rc == 0) {
        *ret = t;
        return 1;
    }
    takeover_close(&t);
    if (rc != -HC_EGONE)
        return rc;
    ret->pid = t.pid;
    return 0;
}

int takeover_attach(struct takeover *t, char *const *argv, const int *fds, unsigned fd_count,
                    struct err *e)
{
    struct keeper_count done;
    struct link_packet p;
    autobuf struct buf strings;
    int rc = 0;

    buf_init(&strings, KEEPER_ARGV_MAX);
    for (unsigned i = 0; argv[i] != NULL && rc == 0; i++)
        rc = msg_strings_add(&strings, argv[i]);
    if (rc < 0)
        return err_set(e, -rc, "the options are too long to hand them on");
    const struct keeper_attach body = { .argv = buf_view(&strings) };
    link_post(t->link, keeper_request_spec(KEEPER_ATTACH), 2, 0, &body, fds, fd_count);
    memset(p.fds, 0xff, sizeof p.fds);
    p.head.fds = 0;
    rc = hear(t, KEEPER_ATTACH, &done, &p, e);
    link_packet_close(&p);
    return rc;
}

void takeover_close(struct takeover *t)
{
    t->link = link_free(t->link);
    closep(&t->pidfd);
    closep(&t->state_fd);
    closep(&t->slot_fd);
    closep(&t->dir_fd);
}
