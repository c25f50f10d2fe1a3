#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

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

int listen_is_loopback(const char *text, struct err *e)
{
    union address a;
    int rc = parse(text, &a, e);

    return rc < 0 ? rc : is_loopback(&a);
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

int listen_open(const char *text, struct listen_socket *ret, struct err *e)
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
    made.loopback = is_loopback(&a);
    made.fd = take_fd(&fd);
    *ret = made;
    return 0;
}
