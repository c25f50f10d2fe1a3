#include "peer.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "err.h"

enum { SEND_FDS_MAX = 253 /* SCM_MAX_FD */ };

uint64_t peer_clock_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* splitmix64: every seed is a good one. */
uint64_t peer_random(struct peer *p)
{
    uint64_t z = (p->seed += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

unsigned peer_any(struct peer *p, unsigned below)
{
    return (unsigned)(peer_random(p) % below);
}

int peer_one_in(struct peer *p, unsigned n)
{
    return peer_any(p, n) == 0;
}

void peer_fail(struct peer *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (p->page->failed == 0)
        vsnprintf(p->page->failure, sizeof p->page->failure, fmt, ap);
    va_end(ap);
    p->page->failed = 1;
    _exit(9);
}

/* ---- known sandboxes ---- */

struct known *peer_known(struct peer *p, uint64_t id)
{
    for (unsigned i = 0; i < PEER_KNOWN; i++) {
        if (p->known[i].id == id)
            return &p->known[i];
    }
    return NULL;
}

void peer_forget(struct known *k)
{
    closep(&k->init_fd);
    closep(&k->run_fd);
    memset(k, 0, sizeof *k);
    k->init_fd = k->run_fd = -1;
}

static struct known *remember(struct peer *p, uint64_t id)
{
    struct known *k = peer_known(p, id);

    if (k == NULL)
        k = peer_known(p, 0);
    if (k == NULL) {
        k = &p->known[peer_any(p, PEER_KNOWN)];
        peer_forget(k);
    }
    k->id = id;
    return k;
}

/* ---- what comes back ---- */

static void close_fds(struct answer *a)
{
    for (unsigned i = 0; i < MSG_FDS_MAX; i++)
        closep(&a->fds[i]);
}

/* The request that this answers is no longer open; fails when there is none. */
static unsigned close_request(struct peer *p, const struct answer *a)
{
    for (unsigned i = 0; i < p->open_count; i++) {
        unsigned verb = p->open[i].verb;

        if (p->open[i].request != a->head.request)
            continue;
        if (a->head.verb != verb && a->head.verb != LAUNCH_ERROR)
            continue; /* two of one number: the other one */
        p->open[i] = p->open[--p->open_count];
        return verb;
    }
    peer_fail(p, "answer %u to request %llu, which waits for none", a->head.verb,
              (unsigned long long)a->head.request);
}

static void check_limits(struct peer *p, const struct launch_limits *l)
{
    if (l->memory_bytes == 0 || l->pids == 0 || l->nofile == 0 || l->cpu_millis == 0)
        peer_fail(p, "a session without limits");
}

static void check_created(struct peer *p, struct answer *a)
{
    struct stat st;

    check_limits(p, &a->body.created.limits);
    if (a->body.created.sandbox == 0 || fstat(a->fds[0], &st) < 0 || !S_ISDIR(st.st_mode) ||
        fstat(a->fds[1], &st) < 0 || !S_ISSOCK(st.st_mode))
        peer_fail(p, "created: wrong descriptors");
    struct known *k = remember(p, a->body.created.sandbox);
    k->run_fd = take_fd(&a->fds[0]);
    k->init_fd = take_fd(&a->fds[1]);
    p->page->created++;
}

static void check_listed(struct peer *p, const struct answer *a)
{
    const struct launch_listed *m = &a->body.listed;
    struct launch_kernel_info info;

    if (m->sandbox == 0)
        return;
    check_limits(p, &m->limits);
    if (m->kernels.n % sizeof info != 0)
        peer_fail(p, "listed: %zu bytes of kernels", m->kernels.n);
    struct known *k = remember(p, m->sandbox);
    for (size_t i = 0; i < m->kernels.n; i += sizeof info) {
        memcpy(&info, m->kernels.p + i, sizeof info);
        if (info.kernel == 0 || info.kernel > LAUNCH_KERNELS_MAX || info.generation == 0)
            peer_fail(p, "listed: kernel %u-%u", info.kernel, info.generation);
        k->generation[info.kernel] = info.generation;
        k->running[info.kernel] = info.running != 0;
    }
}

static void check_started(struct peer *p, const struct answer *a)
{
    struct known *k = peer_known(p, a->body.started.sandbox);

    p->page->started++;
    if (k != NULL)
        k->running[a->body.started.kernel] = 1;
}

static void check_answer(struct peer *p, struct answer *a)
{
    unsigned verb = close_request(p, a);

    p->page->answers++;
    if (a->head.verb == LAUNCH_ERROR) {
        p->page->errors++;
        if (a->head.error <= 0 || a->body.error.verb != verb)
            peer_fail(p, "error %d of verb %u to a request of verb %u", a->head.error,
                      a->body.error.verb, verb);
        return;
    }
    if (a->head.error != 0)
        peer_fail(p, "answer %u with error %d", verb, a->head.error);
    if (verb == LAUNCH_CREATE)
        check_created(p, a);
    else if (verb == LAUNCH_LIST)
        check_listed(p, a);
    else if (verb == LAUNCH_START_KERNEL)
        check_started(p, a);
    else if (verb == LAUNCH_STATUS && a->body.status.memory_limit_bytes == 0)
        peer_fail(p, "status without a memory limit");
}

static void check_event(struct peer *p, const struct answer *a)
{
    p->page->events++;
    if (a->head.error != 0 || a->body.gone.sandbox == 0)
        peer_fail(p, "event %u: error %d", a->head.verb, a->head.error);
    struct known *k = peer_known(p, a->body.gone.sandbox);
    if (a->head.verb == LAUNCH_KERNEL_EXITED) {
        p->page->ended++;
        if (k != NULL)
            k->running[a->body.exited.kernel] = 0;
    }
    if (a->head.verb == LAUNCH_SANDBOX_GONE && k != NULL)
        peer_forget(k);
}

static void check_packet(struct peer *p, size_t n, unsigned fds)
{
    struct answer *a = &p->last;
    struct err e = { 0 };

    a->bytes = (struct view){ p->in, n };
    if (msg_head_decode(a->bytes, fds, &a->head, &e) < 0)
        peer_fail(p, "from the launcher: %s", e.msg);
    const struct msg_spec *spec =
        a->head.request != 0 ? launch_answer_spec(a->head.verb) : launch_event_spec(a->head.verb);
    if (spec == NULL || spec->size > sizeof a->body ||
        msg_decode(spec, &a->head, a->bytes, &a->body, &e) < 0)
        peer_fail(p, "from the launcher: verb %u: %s", a->head.verb, e.msg);
    if (a->head.request != 0)
        check_answer(p, a);
    else
        check_event(p, a);
}

static int died(struct peer *p)
{
    p->dead = 1;
    return -1;
}

int peer_receive(struct peer *p, int timeout_ms)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * MSG_FDS_MAX)];
    } control;
    struct iovec iov = { p->in, sizeof p->in };
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    struct pollfd ready = { .fd = p->fd, .events = POLLIN };
    unsigned fds = 0;

    if (p->dead || poll(&ready, 1, timeout_ms) <= 0)
        return p->dead ? -1 : 0;
    close_fds(&p->last);
    ssize_t n = recvmsg(p->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return died(p);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
        fds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(p->last.fds, CMSG_DATA(c), fds * sizeof(int));
    }
    if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        peer_fail(p, "the launcher sent more than the protocol allows");
    check_packet(p, (size_t)n, fds);
    return 1;
}

