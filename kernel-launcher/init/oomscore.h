/*
 * oomscore - what init starts goes before init when memory ends: it has a kernel's score.
 * Init lends it its own for the moment of the clone, since a child has no file to write it to:
 * Landlock keeps /proc from all that run here, and so they cannot lower it either.
 */
#ifndef HC_OOMSCORE_H
#define HC_OOMSCORE_H

#include "cleanup.h"

struct err;

/* The file of the calling process, open; before the Landlock layer. */
int oomscore_open(int *ret_fd, struct err *e) MUST_CHECK;
/* fd: where that file is now (borrowed); remembers the present score. */
int oomscore_init(int fd, struct err *e) MUST_CHECK;

/* Around a clone. Nothing to do when oomscore_init() was never called. */
int oomscore_raise(struct err *e) MUST_CHECK;
int oomscore_restore(struct err *e) MUST_CHECK;

#endif
