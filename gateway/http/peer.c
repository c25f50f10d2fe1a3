#include "peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

const char *peer_text(int fd, char *out, size_t n)
{
    struct sockaddr_storage addr = { 0 };
    socklen_t size = sizeof addr;
    char host[INET6_ADDRSTRLEN] = "";

    out[0] = '\0';
    if (getpeername(fd, (struct sockaddr *)&addr, &size) != 0)
        return out;
    if (addr.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&addr;

        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(out, n, "%s:%u", host, ntohs(in->sin_port));
    } else if (addr.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&addr;

        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(out, n, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else if (addr.ss_family == AF_UNIX) {
        snprintf(out, n, "unix");
    }
    return out;
}
