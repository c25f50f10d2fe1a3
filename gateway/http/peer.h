/*
 * peer - the other end of a connection, as the kernel tells it, and lists of peers that
 * have a say: proxies whose forwarding headers count.
 */
#ifndef HC_PEER_H
#define HC_PEER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "buf.h"

struct err;

enum { PEER_TEXT = 64, PEER_LIST_MAX = 64 };

struct peer {
    sa_family_t family;  /* AF_INET, AF_INET6, AF_UNIX; AF_UNSPEC: not known */
    uint8_t address[16]; /* in network order; 4 bytes of IPv4. An IPv4-mapped one is AF_INET */
    uint16_t port;
    uint32_t pid, uid, gid; /* AF_UNIX: who connected (SO_PEERCRED) */
};

/* What the kernel knows of the socket's other end. */
struct peer peer_of_socket(int fd);

/* Reads an address as proxies write it: 192.0.2.1, 192.0.2.1:4711, 2001:db8::1,
 * [2001:db8::1], [2001:db8::1]:4711. Returns 1, or 0 when it is none. */
int peer_parse(struct view text, struct peer *ret);

/* "192.0.2.1:4711", "[2001:db8::1]:4711", "unix:uid=0,pid=12"; without a port just the
 * address. "" when it is not known. Returns out. */
const char *peer_text(const struct peer *p, char out[PEER_TEXT]);

/* Items: an address, ADDRESS/BITS, or `unix` (whoever reaches the Unix socket). */
struct peer_list {
    unsigned count;
    struct peer_net {
        sa_family_t family;
        uint8_t address[16];
        unsigned bits;
    } nets[PEER_LIST_MAX];
};

/* A comma list. -EINVAL tells the item that is none of the above; NULL and "" are the
 * empty list, which holds nobody. */
int peer_list_parse(const char *text, struct peer_list *ret, struct err *e) MUST_CHECK;
int peer_list_has(const struct peer_list *list, const struct peer *p);

#endif
