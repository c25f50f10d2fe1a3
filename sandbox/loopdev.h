/*
 * loopdev - a file as a block device (loop(4)) that frees itself: with the last
 * descriptor and mount of it, however its processes ended, the device is free again
 * and the file gone, when it has no name. So there is never anything to sweep.
 */
#ifndef HC_LOOPDEV_H
#define HC_LOOPDEV_H

#include "cleanup.h"

struct err;

/* *ret_fd is the device, open for reading and writing; the device keeps the file. -ENODEV:
 * this host lets us have no loop device. */
int loopdev_attach(int file_fd, int *ret_fd, struct err *e) MUST_CHECK;

/* Whether there is one to be had just now; -ENODEV as above: a /dev that was made once, in a container, has
 * a few, and others may be using them. */
int loopdev_check(struct err *e) MUST_CHECK;

/* For the ext4 that is mounted from the device: the driver writes zeros around what a file has only been
 * promised, by a request that loop(4) carries out as a hole. The image would lose blocks that it was given,
 * as many as a session likes. Fails where /sys is not ours to write, in containers. */
int loopdev_keep_blocks(int device_fd);

#endif
