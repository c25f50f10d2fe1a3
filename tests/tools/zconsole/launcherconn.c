#include "launcherconn.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "err.h"

void launcherconn_init(struct launcherconn *c, int fd)
{
    *c = (struct launcherconn){ .fd = fd };
    buf_init(&c->in, MSG_MAX);
}

static void drop_fds(struct launcherconn *c)
{
    for (unsigned i = 0; i < c->fd_count; i++) {
        if (c->fds[i] >= 0)
            close(c->fds[i]);
    }
    c->fd_count = 0;
}

void launcherconn_free(struct launcherconn *c)
{
    drop_fds(c);
    buf_free(&c->in);
}

static int send_packet(struct launcherconn *c, struct view packet, const int *fds, unsigned nfds,
                       struct err *e)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * MSG_FDS_MAX)];
        struct cmsghdr align;
    } control = { 0 };
    struct iovec iov = { (void *)(uintptr_t)packet.p, packet.n };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (nfds > 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
        memcpy(CMSG_DATA(h), fds, sizeof(int) * nfds);
    }
    if (sendmsg(c->fd, &m, MSG_NOSIGNAL) < 0)
        return err_sys(e, errno, "send to the launcher");
    return 0;
}

/* One packet into c->in: its head in *ret. */
static int receive(struct launcherconn *c, int timeout_ms, struct msg_head *ret, struct err *e)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * MSG_FDS_MAX)];
        struct cmsghdr align;
    } control;
    struct pollfd p = { .fd = c->fd, .events = POLLIN };

    if (poll(&p, 1, timeout_ms) == 0)
        return err_set(e, ETIMEDOUT, "the launcher said nothing");
    drop_fds(c);
    buf_clear(&c->in);
    int rc = buf_reserve(&c->in, MSG_MAX);
    if (rc < 0)
        return rc;
    struct iovec iov = { buf_tail(&c->in), MSG_MAX };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.bytes,
                        .msg_controllen = sizeof control.bytes };
    ssize_t n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC);
    if (n <= 0)
        return err_set(e, HC_EGONE, "the launcher closed");
    buf_commit(&c->in, (size_t)n);
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h != NULL; h = CMSG_NXTHDR(&m, h)) {
        c->fd_count = (unsigned)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(c->fds, CMSG_DATA(h), c->fd_count * sizeof(int));
    }
    return msg_head_decode(buf_view(&c->in), c->fd_count, ret, e);
}

int launcherconn_packet(struct launcherconn *c, int timeout_ms, struct err *e)
{
    struct msg_head head;

    return receive(c, timeout_ms, &head, e);
}

static void print_event(struct launcherconn *c, const struct msg_head *head)
{
    union {
        struct launch_kernel_exited exited;
        struct launch_out_of_memory oom;
        struct launch_sandbox_gone gone;
        struct launch_tasks_refused tasks;
    } body;
    const struct msg_spec *spec = launch_event_spec(head->verb);

    if (spec == NULL || msg_decode(spec, head, buf_view(&c->in), &body, NULL) < 0) {
        printf("event: malformed\n");
    } else if (head->verb == LAUNCH_KERNEL_EXITED) {
        printf("event: exited kernel=%u generation=%u code=%d signal=%d oom=%u requested=%u\n",
               body.exited.kernel, body.exited.generation, body.exited.exit_code, body.exited.signo,
               body.exited.out_of_memory, body.exited.requested);
    } else if (head->verb == LAUNCH_OUT_OF_MEMORY) {
        printf("event: oom limit=%" PRIu64 " peak=%" PRIu64 " kernel_ends=%u\n",
               body.oom.memory_limit_bytes, body.oom.memory_peak_bytes, body.oom.kernel_ends);
    } else if (head->verb == LAUNCH_TASKS_REFUSED) {
        printf("event: tasks refused=%" PRIu64 " limit=%" PRIu64 "\n", body.tasks.refused,
               body.tasks.pids_limit);
    } else {
        printf("event: gone reason=%.*s\n", (int)body.gone.reason.n,
               (const char *)body.gone.reason.p);
    }
}

int launcherconn_event(struct launcherconn *c, unsigned verb, int timeout_ms, struct err *e)
{
    struct msg_head head;

    for (;;) {
        int rc = receive(c, timeout_ms, &head, e);

        if (rc < 0)
            return rc;
        if (head.request == 0)
            print_event(c, &head);
        if (head.request == 0 && head.verb == verb)
            return 0;
    }
}

/* The answer to a request that launcherconn_send() left open. */
static void print_late(struct launcherconn *c, const struct msg_head *head)
{
    struct launch_error refused;

    if (head->verb != LAUNCH_ERROR)
        printf("late: verb=%u ok\n", head->verb);
    else if (msg_decode(launch_answer_spec(LAUNCH_ERROR), head, buf_view(&c->in), &refused, NULL) <
             0)
        printf("late: malformed\n");
    else
        printf("late: verb=%u refused: %.*s\n", refused.verb, (int)refused.text.n,
               (const char *)refused.text.p);
}

int launcherconn_send(struct launcherconn *c, unsigned verb, const void *body, const int *fds,
                      unsigned nfds, struct err *e)
{
    autobuf struct buf out;

    buf_init(&out, MSG_MAX);
    int rc = msg_encode(launch_request_spec(verb), ++c->request, 0, body, nfds, &out, e);
    return rc < 0 ? rc : send_packet(c, buf_view(&out), fds, nfds, e);
}

int launcherconn_ask(struct launcherconn *c, unsigned verb, const void *body, const int *fds,
                     unsigned nfds, void *ret_body, struct err *e)
{
    struct msg_head head;
    int rc = launcherconn_send(c, verb, body, fds, nfds, e);

    while (rc == 0) {
        rc = receive(c, 60000, &head, e);
        if (rc == 0 && head.request == c->request)
            break;
        if (rc == 0 && head.request == 0)
            print_event(c, &head);
        else if (rc == 0)
            print_late(c, &head);
    }
    if (rc < 0)
        return rc;
    if (head.verb == LAUNCH_ERROR) {
        struct launch_error refused;

        rc = msg_decode(launch_answer_spec(LAUNCH_ERROR), &head, buf_view(&c->in), &refused, e);
        return rc < 0 ? rc
                      : err_set(e, head.error, "%.*s", (int)refused.text.n,
                                (const char *)refused.text.p);
    }
    return msg_decode(launch_answer_spec(verb), &head, buf_view(&c->in), ret_body, e);
}
