/*
 * workspaces - a file system for each principal that outlives its sessions: an ext4 image
 * DIR/NAME.img, as large as its quota, mounted as long as there are sessions that have it and
 * some time longer. Each session sees its files as its own user's, whose number on the disk
 * is the same for all: by a mount with ids laid over it.
 *
 * An image is used by one mount at a time, whatever servers there are: a lock on the file, which
 * the loop device keeps, says so.
 */
#ifndef HC_WORKSPACES_H
#define HC_WORKSPACES_H

#include <stdint.h>
#include <sys/types.h>

#include "extimage.h"

struct workspace; /* one principal's */

struct workspaces {
    int dir_fd;       /* owned; -1: there are none */
    uint64_t reserve; /* bytes of the disk that stay free */
    struct extimage_cache templates;
    struct workspace *first; /* owned, as are those that */
    struct workspace *going; /* are unmounted just now */
    uint64_t clock;
};

#define WORKSPACES_NONE ((struct workspaces){ .dir_fd = -1 })

/* A path of a directory, which is made when it is missing, and has to be root's alone. Tries one out,
 * without a name. On failure *w is as it was: -EBUSY when sessions have workspaces of another directory. */
int workspaces_open(struct workspaces *w, const char *path, uint64_t reserve,
                    struct err *e) MUST_CHECK;
/* Whether that would do, of a path, or of a directory that is open; makes nothing that stays. */
int workspaces_try(const char *path, struct err *e) MUST_CHECK;
int workspaces_try_in(int dir_fd, struct err *e) MUST_CHECK;
void workspaces_close(struct workspaces *w); /* what sessions still use stays theirs */

/* One more user of the workspace of that name (bytes: its quota, when it is made now). *ret_fd: a
 * detached mount in which its files belong to user_id. -HC_EFULL: no room on the disk, another server has
 * it, or its last mount is not gone yet. The first time of a name waits for the disk. */
int workspaces_take(struct workspaces *w, const char *name, uint64_t bytes, uid_t user_id,
                    struct workspace **ret, int *ret_fd, struct err *e) MUST_CHECK;
uint64_t workspace_bytes(const struct workspace *one); /* of its image: no file in it is larger */
/* When its session is gone: with the last one everything is written to the disk, by a child. */
void workspaces_leave(struct workspaces *w, struct workspace *one);
/* Whoever reaps our children tells of each that is none of his: it may be one of these. */
void workspaces_reaped(struct workspaces *w, pid_t pid);

#endif
