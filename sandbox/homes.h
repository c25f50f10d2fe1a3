/*
 * homes - /home/user of a session, with what lies in it at first: a file system of the
 * session's memory, or one in an image file on the host's disk, which has no name and
 * goes with the session.
 */
#ifndef HC_HOMES_H
#define HC_HOMES_H

#include "extimage.h"
#include "sandbox.h"

struct homes {
    int dir_fd; /* owned: images lie here; -1: no home on disk */
    struct extimage_cache templates;
};

#define HOMES_NONE ((struct homes){ .dir_fd = -1 })

/* Tries one out, and makes what those with these limits are copied from. dir_fd is borrowed; on
 * failure *h is as it was. */
int homes_open(struct homes *h, int dir_fd, const struct launch_limits *usual,
               struct err *e) MUST_CHECK;
void homes_close(struct homes *h);

/* A detached mount that belongs to user_id, with outputs/ and, when asked for, work/. *ret_root_fd
 * is for extimage_drop(), or -1. */
int homes_make(struct homes *h, const struct launch_limits *limits, enum sandbox_home kind,
               uid_t user_id, int with_work, int *ret_fd, int *ret_root_fd,
               struct err *e) MUST_CHECK;

#endif
