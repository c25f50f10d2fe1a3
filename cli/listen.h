/* listen - the sockets that clients reach: TCP and Unix. Bound by the supervisor, so that
 * they stay and connections wait in their backlogs while a gateway is replaced. */
#ifndef HC_LISTEN_H
#define HC_LISTEN_H

#include <stdint.h>
#include <sys/types.h>

#include "cleanup.h"

struct err;

enum { LISTEN_TEXT = 128, LISTEN_MAX = 4 };

struct listen_socket {
    int fd;                    /* owned by the caller; close-on-exec, non-blocking */
    unsigned port;             /* as bound; 0: a Unix socket */
    char address[LISTEN_TEXT]; /* "127.0.0.1:8888", "[::1]:8888", "unix:/run/x.sock" */
    dev_t dev;                 /* of a Unix socket's file: it is removed only while it is ours */
    ino_t ino;
};

struct listen_sockets {
    struct listen_socket at[LISTEN_MAX];
    unsigned count;
};

/* Who may connect to a Unix socket. */
struct listen_access {
    mode_t mode;
    gid_t group;
};

/* mode: octal digits, NULL: 0660. group: name or number, NULL: root's. Errors name the option. */
int listen_access_read(const char *mode, const char *group, struct listen_access *ret,
                       struct err *e) MUST_CHECK;

/* text: a comma list of ADDRESS:PORT with a numeric address (IPv6 in brackets) or `localhost`
 * (port 0 lets the kernel choose), and unix:/PATH. A socket file that a dead server left is
 * replaced. Errors name --listen. */
int listen_open(const char *text, const struct listen_access *access, struct listen_sockets *ret,
                struct err *e) MUST_CHECK;
/* Closes, and removes the files of Unix sockets, unless somebody put another one there. */
void listen_close(struct listen_sockets *l);

/* What the whole text reaches: 1 when nothing but this host; -EINVAL when it is no list of
 * addresses. */
int listen_is_local(const char *text, struct err *e) MUST_CHECK;

/* As listen_open(), which is tried for some seconds while an address is in use. With retries: of one
 * address and port; when that is in use or reserved, up to so many others: the next five, then
 * chance ones near it. */
int listen_near(const char *text, unsigned retries, const struct listen_access *access,
                struct listen_sockets *ret, struct err *e) MUST_CHECK;

#endif