/* ---- what goes out ---- */

int peer_send(struct peer *p, const void *bytes, size_t n, const int *fds, unsigned fd_count)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * SEND_FDS_MAX)];
    } control;
    struct iovec iov = { (void *)(uintptr_t)bytes, n };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    memset(&control, 0, sizeof control);
    if (fd_count > 0) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
    }
    if (p->dead)
        return -1;
    if (sendmsg(p->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
        p->page->messages++;
        return 1;
    }
    /* EBADF: closed by ourselves; ETOOMANYREFS: descriptors in descriptors in ... */
    if (errno == EAGAIN || errno == ENOBUFS || errno == EMSGSIZE || errno == ETOOMANYREFS)
        return 0;
    return died(p);
}

static void owe(struct peer *p, uint64_t request, unsigned verb)
{
    if (p->open_count == PEER_OPEN)
        peer_fail(p, "too many open requests: a fault of the test");
    p->open[p->open_count].request = request;
    p->open[p->open_count].verb = verb;
    p->open[p->open_count++].since_ms = peer_clock_ms();
    if (verb < PAGE_VERBS)
        p->page->verbs[verb]++;
}

uint64_t peer_ask(struct peer *p, unsigned verb, const void *body, const int *fds, unsigned n)
{
    uint64_t until = peer_clock_ms() + PEER_PATIENCE_MS;
    autobuf struct buf out;
    int sent;

    buf_init(&out, MSG_MAX);
    p->request += 1 + peer_any(p, 3);
    if (msg_encode(launch_request_spec(verb), p->request, 0, body, n, &out, NULL) < 0)
        return 0;
    while ((sent = peer_send(p, buf_view(&out).p, buf_len(&out), fds, n)) == 0) {
        if (peer_receive(p, 10) < 0)
            return 0;
        if (peer_clock_ms() > until)
            peer_fail(p, "the launcher takes no message any more");
    }
    if (sent > 0)
        owe(p, p->request, verb);
    return sent > 0 ? p->request : 0;
}

void peer_owes(struct peer *p, struct view packet, unsigned fds)
{
    struct msg_head head;
    uint64_t body[256] = { 0 };

    if (msg_head_decode(packet, fds, &head, NULL) < 0 || head.request == 0 || head.error != 0)
        return;
    const struct msg_spec *spec = launch_request_spec(head.verb);
    if (spec != NULL && msg_decode(spec, &head, packet, body, NULL) == 0)
        owe(p, head.request, head.verb);
}

static int is_open(const struct peer *p, uint64_t request)
{
    for (unsigned i = 0; i < p->open_count; i++) {
        if (p->open[i].request == request)
            return 1;
    }
    return 0;
}

static void check_patience(struct peer *p)
{
    uint64_t now = peer_clock_ms();

    for (unsigned i = 0; i < p->open_count; i++) {
        if (now > p->open[i].since_ms + PEER_PATIENCE_MS)
            peer_fail(p, "no answer to a request %s within %d s", launch_verb_name(p->open[i].verb),
                      PEER_PATIENCE_MS / 1000);
    }
}

int peer_wait(struct peer *p, uint64_t request)
{
    while (request != 0 && is_open(p, request)) {
        if (peer_receive(p, 1000) < 0)
            return -1;
        check_patience(p);
    }
    return request != 0 && !p->dead ? p->last.head.verb != LAUNCH_ERROR : -1;
}

void peer_settle(struct peer *p)
{
    while (!p->dead && p->open_count > 0) {
        peer_receive(p, 1000);
        check_patience(p);
    }
}

void peer_adopt(struct peer *p)
{
    struct launch_list m = { 0 };

    do {
        uint64_t before = m.after;

        if (peer_wait(p, peer_ask(p, LAUNCH_LIST, &m, NULL, 0)) < 0)
            return;
        m.after = p->last.body.listed.sandbox;
        if (m.after != 0 && m.after <= before)
            peer_fail(p, "the list goes round");
    } while (m.after != 0);
}
