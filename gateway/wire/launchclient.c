#include "launchclient.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "err.h"
#include "launchmsg.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"

enum {
    OPEN_MAX = 4096,    /* requests without an answer */
    WAITING_MAX = 1024, /* packets that the socket did not take yet */
    TURN_MAX = 64,      /* packets read in one turn */
};

struct ask {
    struct ask *next;
    uint64_t request;
    unsigned verb;
    uint64_t asked_us; /* CLOCK_MONOTONIC */
    launch_answer_fn *done;
    void *arg; /* borrowed */
    uint64_t token;
};

struct packet {
    struct packet *next;
    struct buf bytes;     /* owned */
    int fds[MSG_FDS_MAX]; /* owned */
    unsigned fd_count;
};

struct launchclient {
    struct loop *loop; /* borrowed */
    int fd;            /* owned; -1 once lost */
    struct loop_poll *poll;
    struct ask *asks; /* owned list */
    unsigned ask_count;
    struct packet *first, **last; /* owned queue */
    unsigned waiting;
    uint64_t next_request;
    launch_event_fn *on_event;
    void *event_arg; /* borrowed */
    launch_lost_fn *on_lost;
    void *lost_arg; /* borrowed */
    uint8_t in[MSG_MAX];
};

static struct packet *packet_free(struct packet *p)
{
    if (p == NULL)
        return NULL;
    for (unsigned i = 0; i < p->fd_count; i++)
        closep(&p->fds[i]);
    buf_free(&p->bytes);
    free(p);
    return NULL;
}

/* Everything that waited for the launcher fails; then the owner hears of it. */
static void lose(struct launchclient *c, const char *why)
{
    if (c->fd < 0)
        return;
    log_error("launcher_lost", "why=\"%s\"", why);
    c->poll = loop_poll_close(c->poll);
    closep(&c->fd);
    c->fd = -1;
    if (c->on_lost != NULL)
        c->on_lost(c->lost_arg);
}

static int send_packet(int fd, struct view bytes, const int *fds, unsigned fd_count)
{
    struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes.p, .iov_len = bytes.n };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * MSG_FDS_MAX)];
    } control = { 0 };

    if (fd_count > 0) {
        m.msg_control = control.room;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(h), fds, sizeof(int) * fd_count);
    }
    ssize_t n;
    do {
        n = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

/* A full send buffer is EAGAIN; too many descriptors in flight is ETOOMANYREFS:
 * both pass with time. */
static int waits(int rc)
{
    return rc == -EAGAIN || rc == -EWOULDBLOCK || rc == -ENOBUFS || rc == -ETOOMANYREFS;
}

static void flush_queue(struct launchclient *c)
{
    while (c->first != NULL) {
        struct packet *p = c->first;
        int rc = send_packet(c->fd, buf_view(&p->bytes), p->fds, p->fd_count);
        if (waits(rc))
            return;
        if (rc < 0) {
            lose(c, strerror(-rc));
            return;
        }
        c->first = p->next;
        if (c->first == NULL)
            c->last = &c->first;
        c->waiting--;
        p = packet_free(p);
    }
    loop_poll_events(c->poll, LOOP_READ);
}

static int enqueue(struct launchclient *c, struct buf *bytes, const int *fds, unsigned fd_count,
                   struct err *e)
{
    if (c->waiting >= WAITING_MAX)
        return err_set(e, EAGAIN, "the launcher does not take requests");
    struct packet *p = xcalloc(1, sizeof *p);
    for (unsigned i = 0; i < fd_count; i++) {
        p->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
        if (p->fds[i] < 0) {
            int code = errno;
            p = packet_free(p);
            return err_sys(e, code, "keep a descriptor for the launcher");
        }
        p->fd_count++;
    }
    p->bytes = *bytes;
    *bytes = (struct buf){ 0 };
    *c->last = p;
    c->last = &p->next;
    c->waiting++;
    loop_poll_events(c->poll, LOOP_READ | LOOP_WRITE);
    return 0;
}

int launchclient_ask(struct launchclient *c, unsigned verb, const void *body, const int *fds,
                     unsigned fd_count, launch_answer_fn *done, void *arg, uint64_t token,
                     struct err *e)
{
    const struct msg_spec *spec = launch_request_spec(verb);
    autobuf struct buf out = { 0 };

    buf_init(&out, MSG_MAX);
    check(spec != NULL && fd_count <= MSG_FDS_MAX);
    if (c->fd < 0)
        return err_set(e, HC_EGONE, "the launcher is gone");
    if (c->ask_count >= OPEN_MAX)
        return err_set(e, EAGAIN, "too many requests to the launcher are open");
    uint64_t request = ++c->next_request;
    int rc = msg_encode(spec, request, 0, body, fd_count, &out, e);
    if (rc < 0)
        return rc;

    rc = c->first != NULL ? -EAGAIN : send_packet(c->fd, buf_view(&out), fds, fd_count);
    if (waits(rc))
        rc = enqueue(c, &out, fds, fd_count, e);
    else if (rc < 0) /* the reading side sees the end too and tells the owner */
        rc = err_sys(e, -rc, "ask the launcher to %s", spec->name);
    if (rc < 0)
        return rc;

    struct ask *a = xcalloc(1, sizeof *a);
    *a = (struct ask){
        .next = c->asks,
        .request = request,
        .verb = verb,
        .asked_us = clock_monotonic_us(),
        .done = done,
        .arg = arg,
        .token = token,
    };
    c->asks = a;
    c->ask_count++;
    return 0;
}

static struct ask *take_ask(struct launchclient *c, uint64_t request)
{
    for (struct ask **at = &c->asks; *at != NULL; at = &(*at)->next) {
        if ((*at)->request == request) {
            struct ask *a = *at;
            *at = a->next;
            c->ask_count--;
            return a;
        }
    }
    return NULL;
}

/* The largest body of any answer or event; a test holds the tables against it. */
union body {
    struct launch_created created;
    struct launch_started started;
    struct launch_status_answer status;
    struct launch_listed listed;
    struct launch_done done;
    struct launch_error error;
    struct launch_kernel_exited exited;
    struct launch_out_of_memory oom;
    struct launch_sandbox_gone gone;
    struct launch_tasks_refused tasks;
    struct launch_kernel_ref ref;
};

static int take_answer(struct launchclient *c, const struct msg_head *head, struct view packet,
                       int *fds, unsigned fd_count, struct err *e)
{
    const struct msg_spec *spec = launch_answer_spec(head->verb);
    union body body = { 0 };
    autofree char *text = NULL;

    if (spec == NULL)
        return err_set(e, HC_EPARSE, "unknown answer %u", head->verb);
    check(spec->size <= sizeof body);
    int rc = msg_decode(spec, head, packet, &body, e);
    if (rc < 0)
        return rc;
    struct ask *a = take_ask(c, head->request);
    if (a == NULL)
        return err_set(e, HC_EPARSE, "answer to a request that is not open");

    struct launch_answer answer = {
        .verb = head->verb, .text = "", .body = &body, .fds = fds, .fd_count = fd_count
    };
    if (head->verb == LAUNCH_ERROR) {
        text = view_dup(body.error.text);
        answer.verb = body.error.verb;
        answer.error = head->error > 0 ? head->error : EIO;
        answer.text = text;
        answer.body = NULL;
    }
    metrics_observe(METRIC_LAUNCHER_TIME, a->verb - 1, clock_monotonic_us() - a->asked_us);
    if (answer.error != 0)
        metrics_count(METRIC_LAUNCHER_FAILURES, a->verb - 1);
    a->done(a->arg, a->token, &answer);
    free(a);
    return 0;
}

static int take_event(struct launchclient *c, const struct msg_head *head, struct view packet,
                      struct err *e)
{
    const struct msg_spec *spec = launch_event_spec(head->verb);
    union body body = { 0 };

    if (spec == NULL)
        return err_set(e, HC_EPARSE, "unknown event %u", head->verb);
    check(spec->size <= sizeof body);
    int rc = msg_decode(spec, head, packet, &body, e);
    if (rc == 0 && c->on_event != NULL)
        c->on_event(c->event_arg, head->verb, &body);
    return rc;
}

static int take_packet(struct launchclient *c, struct view packet, int *fds, unsigned fd_count,
                       struct err *e)
{
    struct msg_head head;
    int rc = msg_head_decode(packet, fd_count, &head, e);

    if (rc < 0)
        return rc;
    if (head.request == 0)
        return take_event(c, &head, packet, e);
    return take_answer(c, &head, packet, fds, fd_count, e);
}

static unsigned received_fds(struct msghdr *m, int fds[MSG_FDS_MAX])
{
    unsigned count = 0;

    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h != NULL; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n && count < MSG_FDS_MAX; i++)
            memcpy(&fds[count++], CMSG_DATA(h) + i * sizeof(int), sizeof(int));
    }
    return count;
}

