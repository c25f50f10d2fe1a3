/*
 * cgfile - reads and writes the small text files of a cgroup directory, and
 * walks a cgroup tree. Every path is one name below a directory descriptor.
 */
#ifndef HC_CGFILE_H
#define HC_CGFILE_H

#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"

/* All return 0 or a negative errno; a name in front says which file it was. */
int cgfile_write(int dirfd, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4))) MUST_CHECK;
/* NUL-terminated; longer content is cut at size - 1. */
int cgfile_read(int dirfd, const char *name, char *ret, size_t size) MUST_CHECK;
/* One number; "max" is UINT64_MAX. */
int cgfile_u64(int dirfd, const char *name, uint64_t *ret) MUST_CHECK;
/* The number behind "key " at the start of a line; -ENOENT when there is none. */
int cgfile_key(int dirfd, const char *name, const char *key, uint64_t *ret) MUST_CHECK;
int cgfile_find_key(const char *text, const char *key, uint64_t *ret) MUST_CHECK;

/* Makes the directory when it is missing and opens it; O_RDONLY, so that it can be listed. */
int cgfile_make_dir(int dirfd, const char *name, int *ret_fd) MUST_CHECK;
int cgfile_open_dir(int dirfd, const char *name, int *ret_fd) MUST_CHECK;

/* Writes text into that file of each group directly below dirfd, as far as that goes. */
void cgfile_write_below(int dirfd, const char *name, const char *text);

/* Removes the groups below dirfd, leaves first; they must be empty of processes. -EBUSY when one is not yet. */
int cgfile_remove_below(int dirfd) MUST_CHECK;
/* The same and the group itself; 0 also when it does not exist. */
int cgfile_remove_tree(int dirfd, const char *name) MUST_CHECK;
/* Again and again while it is busy, for 10 s at most: rmdir lags behind the last exit. */
int cgfile_remove_tree_wait(int dirfd, const char *name) MUST_CHECK;
void cgfile_nap(void); /* 10 ms, between two tries */

#endif
