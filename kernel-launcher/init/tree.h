/*
 * tree - makes and removes directories of the session; same rules as files.h.
 */
#ifndef HC_TREE_H
#define HC_TREE_H

#include <stddef.h>

#include "cleanup.h"

struct err;

/* Makes the directory named by the first n bytes of path, with its parents; fine
 * when it is there. n may be 0: the current directory. */
int tree_make(const char *path, size_t n, struct err *e) MUST_CHECK;

/* Removes a file, link or empty directory; with recursive also what is in it.
 * Links are removed, never followed. Stops at the first thing that cannot be
 * removed. -ESTALE: somebody moved a directory away under our feet. */
int tree_remove(const char *path, int recursive, struct err *e) MUST_CHECK;

#endif