/* 1: a packet was taken; 0: none now or the launcher is lost. */
static int read_one(struct launchclient *c)
{
    struct iovec iov = { .iov_base = c->in, .iov_len = sizeof c->in };
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * MSG_FDS_MAX)];
    } control;
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.room,
                        .msg_controllen = sizeof control.room };
    int fds[MSG_FDS_MAX];
    struct err e = { 0 };

    ssize_t n = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            lose(c, strerror(errno));
        return 0;
    }
    if (n == 0) {
        lose(c, "end of file");
        return 0;
    }
    unsigned fd_count = received_fds(&m, fds);
    int rc;
    if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        rc = err_set(&e, HC_EPARSE, "packet cut short");
    else
        rc = take_packet(c, (struct view){ c->in, (size_t)n }, fds, fd_count, &e);
    for (unsigned i = 0; i < fd_count; i++)
        closep(&fds[i]);
    if (rc < 0)
        lose(c, e.msg);
    return rc == 0 && c->fd >= 0;
}

static void on_poll(void *arg, int events)
{
    struct launchclient *c = arg;

    if (events < 0) {
        lose(c, strerror(-events));
        return;
    }
    if (events & LOOP_WRITE)
        flush_queue(c);
    for (int i = 0; i < TURN_MAX && c->fd >= 0; i++) {
        if (!read_one(c))
            return;
    }
}

struct launchclient *launchclient_new(struct loop *l, int fd)
{
    struct launchclient *c = xcalloc(1, sizeof *c);

    c->loop = l;
    c->fd = fd;
    c->last = &c->first;
    c->poll = loop_poll_start(l, fd, LOOP_READ, on_poll, c);
    return c;
}

struct launchclient *launchclient_free(struct launchclient *c)
{
    if (c == NULL)
        return NULL;
    c->poll = loop_poll_close(c->poll);
    closep(&c->fd);
    while (c->first != NULL) {
        struct packet *p = c->first;
        c->first = p->next;
        p = packet_free(p);
    }
    while (c->asks != NULL) {
        struct ask *a = c->asks;
        c->asks = a->next;
        free(a);
    }
    free(c);
    return NULL;
}

void launchclient_on_event(struct launchclient *c, launch_event_fn *fn, void *arg)
{
    c->on_event = fn;
    c->event_arg = arg;
}

void launchclient_on_lost(struct launchclient *c, launch_lost_fn *fn, void *arg)
{
    c->on_lost = fn;
    c->lost_arg = arg;
}

int launchclient_is_lost(const struct launchclient *c)
{
    return c->fd < 0;
}
