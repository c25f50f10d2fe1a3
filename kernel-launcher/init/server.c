#include "server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "err.h"
#include "groups.h"
#include "leaves.h"
#include "outbox.h"
#include "packet.h"
#include "request.h"
#include "worker.h"

enum {
    WORKERS_MAX = 64,
    WORKER_TIME_MS = 30 * 1000, /* for an answer: a hostile tree can be made for slowness */
    REAP_BUDGET = 256,          /* per turn: a fork bomb must not keep us from requests */
    TIDY_FIRST_MS = 2,          /* until empty leaves are tried again, twice as long each time */
    TIDY_LAST_MS = 1000,        /* then not before something is reaped */
};

/* A child that carries out a request. */
struct worker {
    int channel_fd; /* -1: answered, or ended without an answer: the slot is free */
    pid_t pid;      /* 0: reaped */
    int late;       /* killed by us */
    unsigned verb;
    uint64_t request;
    pid_t made; /* its number, still known after it was reaped */
    int64_t deadline_ms;
};

struct server {
    int request_fd; /* -1: nobody to serve */
    int signal_fd;
    int more_to_reap;
    int tidy_wait_ms; /* 0: no leaf waits */
    int64_t tidy_ms;
    const struct init_start *limits;
    struct worker workers[WORKERS_MAX];
    struct groups groups;
    struct packet in;
    struct outbox out;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int is_sending(const struct server *s)
{
    return outbox_full(&s->out);
}

static void cut_off(struct server *s)
{
    outbox_clear(&s->out);
    closep(&s->request_fd);
    s->request_fd = -1;
}

/* Queues a packet of our own; only while nothing else is on its way. Without memory
 * we hang up: an answer that never comes is worse than none at all. */
static void say(struct server *s, const struct msg_spec *spec, uint64_t request, int code,
                const void *body)
{
    if (outbox_put(&s->out, spec, request, code, body) < 0)
        cut_off(s);
}

static void say_error(struct server *s, uint64_t request, unsigned verb, const struct err *why)
{
    if (outbox_put_error(&s->out, request, verb, why) < 0)
        cut_off(s);
}

/* 0, also when the packet has to wait; -HC_EGONE when the other side is closed. */
static int flush(struct server *s)
{
    if (s->request_fd < 0)
        return 0;
    int r = outbox_flush(&s->out, s->request_fd);
    if (r == 0 || r == -HC_EGONE)
        return r;
    cut_off(s);
    return 0;
}

static struct worker *free_worker(struct server *s)
{
    for (unsigned i = 0; i < WORKERS_MAX; i++) {
        if (s->workers[i].channel_fd < 0)
            return &s->workers[i];
    }
    return NULL;
}

/* A directory among the program's descriptors would be a way out of its root. */
static int check_descriptors(const struct packet *p, struct err *e)
{
    struct stat st;

    for (unsigned i = 0; i < p->fd_count; i++) {
        if (fstat(p->fds[i], &st) < 0)
            return err_sys(e, errno, "descriptor %u", i);
        if (S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode))
            return err_set(e, EINVAL, "descriptor %u is of a kind that no program gets", i);
    }
    return 0;
}

static int start_worker(struct server *s, const struct request *request, struct err *e)
{
    struct worker *w = free_worker(s);
    int is_spawn = request->head.verb == INIT_SPAWN;
    autoclose int leaf_fd = -1;
    uint64_t leaf = 0;
    int r;

    if (w == NULL)
        return err_set(e, HC_ELIMIT, "%d requests are being served", WORKERS_MAX);
    if (is_spawn && !groups_has_room(&s->groups))
        return err_set(e, HC_ELIMIT, "%d spawned programs are running", GROUPS_MAX);
    r = check_descriptors(&s->in, e);
    if (r == 0 && is_spawn && leaves_there()) {
        leaf = groups_next_leaf(&s->groups);
        r = leaves_make(leaf, &leaf_fd, e);
    }
    if (r < 0)
        return r;
    r = worker_start(request, &s->in, s->limits, leaf_fd, &w->pid, &w->channel_fd, e);
    if (r < 0) {
        (void)leaves_remove(leaf); /* nobody was ever in it */
        return r;
    }
    w->made = w->pid;
    w->late = 0;
    w->verb = request->head.verb;
    w->request = request->head.request;
    w->deadline_ms = now_ms() + WORKER_TIME_MS;
    if (is_spawn)
        groups_add(&s->groups, w->pid, leaf);
    return 0;
}

