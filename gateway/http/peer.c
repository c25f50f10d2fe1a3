/* peer - see peer.h. */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "err.h"

/* ---- from the kernel ------------------------------------------------------ */

/* ::ffff:192.0.2.1 is a guest of IPv4 on a socket for both. */
static void set_v6(struct peer *p, const struct in6_addr *a)
{
    if (IN6_IS_ADDR_V4MAPPED(a)) {
        p->family = AF_INET;
        memcpy(p->address, a->s6_addr + 12, 4);
    } else {
        p->family = AF_INET6;
        memcpy(p->address, a->s6_addr, 16);
    }
}

static void set_unix(struct peer *p, int fd)
{
    struct ucred who;
    socklen_t n = sizeof who;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) != 0 || n != sizeof who)
        return;
    p->family = AF_UNIX;
    p->pid = (uint32_t)who.pid;
    p->uid = who.uid;
    p->gid = who.gid;
}

struct peer peer_of_socket(int fd)
{
    struct peer p = { 0 };
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_storage room;
    } a = { 0 };
    socklen_t n = sizeof a;

    if (getpeername(fd, &a.any, &n) != 0)
        return p;
    if (a.any.sa_family == AF_INET) {
        p.family = AF_INET;
        memcpy(p.address, &a.in.sin_addr, 4);
        p.port = ntohs(a.in.sin_port);
    } else if (a.any.sa_family == AF_INET6) {
        set_v6(&p, &a.in6.sin6_addr);
        p.port = ntohs(a.in6.sin6_port);
    } else if (a.any.sa_family == AF_UNIX) {
        set_unix(&p, fd);
    }
    return p;
}

/* ---- text ----------------------------------------------------------------- */

static int parse_address(struct view text, struct peer *p)
{
    char host[INET6_ADDRSTRLEN];
    struct in6_addr six;

    if (text.n == 0 || text.n >= sizeof host || memchr(text.p, '\0', text.n) != NULL)
        return 0;
    memcpy(host, text.p, text.n);
    host[text.n] = '\0';
    if (inet_pton(AF_INET, host, p->address) == 1) {
        p->family = AF_INET;
        return 1;
    }
    if (inet_pton(AF_INET6, host, &six) != 1)
        return 0;
    set_v6(p, &six);
    return 1;
}

static int parse_number(struct view text, unsigned max, unsigned *ret)
{
    unsigned value = 0;

    if (text.n == 0 || text.n > 5)
        return 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return 0;
        value = value * 10 + (text.p[i] - '0');
    }
    *ret = value;
    return value <= max;
}

/* Two colons, and no brackets: IPv6 without a port. */
static int many_colons(struct view v)
{
    const uint8_t *first = memchr(v.p, ':', v.n);

    return first != NULL && memchr(first + 1, ':', v.n - (size_t)(first + 1 - v.p)) != NULL;
}

static struct view after(struct view v, const uint8_t *p)
{
    return (struct view){ p, v.n - (size_t)(p - v.p) };
}

int peer_parse(struct view text, struct peer *ret)
{
    struct peer p = { 0 };
    struct view host = text, port = { 0 };
    const uint8_t *end;
    unsigned number = 0;

    if (text.n == 0)
        return 0;
    if (text.p[0] == '[') {
        end = memchr(text.p, ']', text.n);
        if (end == NULL)
            return 0;
        host = (struct view){ text.p + 1, (size_t)(end - text.p) - 1 };
        port = after(text, end + 1);
        if (port.n > 0 && *port.p != ':')
            return 0;
    } else if (!many_colons(text) && (end = memchr(text.p, ':', text.n)) != NULL) {
        host.n = (size_t)(end - text.p);
        port = after(text, end);
    }
    if (!parse_address(host, &p))
        return 0;
    if (port.n > 0 && !parse_number(after(port, port.p + 1), 65535, &number))
        return 0;
    p.port = (uint16_t)number;
    *ret = p;
    return 1;
}

const char *peer_text(const struct peer *p, char out[PEER_TEXT])
{
    char host[INET6_ADDRSTRLEN] = "";
    int six = p->family == AF_INET6;

    if (p->family == AF_UNIX) {
        snprintf(out, PEER_TEXT, "unix:uid=%u,pid=%u", p->uid, p->pid);
        return out;
    }
    if (p->family == AF_UNSPEC) {
        out[0] = '\0';
        return out;
    }
    inet_ntop(p->family, p->address, host, sizeof host);
    if (p->port != 0)
        snprintf(out, PEER_TEXT, "%s%s%s:%u", six ? "[" : "", host, six ? "]" : "", p->port);
    else
        snprintf(out, PEER_TEXT, "%s", host);
    return out;
}

/* ---- lists ---------------------------------------------------------------- */

static int parse_net(struct view item, struct peer_net *ret)
{
    const uint8_t *slash = memchr(item.p, '/', item.n);
    struct view host = { item.p, slash != NULL ? (size_t)(slash - item.p) : item.n };
    struct peer p = { 0 };
    unsigned most, bits;

    if (view_equals(item, "unix")) {
        *ret = (struct peer_net){ .family = AF_UNIX };
        return 1;
    }
    if (!parse_address(host, &p))
        return 0;
    most = p.family == AF_INET ? 32 : 128;
    bits = most;
    if (slash != NULL && !parse_number(after(item, slash + 1), most, &bits))
        return 0;
    *ret = (struct peer_net){ .family = p.family, .bits = bits };
    memcpy(ret->address, p.address, sizeof p.address);
    return 1;
}

int peer_list_parse(const char *text, struct peer_list *ret, struct err *e)
{
    struct peer_list list = { 0 };

    for (const char *p = text; p != NULL && *p != '\0';) {
        size_t n = strcspn(p, ","), skip = strspn(p, " ");
        struct view item = { (const uint8_t *)p + skip, skip < n ? n - skip : 0 };

        while (item.n > 0 && item.p[item.n - 1] == ' ')
            item.n--;
        if (list.count == PEER_LIST_MAX)
            return err_set(e, EINVAL, "more than %d addresses", PEER_LIST_MAX);
        if (!parse_net(item, &list.nets[list.count]))
            return err_set(e, EINVAL, "'%.*s' is no address, ADDRESS/BITS or 'unix'",
                           (int)(item.n < 60 ? item.n : 60), (const char *)item.p);
        list.count++;
        p += n;
        if (*p == ',' && *++p == '\0')
            return err_set(e, EINVAL, "the list ends in a comma");
    }
    *ret = list;
    return 0;
}

static int net_has(const struct peer_net *net, const struct peer *p)
{
    unsigned whole = net->bits / 8, rest = net->bits % 8;

    if (net->family != p->family)
        return 0;
    if (memcmp(net->address, p->address, whole) != 0)
        return 0;
    return rest == 0 || ((net->address[whole] ^ p->address[whole]) >> (8 - rest)) == 0;
}

int peer_list_has(const struct peer_list *list, const struct peer *p)
{
    for (unsigned i = 0; i < list->count; i++)
        if (net_has(&list->nets[i], p))
            return 1;
    return 0;
}
