#include "handles.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "settings.h"

enum { LINGER_S = 20 };

static const char connection[] = "{\"ip\": \"x\", \"transport\": \"ipc\", \"key\": \"\"}";

int handle_memfd(const char *text, int sealed)
{
    int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    size_t n = strlen(text);

    if (fd >= 0 && write(fd, text, n) == (ssize_t)n && sealed)
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    return fd;
}

static int large_memfd(void)
{
    int fd = memfd_create("large", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 && ftruncate(fd, (off_t)1 << 40) == 0)
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    return fd;
}

static int listening(void)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && (bind(fd, (struct sockaddr *)&a, sizeof a.sun_family) < 0 || listen(fd, 4) < 0))
        closep(&fd);
    return fd;
}

static int pipe_end(int which, int full)
{
    char page[4096] = { 0 };
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    while (full && write(ends[1], page, sizeof page) > 0)
        ;
    close(ends[!which]);
    return ends[which];
}

static int fifo(void)
{
    int dir = GATEWAY_DIR_FD, fd;

    unlinkat(dir, "fifo", 0);
    if (mknodat(dir, "fifo", S_IFIFO | 0600, 0) < 0)
        return -1;
    fd = openat(dir, "fifo", O_RDWR | O_CLOEXEC);
    return fd;
}

static int locked_file(void)
{
    struct flock lock = { .l_type = F_WRLCK };
    int fd = openat(GATEWAY_DIR_FD, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd >= 0)
        (void)fcntl(fd, F_OFD_SETLK, &lock);
    return fd;
}

/* The conductor connects and reads nothing: what is last closed of it waits for its bytes to leave. */
static int lingering(void)
{
    const struct linger linger = { 1, LINGER_S };
    static const char block[65536];
    int fd = accept4(GATEWAY_LISTEN_FD, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return -1;
    while (write(fd, block, sizeof block) > 0)
        ;
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    return fd;
}

static int waiting_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    return signalfd(-1, &none, SFD_CLOEXEC);
}

static int of_known(struct peer *p)
{
    const struct known *k = &p->known[peer_any(p, PEER_KNOWN)];
    int fd = peer_one_in(p, 2) ? k->init_fd : k->run_fd;

    return k->id != 0 && fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
}

int handle_any(struct peer *p)
{
    int ends[2];

    switch (peer_any(p, 24)) {
    case 0:
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    case 1:
        return open("/", O_PATH | O_CLOEXEC);
    case 2:
        return open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    case 3:
        return handle_memfd(connection, 1);
    case 4:
        return handle_memfd(connection, 0);
    case 5:
        return handle_memfd("", 1);
    case 6:
        return large_memfd();
    case 7:
        return pipe_end(0, 0);
    case 8:
        return pipe_end(1, 1);
    case 9:
        return pipe_end(0, 1);
    case 10:
        return listening();
    case 11:
        return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    case 12:
        return fcntl(GATEWAY_LISTEN_FD, F_DUPFD_CLOEXEC, 3);
    case 13:
        p->nested = 1;
        return fcntl(p->fd, F_DUPFD_CLOEXEC, 3);
    case 14:
        return epoll_create1(EPOLL_CLOEXEC);
    case 15:
        return eventfd(0, EFD_CLOEXEC);
    case 16:
        return inotify_init1(IN_CLOEXEC);
    case 17:
        return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    case 18:
        return fifo();
    case 19:
        return locked_file();
    case 20:
        return lingering();
    case 21:
        return waiting_signals();
    case 22:
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
            return -1;
        close(ends[1]);
        return ends[0];
    default:
        return of_known(p);
    }
}

unsigned handles_start(unsigned flags, int fds[HANDLES_START], int *ret_log)
{
    unsigned n = flags & LAUNCH_SOCKETS_FD ? HANDLES_START : 2;
    int log[2];

    fds[0] = handle_memfd(connection, 1);
    if (ret_log != NULL && pipe2(log, O_CLOEXEC) == 0) {
        *ret_log = log[0];
        fds[1] = log[1];
    } else {
        fds[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    }
    for (unsigned i = 2; i < n; i++)
        fds[i] = listening();
    return n;
}

void handles_close(int *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        closep(&fds[i]);
}
