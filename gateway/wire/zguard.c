#include "zguard.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "zguard_own.h"

#define PREFIX "holdcell-guard/"

enum { DESCRIPTORS = 1 << 19 }; /* untouched pages of it cost nothing */

/* One for the process, since the functions of the C library are. */
static struct {
    pthread_mutex_t lock;
    struct zguard list; /* ring head; made by the first of them */
    struct zroom pool;
    unsigned long long ids;
    unsigned waiting;
    int notices;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER, .notices = -1 };

static _Atomic(struct zguard *) by_descriptor[DESCRIPTORS];

static void lock(void)
{
    check(pthread_mutex_lock(&all.lock) == 0);
}

static void unlock(void)
{
    check(pthread_mutex_unlock(&all.lock) == 0);
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- the limits ---- */

size_t zguard_all_max(void)
{
    const uint64_t usual = 1ULL << 30, most = 4ULL << 30;
    struct rlimit r;

    if (getrlimit(RLIMIT_DATA, &r) < 0 || r.rlim_cur == RLIM_INFINITY)
        return (size_t)(usual / 4);
    return (size_t)((r.rlim_cur < most ? r.rlim_cur : most) / 4);
}

void zguard_set_all_max(size_t bytes)
{
    lock();
    all.pool.max = bytes;
    unlock();
}

/* ---- waiting ---- */

static int poll_again(struct zguard *g)
{
    struct epoll_event e = g->event;

    /* The edge: a peer that hung up is told once and not for ever. */
    if (g->waits || g->closed)
        e.events = (e.events & ~(uint32_t)EPOLLIN) | EPOLLET;
    return (int)syscall(SYS_epoll_ctl, g->epoll_fd, EPOLL_CTL_MOD, g->fd, &e);
}

static void poll_anew(struct zguard *g)
{
    if (g->fd >= 0 && g->epoll_fd >= 0)
        (void)poll_again(g); /* fails for one that is being closed */
}

static void set_waiting(struct zguard *g, int waits)
{
    if (g->waits == waits)
        return;
    g->waits = waits;
    all.waiting += waits ? 1 : -1u;
    if (all.pool.over != g)
        g->partial_since_ms = now_ms();
    poll_anew(g);
}

/* Of one kernel, or of all (NULL). */
static void wake(const struct zguard_kernel *k)
{
    for (struct zguard *g = all.list.next; all.waiting > 0 && g != &all.list; g = g->next) {
        if (g->waits && (k == NULL || g->kernel == k))
            set_waiting(g, 0);
    }
}

static void give_back(struct zguard *g, uint64_t number, size_t cost)
{
    int mine = zroom_let_go(&g->kernel->pool, g, &g->in_kernel, number, cost);

    if (zroom_let_go(&all.pool, g, &g->in_all, number, cost))
        wake(NULL);
    else if (mine)
        wake(g->kernel);
}

static void set_fault(struct zguard *g, const char *why)
{
    uint64_t one = 1;

    if (g->fault != NULL || g->closed)
        return;
    g->fault = why;
    ssize_t n = write(all.notices, &one, sizeof one); /* a full counter is readable too */
    (void)n;
}

/* ---- what arrives ---- */

static int may_take(const struct zguard *g, size_t cost)
{
    const struct zroom *k = &g->kernel->pool;

    return zroom_fits(k, g, g->numbers_in, cost) && (k->held + k->beyond + cost <= ZGUARD_FREE ||
                                                     zroom_fits(&all.pool, g, g->numbers_in, cost));
}

static int on_part(void *arg, uint64_t part, int first)
{
    struct zguard *g = arg;
    size_t cost = (size_t)part + ZGUARD_PART_COST;

    lock();
    /* The loop may have closed it since zguard_receive() asked: what it had was given back, and what it
     * took now nobody would give back. */
    const int over = g->closed || g->fault != NULL;
    if (first && !over)
        g->partial_since_ms = now_ms();
    const int yes = !over && may_take(g, cost);
    if (yes) {
        zroom_hold(&g->kernel->pool, g, &g->in_kernel, g->numbers_in, g->partial, cost);
        zroom_hold(&all.pool, g, &g->in_all, g->numbers_in, g->partial, cost);
        g->partial += cost;
    } else if (!over) {
        set_waiting(g, 1);
    }
    unlock();
    return yes;
}

static void on_message(void *arg)
{
    struct zguard *g = arg;

    lock();
    g->numbers_in++;
    g->partial = 0;
    unlock();
}

static const struct zmtpcount_limits limits = { ZGUARD_FRAME_MAX, ZGUARD_MESSAGE_MAX,
                                                ZGUARD_PARTS_MAX };
static const struct zmtpcount_ops ops = { on_part, on_message };

/* Reads what was counted, p[0..n). It is there, and nobody else reads; a descriptor sent along may
 * divide it. Returns how much of it was read as it was counted. */
static size_t consume(int fd, const uint8_t *p, size_t n)
{
    uint8_t read[8192];
    size_t done = 0;

    while (done < n) {
        size_t want = n - done < sizeof read ? n - done : sizeof read;
        long r = syscall(SYS_recvfrom, fd, read, want, 0, NULL, NULL);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0 || memcmp(read, p + done, (size_t)r) != 0)
            break;
        done += (size_t)r;
    }
    return done;
}

