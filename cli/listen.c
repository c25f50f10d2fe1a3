#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "err.h"

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

static int parse_port(const char *text, in_port_t *ret)
{
    unsigned port = 0;

    if (*text == '\0' || strlen(text) > 5)
        return -1;
    for (; *text >= '0' && *text <= '9'; text++)
        port = port * 10 + (unsigned)(*text - '0');
    if (*text != '\0' || port > 65535)
        return -1;
    *ret = htons((uint16_t)port);
    return 0;
}

/* No resolver: a name that DNS decides is no place to bind a server to. */
static int parse(const char *text, union address *ret, struct err *e)
{
    char host[INET6_ADDRSTRLEN + 2];
    const char *colon = strrchr(text, ':');
    size_t n = colon != NULL ? (size_t)(colon - text) : 0;
    in_port_t port;

    if (n == 0 || n >= sizeof host || parse_port(colon + 1, &port) < 0)
        return err_set(e, EINVAL, "option --listen: '%.80s' is not ADDRESS:PORT", text);
    memcpy(host, text, n);
    host[n] = '\0';
    memset(ret, 0, sizeof *ret);
    if (host[0] == '[' && host[n - 1] == ']') {
        host[n - 1] = '\0';
        ret->in6.sin6_family = AF_INET6;
        ret->in6.sin6_port = port;
        if (inet_pton(AF_INET6, host + 1, &ret->in6.sin6_addr) == 1)
            return 0;
    } else {
        ret->in.sin_family = AF_INET;
        ret->in.sin_port = port;
        if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
                      &ret->in.sin_addr) == 1)
            return 0;
    }
    if (host[0] != '[' && strchr(host, ':') != NULL)
        return err_set(e, EINVAL,
                       "option --listen: '%.80s': an IPv6 address stands in brackets, [::1]:8888",
                       text);
    return err_set(e, EINVAL, "option --listen: '%.80s' is not a numeric address", text);
}

static int is_loopback(const union address *a)
{
    if (a->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr) ? 1 : 0;
    return ntohl(a->in.sin_addr.s_addr) >> 24 == 127;
}

static void format(const union address *a, struct listen_socket *out)
{
    char host[INET6_ADDRSTRLEN] = "";

    if (a->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a->in6.sin6_addr, host, sizeof host);
        out->port = ntohs(a->in6.sin6_port);
        snprintf(out->address, sizeof out->address, "[%s]:%u", host, out->port);
    } else {
        inet_ntop(AF_INET, &a->in.sin_addr, host, sizeof host);
        out->port = ntohs(a->in.sin_port);
        snprintf(out->address, sizeof out->address, "%s:%u", host, out->port);
    }
}

static int open_tcp(const char *text, struct listen_socket *ret, struct err *e)
{
    union address a;
    struct listen_socket made = { .fd = -1 };
    socklen_t size = sizeof a;
    int on = 1;
    int rc = parse(text, &a, e);

    if (rc < 0)
        return rc;
    autoclose int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(e, errno, "socket for %s", text);
    /* REUSEADDR: connections of an earlier run in TIME_WAIT must not hold the port.
     * Not REUSEPORT: a second server on the port has to fail. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
        return err_sys(e, errno, "SO_REUSEADDR");
    if (a.any.sa_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0)
        return err_sys(e, errno, "IPV6_V6ONLY");
    if (bind(fd, &a.any, a.any.sa_family == AF_INET6 ? sizeof a.in6 : sizeof a.in) < 0)
        return err_sys(e, errno, "option --listen: bind %s", text);
    if (listen(fd, SOMAXCONN) < 0)
        return err_sys(e, errno, "option --listen: listen on %s", text);
    if (getsockname(fd, &a.any, &size) < 0)
        return err_sys(e, errno, "getsockname");
    format(&a, &made);
    made.fd = take_fd(&fd);
    *ret = made;
    return 0;
}

/* ---- Unix sockets --------------------------------------------------------- */

#define UNIX_PREFIX "unix:"

/* The path, or NULL when the text names no Unix socket. */
static const char *unix_path(const char *text)
{
    return strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0 ? text + strlen(UNIX_PREFIX) : NULL;
}

static int unix_address(const char *path, struct sockaddr_un *ret, struct err *e)
{
    size_t n = strlen(path);

    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (path[0] != '/' || path[n - 1] == '/')
        return err_set(e, EINVAL, "option --listen: 'unix:%.80s' is not unix:/ABSOLUTE/PATH", path);
    if (n >= sizeof ret->sun_path)
        return err_set(e, EINVAL, "option --listen: the path of 'unix:%.60s...' is longer than %zu",
                       path, sizeof ret->sun_path - 1);
    memcpy(ret->sun_path, path, n + 1);
    return 0;
}

/* A socket that nobody listens to any more is what a killed server leaves. Everything else is
 * somebody's. */
static int remove_stale(const struct sockaddr_un *a, struct err *e)
{
    struct stat st;

    if (lstat(a->sun_path, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "option --listen: '%s'", a->sun_path);
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, EEXIST, "option --listen: '%s' exists and is no socket", a->sun_path);
    autoclose int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0)
        return err_sys(e, errno, "socket");
    if (connect(probe, (const struct sockaddr *)a, sizeof *a) == 0 || errno != ECONNREFUSED)
        return err_set(e, EADDRINUSE, "option --listen: somebody listens on '%s' already",
                       a->sun_path);
    if (unlink(a->sun_path) < 0 && errno != ENOENT)
        return err_sys(e, errno, "option --listen: remove the dead socket '%s'", a->sun_path);
    return 0;
}

