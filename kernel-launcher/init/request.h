/*
 * request - a decoded and checked request to init. Pure: looks at bytes only.
 */
#ifndef HC_REQUEST_H
#define HC_REQUEST_H

#include "initmsg.h"

struct err;

enum { REQUEST_STRINGS_MAX = 4096 }; /* of argv, of env */

struct request {
    struct msg_head head;
    union { /* by head.verb; views borrow from the packet */
        struct init_open open;
        struct init_path path;
        struct init_list list;
        struct init_aside aside;
        struct init_rename rename;
        struct init_remove remove;
        struct init_spawn spawn;
        struct init_kill kill;
    } body;
};

/* 0, or -HC_EPARSE: the sender is broken and gets no further chance. */
int request_decode(struct view packet, unsigned fds, struct request *ret, struct err *e) MUST_CHECK;

#endif