static long refuse(void)
{
    errno = ECONNRESET;
    return -1;
}

static long nothing_now(void)
{
    errno = EAGAIN;
    return -1;
}

/* Only what was counted goes to libzmq: heads are looked at before they are taken. */
static long receive_counted(struct zguard *g, int fd, void *p, size_t n)
{
    long r = syscall(SYS_recvfrom, fd, p, n, MSG_PEEK, NULL, NULL);

    if (r <= 0)
        return r;
    size_t taken = zmtpcount_take(&g->count, &limits, p, (size_t)r, &ops, g);
    const char *fault = zmtpcount_fault(&g->count);
    if (fault != NULL) {
        lock();
        set_fault(g, fault);
        unlock();
        return refuse();
    }
    if (taken == 0)
        return nothing_now();
    if (consume(fd, p, taken) == taken)
        return (long)taken;
    lock();
    set_fault(g, "what it sent was not there when it was read");
    unlock();
    return refuse();
}

/*
 * Of a connection that is closed libzmq learns nothing more, least of all that it ended. zmq_close() with linger 0
 * ends the pipe between socket and connection at once, and then libzmq (4.3.4) asks its other thread whether that is
 * done. Should the connection fail meanwhile, the rest of a message of which some parts are written is looked for in
 * the pipe that ended, and the process aborts (session_base_t::clean_pipes). After the handshake only reading makes a
 * connection fail, and a timer that PINGs set, which zmtpcount refuses. What was read before it was closed is dealt
 * with by then, a failure too: the I/O thread hears of zmq_close() only after the event in which it reads. Nor is the
 * failure needed: libzmq ends the connection whatever the peer does.
 */
long zguard_receive(struct zguard *g, int fd, void *p, size_t n, int flags)
{
    lock();
    const int closed = g->closed, over = g->fault != NULL;
    unlock();
    if (closed || over)
        return closed ? nothing_now() : refuse();
    if (flags != 0 || zmtpcount_allowed(&g->count) < n)
        return receive_counted(g, fd, p, n);
    long r = syscall(SYS_recvfrom, fd, p, n, 0, NULL, NULL);
    if (r > 0)
        (void)zmtpcount_take(&g->count, &limits, p, (size_t)r, &ops, g);
    return r;
}

/* ---- connections ---- */

struct zguard_kernel *zguard_kernel_new(void)
{
    struct zguard_kernel *k = xcalloc(1, sizeof *k);

    k->refs = 1;
    k->pool.max = ZGUARD_KERNEL_MAX;
    return k;
}

static void kernel_unref(struct zguard_kernel *k)
{
    if (--k->refs == 0)
        free(k);
}

struct zguard_kernel *zguard_kernel_drop(struct zguard_kernel *k)
{
    if (k == NULL)
        return NULL;
    lock();
    kernel_unref(k);
    unlock();
    return NULL;
}

static void unref(struct zguard *g)
{
    if (--g->refs > 0)
        return;
    g->prev->next = g->next;
    g->next->prev = g->prev;
    kernel_unref(g->kernel);
    free(g);
}

void zguard_drop(struct zguard *g)
{
    lock();
    unref(g);
    unlock();
}

struct zguard *zguard_open(struct zguard_kernel *k, const char *path,
                           char ret_endpoint[ZGUARD_ENDPOINT])
{
    struct zguard *g = xcalloc(1, sizeof *g);

    check(zguard_calls_here);
    g->refs = 1;
    g->kernel = k;
    g->epoll_fd = g->fd = -1;
    snprintf(g->path, sizeof g->path, "%s", path);
    lock();
    k->refs++;
    if (all.pool.max == 0)
        all.pool.max = zguard_all_max();
    if (all.list.next == NULL)
        all.list.next = all.list.prev = &all.list;
    g->id = ++all.ids;
    g->prev = &all.list;
    g->next = all.list.next;
    g->prev->next = g->next->prev = g;
    unlock();
    snprintf(ret_endpoint, ZGUARD_ENDPOINT, "ipc://" PREFIX "%llx", g->id);
    return g;
}