static int bind_unix(int fd, const struct sockaddr_un *a, const struct listen_access *access,
                     struct err *e)
{
    /* bind() makes the file with what the umask leaves of 0777: at no moment more may
     * connect than shall. Until the group is set nobody of it can. */
    mode_t old = umask(0777 & ~access->mode);
    int rc = bind(fd, (const struct sockaddr *)a, sizeof *a), code = errno;

    umask(old);
    if (rc < 0)
        return err_sys(e, code, "option --listen: bind unix:%s", a->sun_path);
    if (lchown(a->sun_path, (uid_t)-1, access->group) < 0) {
        code = errno;
        (void)unlink(a->sun_path);
        return err_sys(e, code, "option --listen-group: '%s'", a->sun_path);
    }
    return 0;
}

static int open_unix(const char *path, const struct listen_access *access,
                     struct listen_socket *ret, struct err *e)
{
    struct listen_socket made = { .fd = -1 };
    struct sockaddr_un a;
    struct stat st;
    int rc = unix_address(path, &a, e);

    if (rc == 0)
        rc = remove_stale(&a, e);
    if (rc < 0)
        return rc;
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(e, errno, "socket");
    rc = bind_unix(fd, &a, access, e);
    if (rc < 0)
        return rc;
    if (listen(fd, SOMAXCONN) < 0 || lstat(path, &st) < 0) {
        rc = err_sys(e, errno, "option --listen: listen on unix:%s", path);
        (void)unlink(path);
        return rc;
    }
    made.dev = st.st_dev;
    made.ino = st.st_ino;
    snprintf(made.address, sizeof made.address, UNIX_PREFIX "%s",
             a.sun_path); /* its length is known */
    made.fd = take_fd(&fd);
    *ret = made;
    return 0;
}

int listen_access_read(const char *mode, const char *group, struct listen_access *ret,
                       struct err *e)
{
    struct listen_access a = { .mode = 0660 };
    size_t digits = mode != NULL ? strspn(mode, "01234567") : 0;

    if (mode != NULL) {
        if (digits == 0 || digits > 4 || mode[digits] != '\0')
            return err_set(e, EINVAL, "option --listen-mode: '%.20s' is no mode such as 0660",
                           mode);
        a.mode = (mode_t)strtoul(mode, NULL, 8);
        if ((a.mode & ~(mode_t)0777) != 0)
            return err_set(e, EINVAL, "option --listen-mode: '%.20s' has more than rwx", mode);
    }
    if (group != NULL) {
        const struct group *g = getgrnam(group);
        char *end = NULL;
        unsigned long number = strtoul(group, &end, 10);
        int numeric = *group >= '0' && *group <= '9' && *end == '\0' && number < UINT32_MAX;

        if (g == NULL && !numeric)
            return err_set(e, EINVAL, "option --listen-group: there is no group '%.60s'", group);
        a.group = g != NULL ? g->gr_gid : (gid_t)number;
    }
    *ret = a;
    return 0;
}

/* ---- the list ------------------------------------------------------------- */