/* By init itself: it holds CAP_KILL, and the number must be one that it gave out. */
static int kill_group(struct server *s, const struct request *request, struct err *e)
{
    const struct init_kill *k = &request->body.kill;
    struct group *one = groups_find(&s->groups, (pid_t)k->pid);
    struct init_done done = { 0 };

    if (one == NULL || !one->announced)
        return err_sys(e, ESRCH, "kill");
    int r = groups_signal(one, (int)k->signo);
    if (r < 0)
        return err_sys(e, -r, "kill");
    say(s, init_answer_spec(INIT_KILL), request->head.request, 0, &done);
    return 0;
}

static int take_request(struct server *s)
{
    struct request request;
    struct err e = { 0 };
    int r = packet_receive(s->request_fd, &s->in, &e);

    if (r == -EAGAIN)
        return 0;
    if (r == 0 || r == -ECONNRESET)
        return -HC_EGONE;
    if (r == 1)
        r = request_decode((struct view){ s->in.bytes, s->in.n }, s->in.fd_count, &request, &e);
    if (r < 0) {
        packet_close_fds(&s->in);
        cut_off(s);
        return 0;
    }
    r = request.head.verb == INIT_KILL ? kill_group(s, &request, &e)
                                       : start_worker(s, &request, &e);
    packet_close_fds(&s->in);
    if (r < 0)
        say_error(s, request.head.request, request.head.verb, &e);
    return 0;
}

/* The channel ended without an answer: exec'ed, killed by the session, or by us. */
static void end_without_answer(struct server *s, struct worker *w)
{
    struct group *one = w->verb == INIT_SPAWN ? groups_find(&s->groups, w->made) : NULL;
    struct init_spawned spawned = { (uint32_t)w->made };
    struct err e = { 0 };

    if (one != NULL && !w->late) {
        one->announced = 1;
        say(s, init_answer_spec(INIT_SPAWN), w->request, 0, &spawned);
        return;
    }
    if (one != NULL)
        groups_remove(one);
    if (w->late)
        (void)err_set(&e, ETIMEDOUT, "not done after %d s", WORKER_TIME_MS / 1000);
    else
        (void)err_set(&e, EIO, "the worker was killed before it could answer");
    say_error(s, w->request, w->verb, &e);
}

/* Reads the worker's one packet. It runs as the session's user, so its head is
 * looked at: an answer can only go to the request it is for. */
static void take_answer(struct server *s, struct worker *w)
{
    struct msg_head head;
    struct err e = { 0 };
    int r = packet_receive(w->channel_fd, &s->in, &e), no_fd = -1;
    struct group *one;

    if (r == -EAGAIN)
        return;
    closep(&w->channel_fd);
    w->channel_fd = -1;
    if (s->request_fd < 0) {
        packet_close_fds(&s->in);
        return;
    }
    if (r == 1)
        r = msg_head_decode((struct view){ s->in.bytes, s->in.n }, s->in.fd_count, &head, NULL);
    else
        r = -HC_EGONE;
    if (r < 0 || head.request != w->request || s->in.fd_count > 1 ||
        (head.verb != w->verb && head.verb != INIT_ERROR) ||
        outbox_pass(&s->out, (struct view){ s->in.bytes, s->in.n },
                    s->in.fd_count == 1 ? &s->in.fds[0] : &no_fd) < 0) {
        packet_close_fds(&s->in);
        end_without_answer(s, w);
        return;
    }
    s->in.fd_count = 0; /* passed on */
    one = w->verb == INIT_SPAWN ? groups_find(&s->groups, w->made) : NULL;
    if (one != NULL) /* a packet says that the exec failed */
        groups_remove(one);
}

static void tidy(struct server *s, int wait_ms)
{
    const int again = groups_forget_empty(&s->groups) > 0 && wait_ms <= TIDY_LAST_MS;

    s->tidy_wait_ms = again ? wait_ms : 0;
    s->tidy_ms = now_ms() + wait_ms;
}

static void tell_end(struct server *s)
{
    struct group *one = groups_next_event(&s->groups);
    struct init_exited body;

    if (one == NULL)
        return;
    body = groups_event(one);
    one->told = 1;
    say(s, init_event_spec(INIT_EXITED), 0, 0, &body);
    tidy(s, TIDY_FIRST_MS);
}

