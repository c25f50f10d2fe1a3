/*
 * noteseats - the seats of a note that has no room for them (noteitem.h): a sealed
 * memfd, which the launcher keeps among the note's descriptors and never reads.
 */
#ifndef HC_NOTESEATS_H
#define HC_NOTESEATS_H

#include "buf.h"

struct err;

/* More than all bounds of seats together (seat.h) let any kernel have. */
enum { NOTESEATS_MAX = 16 * 1024 * 1024 };

int noteseats_memfd(struct view items, int *ret_fd, struct err *e) MUST_CHECK;
/* Reads and checks them, into out, which the caller frees even after an error. -HC_EPARSE: these
 * are no seats, another version may have written them. */
int noteseats_read(int fd, struct buf *out, struct err *e) MUST_CHECK;

#endif