/* Copies the next item and moves *text behind it; 0 at the end. */
static int next_item(const char **text, char *out, size_t size, struct err *e)
{
    size_t n = strcspn(*text, ",");

    if (**text == '\0')
        return 0;
    if (n == 0 || n >= size || ((*text)[n] == ',' && (*text)[n + 1] == '\0'))
        return err_set(e, EINVAL, "option --listen: '%.80s' is no list of addresses", *text);
    memcpy(out, *text, n);
    out[n] = '\0';
    *text += n + ((*text)[n] == ',');
    return 1;
}

int listen_is_local(const char *text, struct err *e)
{
    char item[256];
    int local = 1, rc;

    if (*text == '\0')
        return err_set(e, EINVAL, "option --listen: '' is not ADDRESS:PORT");
    while ((rc = next_item(&text, item, sizeof item, e)) > 0) {
        const char *path = unix_path(item);
        struct sockaddr_un name;
        union address a;

        rc = path != NULL ? unix_address(path, &name, e) : parse(item, &a, e);
        if (rc < 0)
            return rc;
        local = local && (path != NULL || is_loopback(&a));
    }
    return rc < 0 ? rc : local;
}

int listen_open(const char *text, const struct listen_access *access, struct listen_sockets *ret,
                struct err *e)
{
    struct listen_sockets made = { .count = 0 };
    char item[256];
    int rc;

    while ((rc = next_item(&text, item, sizeof item, e)) > 0) {
        const char *path = unix_path(item);

        if (made.count == LISTEN_MAX)
            rc = err_set(e, EINVAL, "option --listen: more than %d addresses", LISTEN_MAX);
        else
            rc = path != NULL ? open_unix(path, access, &made.at[made.count], e)
                              : open_tcp(item, &made.at[made.count], e);
        if (rc < 0)
            break;
        made.count++;
    }
    if (rc < 0) {
        listen_close(&made);
        return rc;
    }
    *ret = made;
    return 0;
}

void listen_close(struct listen_sockets *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        struct listen_socket *s = &l->at[i];
        const char *path = unix_path(s->address);
        struct stat st;

        if (path != NULL && lstat(path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
            (void)unlink(path);
        closep(&s->fd);
    }
    l->count = 0;
}

static unsigned other_port(unsigned port, unsigned number, unsigned retries)
{
    enum { IN_ORDER = 5, PORT_MIN = 1024, PORT_MAX = 65535 };
    uint32_t chance = 0;
    long candidate = (long)port + number;

    if (number > IN_ORDER && getrandom(&chance, sizeof chance, 0) == sizeof chance)
        candidate = (long)port - 2L * retries + (long)(chance % (4 * retries + 1));
    return candidate < PORT_MIN ? PORT_MIN : candidate > PORT_MAX ? PORT_MAX : (unsigned)candidate;
}

/* A server that was killed leaves its port to its gateway, which dies a moment later: who starts the
 * next one at once, as systemd does, would find it taken. */
static int open_soon(const char *text, const struct listen_access *access,
                     struct listen_sockets *ret, struct err *e)
{
    enum { PATIENCE_MS = 3000, NAP_MS = 50 };
    int rc = listen_open(text, access, ret, e);

    for (int waited = 0; rc == -EADDRINUSE && waited < PATIENCE_MS; waited += NAP_MS) {
        poll(NULL, 0, NAP_MS);
        rc = listen_open(text, access, ret, e);
    }
    return rc;
}

int listen_near(const char *text, unsigned retries, const struct listen_access *access,
                struct listen_sockets *ret, struct err *e)
{
    const char *colon = strrchr(text, ':');

    if (retries > 0 && (strchr(text, ',') != NULL || unix_path(text) != NULL))
        return err_set(e, EINVAL, "option --port-retries: goes with one address and port only");
    int rc = retries > 0 ? listen_open(text, access, ret, e) : open_soon(text, access, ret, e);
    for (unsigned i = 1; i <= retries && (rc == -EADDRINUSE || rc == -EACCES); i++) {
        autofree char *other = NULL;

        if (asprintf(&other, "%.*s:%u", (int)(colon - text), text,
                     other_port((unsigned)strtoul(colon + 1, NULL, 10), i, retries)) < 0)
            return err_set(e, ENOMEM, "no memory");
        rc = listen_open(other, access, ret, e);
    }
    return rc;
}
