/*
 * rootdir - the two directories that the launcher furnishes by hand: the root of a
 * session (mount points and links) and its /dev (nodes of its own).
 */
#ifndef HC_ROOTDIR_H
#define HC_ROOTDIR_H

#include "cleanup.h"

struct err;

/* A folder of the root that nothing is ever put into: the root of init itself. */
#define ROOTDIR_EMPTY "/var/empty"

/* Mount points must all exist before anything is attached: one made inside an attached
 * tree would follow that tree's links. runtime_dir: absolute. */
int rootdir_furnish(int root_fd, const char *runtime_dir, struct err *e) MUST_CHECK;

/* One more mount point, "a/b", with the folders above it. */
int rootdir_add(int root_fd, const char *path, struct err *e) MUST_CHECK;

/* A detached, sealed tmpfs with null, zero, full, random, urandom. Nodes of our own, since
 * one inode shared by two sessions, as a bind of the host's /dev/null is, lets their locks meet. */
int rootdir_dev(int *ret_fd, struct err *e) MUST_CHECK;

#endif