static void reap(struct server *s)
{
    unsigned budget = REAP_BUDGET;
    int status;
    pid_t pid;

    while (budget > 0 && (pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        for (unsigned i = 0; i < WORKERS_MAX; i++) {
            if (s->workers[i].pid == pid)
                s->workers[i].pid = 0;
        }
        groups_ended(&s->groups, pid, status);
        budget--;
    }
    tidy(s, TIDY_FIRST_MS);
    s->more_to_reap = budget == 0;
}

/* Kills who is overdue; returns the milliseconds to the next thing to do, or -1. */
static int enforce_deadlines(struct server *s)
{
    int64_t now = now_ms(), next = -1;

    if (s->tidy_wait_ms > 0 && now >= s->tidy_ms)
        tidy(s, 2 * s->tidy_wait_ms);
    if (s->tidy_wait_ms > 0)
        next = s->tidy_ms > now ? s->tidy_ms - now : 0;

    for (unsigned i = 0; i < WORKERS_MAX; i++) {
        struct worker *w = &s->workers[i];

        if (w->channel_fd < 0 || w->pid == 0 || w->late)
            continue;
        if (w->deadline_ms <= now) {
            w->late = 1;
            kill(w->pid, SIGKILL);
        } else if (next < 0 || w->deadline_ms - now < next) {
            next = w->deadline_ms - now;
        }
    }
    return (int)next;
}

/* Writes what poll(2) is to wait for; returns the number of entries. who[i] is the
 * worker of entry i. */
static unsigned fill_poll(struct server *s, struct pollfd *p, struct worker **who)
{
    unsigned n = 0;

    p[n++] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
    p[n++] = (struct pollfd){ .fd = s->request_fd, .events = is_sending(s) ? POLLOUT : POLLIN };
    for (unsigned i = 0; i < WORKERS_MAX && !is_sending(s); i++) {
        if (s->workers[i].channel_fd < 0)
            continue;
        who[n] = &s->workers[i];
        p[n++] = (struct pollfd){ .fd = s->workers[i].channel_fd, .events = POLLIN };
    }
    return n;
}

static void drain_signals(struct server *s)
{
    struct signalfd_siginfo some[16];

    while (read(s->signal_fd, some, sizeof some) > 0)
        ;
    s->more_to_reap = 1;
}

/* One turn: 0, or -HC_EGONE. Answers and events go first, so that a controller
 * which only asks hears them too. */
static int turn(struct server *s)
{
    struct pollfd p[2 + WORKERS_MAX];
    struct worker *who[2 + WORKERS_MAX];
    int timeout = enforce_deadlines(s);
    unsigned n = fill_poll(s, p, who);
    int r;

    if (poll(p, n, s->more_to_reap ? 0 : timeout) < 0)
        return errno == EINTR ? 0 : -errno;
    if (p[0].revents != 0)
        drain_signals(s);
    if (s->more_to_reap)
        reap(s);
    r = flush(s);
    for (unsigned i = 2; i < n && r == 0 && !is_sending(s); i++) {
        if (p[i].revents == 0)
            continue;
        take_answer(s, who[i]);
        r = flush(s);
    }
    while (r == 0 && s->request_fd >= 0 && !is_sending(s) &&
           groups_next_event(&s->groups) != NULL) {
        tell_end(s);
        r = flush(s);
    }
    if (r == 0 && s->request_fd >= 0 && !is_sending(s) && p[1].revents != 0) {
        r = take_request(s);
        if (r == 0)
            r = flush(s);
    }
    return r;
}

static int open_signals(int *ret_fd, struct err *e)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return err_sys(e, errno, "block SIGCHLD");
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd < 0 ? err_sys(e, errno, "signalfd") : 0;
}

int server_run(int request_fd, const struct init_start *limits, struct err *e)
{
    static struct server server; /* one per process, and large */
    struct server *s = &server;
    int r;

    s->request_fd = request_fd;
    s->limits = limits;
    leaves_init(limits->groups ? INIT_GROUPS_FD : -1);
    s->more_to_reap = 1;
    outbox_init(&s->out);
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        s->workers[i].channel_fd = -1;
    r = open_signals(&s->signal_fd, e);
    while (r == 0)
        r = turn(s);
    return r == -HC_EGONE ? 0 : r;
}
