/*
 * mountfd - detached mounts as descriptors (fsopen, fsmount), made by the launcher
 * in the initial user namespace and moved into a sandbox later. Made there, they
 * show neither host paths nor host ids in a session's mountinfo, and a superblock
 * sealed read-only cannot be opened again by any capability inside.
 */
#ifndef HC_MOUNTFD_H
#define HC_MOUNTFD_H

#include <stdint.h>
#include <sys/mount.h>

#include "cleanup.h"

struct err;

enum {
    MOUNTFD_DATA = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
    MOUNTFD_TREE = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY,
};

struct mountfd_tmpfs {
    const char *source; /* what mountinfo shows */
    uint64_t bytes;
    uint32_t inodes;
    unsigned mode;       /* of its root */
    unsigned attributes; /* MOUNT_ATTR_* */
};

int mountfd_tmpfs(const struct mountfd_tmpfs *t, int *ret_fd, struct err *e) MUST_CHECK;

/* Puts files below the root directory fd. */
typedef int mountfd_fill(int fd, void *arg, struct err *e);
/* Filled once, then read-only: the mount, and the superblock, which no capability inside can undo. */
int mountfd_sealed(const struct mountfd_tmpfs *t, mountfd_fill *fill, void *arg, int *ret_fd,
                   struct err *e) MUST_CHECK;

/* A read-only overlay of directories of the caller's mount namespace, topmost
 * first, at least two: its inodes are its own, so that locks and watches on the
 * same file in two sessions do not meet. more_attributes: beside MOUNTFD_TREE. */
int mountfd_overlay(const char *source, const int *lower_fds, unsigned count,
                    unsigned more_attributes, int *ret_fd, struct err *e) MUST_CHECK;

/* Mounts it at a path; follows no link at its end. */
int mountfd_attach(int fd, const char *target, struct err *e) MUST_CHECK;

#endif
