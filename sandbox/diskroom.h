/*
 * diskroom - blocks of a disk that a file has for itself, so that no other file can use them up
 * under whoever writes into it. File systems that only say so are told apart.
 */
#ifndef HC_DISKROOM_H
#define HC_DISKROOM_H

#include <stdint.h>

#include "cleanup.h"

struct err;

/* All of the blocks of an empty file of root's, before its first byte. -ENOSPC: the disk has no more.
 * -EOPNOTSUPP: the file system promises nothing, or takes the promise back with the first write (copy on
 * write that cannot be switched off); the text says which. */
int diskroom_take(int fd, uint64_t bytes, struct err *e) MUST_CHECK;

/* Bytes of a file that is there already which have no block: it was copied with holes, say. */
int diskroom_missing(int fd, uint64_t *ret, struct err *e) MUST_CHECK;
/* Blocks for these. What is in the file stays. */
int diskroom_fill(int fd, uint64_t bytes, struct err *e) MUST_CHECK;

#endif