struct zguard *zguard_close(struct zguard *g)
{
    if (g == NULL)
        return NULL;
    lock();
    g->closed = 1;
    set_waiting(g, 0);
    poll_anew(g); /* what it is not told of must not wake it for ever */
    int moved =
        zroom_leave(&g->kernel->pool, g, &g->in_kernel) | zroom_leave(&all.pool, g, &g->in_all);
    g->partial = 0;
    if (moved)
        wake(NULL);
    unref(g);
    unlock();
    return NULL;
}

void zguard_give(struct zguard *g, size_t cost)
{
    lock();
    give_back(g, g->numbers_out++, cost);
    unlock();
}

const char *zguard_fault(struct zguard *g)
{
    lock();
    const char *why = g->told ? NULL : g->fault;
    g->told = why != NULL;
    unlock();
    return why;
}

struct zguard_use zguard_use(const struct zguard *g)
{
    lock();
    struct zguard_use u = { g->kernel->pool.held + g->kernel->pool.beyond,
                            all.pool.held + all.pool.beyond, g->waits };
    unlock();
    return u;
}

/* ---- the calls ---- */

struct zguard *zguard_connecting(const char *path)
{
    struct zguard *found = NULL;
    char *end;

    if (strncmp(path, PREFIX, sizeof PREFIX - 1) != 0)
        return NULL;
    unsigned long long id = strtoull(path + sizeof PREFIX - 1, &end, 16);
    lock();
    for (struct zguard *g = all.list.next; g != &all.list && found == NULL; g = g->next) {
        if (g->id == id && *end == '\0' && g->fd < 0)
            found = g;
    }
    if (found != NULL)
        found->refs++;
    unlock();
    return found;
}

void zguard_connected(struct zguard *g, int fd)
{
    int in_line = 1;

    /* What peeking shows is what is read then: a byte out of band would be in one of them alone.
     * Fails for what has none. */
    (void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &in_line, sizeof in_line);
    check(fd >= 0 && fd < DESCRIPTORS); /* RLIMIT_NOFILE is below */
    lock();
    g->refs++;
    g->fd = fd;
    g->count = (struct zmtpcount){ 0 };
    atomic_store(&by_descriptor[fd], g);
    unlock();
}

struct zguard *zguard_find(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS
               ? atomic_load_explicit(&by_descriptor[fd], memory_order_acquire)
               : NULL;
}

/* Of a message that did not end nobody hears. */
void zguard_disconnected(struct zguard *g, int fd)
{
    lock();
    atomic_store(&by_descriptor[fd], NULL);
    set_waiting(g, 0);
    g->fd = g->epoll_fd = -1;
    if (g->partial > 0)
        give_back(g, g->numbers_in, g->partial);
    g->partial = 0;
    unref(g);
    unlock();
}

int zguard_polled(struct zguard *g, int epoll_fd, int op, struct epoll_event *e)
{
    lock();
    int fd = g->fd, rc;
    g->epoll_fd = op == EPOLL_CTL_DEL ? -1 : epoll_fd;
    if (op != EPOLL_CTL_DEL)
        g->event = *e;
    if (op == EPOLL_CTL_MOD)
        rc = poll_again(g);
    else
        rc = (int)syscall(SYS_epoll_ctl, epoll_fd, op, fd, e);
    unlock();
    return rc;
}

/* ---- what is told ---- */

int zguard_notices(void)
{
    if (all.notices < 0)
        all.notices = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return all.notices < 0 ? -errno : all.notices;
}

void zguard_notices_taken(void)
{
    uint64_t count;
    ssize_t n = read(all.notices, &count, sizeof count);

    (void)n;
}

/* What g has begun keeps others waiting: it is what goes beyond, or one of those that take the room.
 * Within what each kernel has anyway nobody is kept waiting. */
static int is_in_the_way(const struct zguard *g)
{
    const struct zroom *k = &g->kernel->pool;

    return g->partial > 0 &&
           (all.pool.over == g || k->over == g || k->held + k->beyond > ZGUARD_FREE);
}

/* Who waits is held up by others, but for the one whose message is beyond the limit of all: the
 * others wait for that. */
static int is_stalled(const struct zguard *g, uint64_t now, uint64_t stall_ms)
{
    return g->fd >= 0 && is_in_the_way(g) && (!g->waits || all.pool.over == g) &&
           now - g->partial_since_ms >= stall_ms;
}

void zguard_end_stalled(uint64_t stall_ms)
{
    uint64_t now = now_ms();

    lock();
    for (struct zguard *g = all.list.next; all.waiting > 0 && g != &all.list; g = g->next) {
        if (!is_stalled(g, now, stall_ms))
            continue;
        set_fault(g, "a message did not end while others waited for the room that it took");
        shutdown(g->fd, SHUT_RDWR); /* wakes libzmq, which then is refused */
    }
    unlock();
}
