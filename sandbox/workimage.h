/*
 * workimage - the file NAME.img of a workspace: found or made, and locked. Any number of servers may
 * do that at the same time in one directory: a name is of a whole image from its first moment on,
 * and what is not whole has no name, or one of its own.
 */
#ifndef HC_WORKIMAGE_H
#define HC_WORKIMAGE_H

#include <stdint.h>
#include <sys/types.h>

#include "extimage.h"

enum { WORKIMAGE_NAME_SIZE = 64 }; /* of a principal */

struct workimage {
    int fd; /* owned; who keeps the file open keeps the lock */
    uint64_t bytes;
    dev_t dev;
    ino_t ino;
    int made; /* just now, by us */
};

struct workimage_place {
    int dir_fd;
    uint64_t reserve; /* bytes of the disk that stay free */
    struct extimage_cache *templates;
};

/* bytes: of its file system, when it is made. -EWOULDBLOCK: somebody has the lock. -HC_EFULL: the
 * disk has no room. */
int workimage_open(const struct workimage_place *p, const char *name,
                   const struct extimage_spec *spec, struct workimage *ret,
                   struct err *e) MUST_CHECK;

/* 1 while the name is still that of the file. */
int workimage_is_named(int dir_fd, const char *name, dev_t dev, ino_t ino);

/* Whether a file can be made without a name here, or with one that is taken away. */
int workimage_unnamed(int dir_fd, int *ret_fd, struct err *e) MUST_CHECK;

/* Removes what servers left that died while they made one. */
void workimage_sweep(int dir_fd);

#endif
