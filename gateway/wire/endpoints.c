#include "endpoints.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "buf.h"
#include "err.h"
#include "jsonwrite.h"
#include "memfd.h"
#include "random.h"

enum { BACKLOG = 1024, CONNECTION_MAX = 4096 };

void endpoints_key(char out[KEY_TEXT])
{
    char digits[33];

    random_text(digits, 32);
    snprintf(out, KEY_TEXT, "%.8s-%s", digits, digits + 8);
}

/* sun_path holds 108 bytes and the private directory may lie deep: the name is
 * reached through our own descriptor, and getsockname() in the kernel shows no
 * path of the host. */
static int listen_one(const struct endpoints *p, unsigned which, struct err *e)
{
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_sys(e, errno, "make a socket for the kernel");
    int n = snprintf(sun.sun_path, sizeof sun.sun_path, "/proc/self/fd/%d/%s-%u", p->dir_fd,
                     p->base, which + 1);
    check(n > 0 && (size_t)n < sizeof sun.sun_path);
    if (bind(fd, (struct sockaddr *)&sun, sizeof sun) < 0)
        return err_sys(e, errno, "bind a socket for the kernel");
    if (listen(fd, BACKLOG) < 0)
        return err_sys(e, errno, "listen for the kernel");
    return take_fd(&fd);
}

int endpoints_listen(struct endpoints *p, int dir_fd, int ret_listening[ENDPOINT_COUNT],
                     struct err *e)
{
    struct endpoints made = ENDPOINTS_NONE;

    made.dir_fd = dir_fd;
    random_text(made.base, ENDPOINT_BASE - 1);
    for (unsigned i = 0; i < ENDPOINT_COUNT; i++) {
        int fd = listen_one(&made, i, e);
        if (fd < 0) {
            while (i-- > 0)
                close(ret_listening[i]);
            endpoints_drop(&made);
            return fd;
        }
        ret_listening[i] = fd;
    }
    *p = made;
    return 0;
}

/* Not connect(2) by a path: the session may put a link in its place at any time.
 * The descriptor names the inode, and is checked before it is used. */
static int resolve_one(int run_fd, unsigned which, struct stat *st, struct err *e)
{
    struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    char name[16];

    snprintf(name, sizeof name, "s-%u", which + 1);
    autoclose int fd = (int)syscall(SYS_openat2, run_fd, name, &how, sizeof how);
    if (fd < 0 && errno == ENOENT)
        return -ENOENT;
    if (fd < 0)
        return err_sys(e, errno == ELOOP || errno == EXDEV ? HC_EPARSE : errno, "kernel socket %s",
                       name);
    if (fstat(fd, st) < 0)
        return err_sys(e, errno, "kernel socket %s", name);
    if (!S_ISSOCK(st->st_mode))
        return err_set(e, HC_EPARSE, "kernel socket %s is no socket", name);
    return take_fd(&fd);
}

/* Between the kernel's bind() and its listen() a connect is refused, and ZMQ would
 * not try again: so the gateway knocks first. */
static int takes_connections(int path_fd)
{
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(sun.sun_path, sizeof sun.sun_path, "/proc/self/fd/%d", path_fd);
    return fd >= 0 && connect(fd, (struct sockaddr *)&sun, sizeof sun) == 0;
}

int endpoints_resolve(struct endpoints *p, int run_fd, struct err *e)
{
    struct endpoints found = ENDPOINTS_NONE;
    uid_t owner = 0;

    for (unsigned i = 0; i < ENDPOINT_COUNT; i++) {
        struct stat st;
        int fd = resolve_one(run_fd, i, &st, e);
        if (fd >= 0)
            found.fds[i] = fd;
        if (fd >= 0 && i > 0 && st.st_uid != owner)
            fd = err_set(e, HC_EPARSE, "the kernel's sockets have different owners");
        owner = fd >= 0 ? st.st_uid : owner;
        if (fd < 0 || !takes_connections(fd)) {
            endpoints_drop(&found);
            return fd >= 0 || fd == -ENOENT ? 0 : fd;
        }
    }
    *p = found;
    return 1;
}

void endpoints_text(const struct endpoints *p, unsigned which, char out[ENDPOINT_TEXT])
{
    if (p->base[0] != '\0')
        snprintf(out, ENDPOINT_TEXT, "/proc/self/fd/%d/%s-%u", p->dir_fd, p->base, which + 1);
    else
        snprintf(out, ENDPOINT_TEXT, "/proc/self/fd/%d", p->fds[which]);
}

void endpoints_drop(struct endpoints *p)
{
    char name[ENDPOINT_TEXT];

    for (unsigned i = 0; i < ENDPOINT_COUNT; i++) {
        closep(&p->fds[i]);
        if (p->base[0] == '\0')
            continue;
        snprintf(name, sizeof name, "%s-%u", p->base, i + 1);
        unlinkat(p->dir_fd, name, 0);
    }
    *p = (struct endpoints)ENDPOINTS_NONE;
}

int endpoints_own(const struct endpoints *p, const char *name)
{
    size_t n = strlen(p->base);

    return n > 0 && strncmp(name, p->base, n) == 0 && name[n] == '-';
}

void endpoints_sweep(int dir_fd, int (*wanted)(void *arg, const char *name), void *arg)
{
    /* A description of its own: the directory's offset is shared with later gateways. */
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    if (d == NULL) {
        closep(&fd);
        return;
    }
    while ((entry = readdir(d)) != NULL) {
        if (entry->d_name[0] != '.' && !wanted(arg, entry->d_name))
            unlinkat(dir_fd, entry->d_name, 0);
    }
    closedir(d);
}

int endpoints_connection(const char *ip, const char *key, const char *kernel_name, int *ret_fd,
                         struct err *e)
{
    static const char *const ports[ENDPOINT_COUNT] = { "shell_port", "control_port", "stdin_port",
                                                       "iopub_port", "hb_port" };
    autobuf struct buf out = { 0 };

    buf_init(&out, CONNECTION_MAX);
    struct jsonwrite w = jsonwrite_to(&out);
    jsonwrite_object(&w);
    for (unsigned i = 0; i < ENDPOINT_COUNT; i++) {
        jsonwrite_key(&w, ports[i]);
        jsonwrite_uint(&w, i + 1);
    }
    const char *const texts[][2] = {
        { "ip", ip },
        { "key", key },
        { "transport", "ipc" },
        { "signature_scheme", "hmac-sha256" },
        { "kernel_name", kernel_name },
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        jsonwrite_key(&w, texts[i][0]);
        jsonwrite_str(&w, texts[i][1]);
    }
    jsonwrite_end(&w);
    int rc = jsonwrite_finish(&w, e);
    if (rc < 0)
        return rc;
    struct view v = buf_view(&out);
    return memfd_sealed("connection", v.p, v.n, ret_fd, e);
}
