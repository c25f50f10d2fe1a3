/*
 * runfolder - /run/kernel of a session: a small tmpfs in which kernels that cannot
 * take sockets bind their own, one sub-folder per kernel and generation. The
 * gateway's host uid reaches them by an ACL, through the launcher's descriptor.
 */
#ifndef HC_RUNFOLDER_H
#define HC_RUNFOLDER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cleanup.h"

struct err;

#define RUNFOLDER_PATH "/run/kernel"

enum { RUNFOLDER_NAME_SIZE = 24 };
void runfolder_name(uint32_t kernel, uint32_t generation, char ret[RUNFOLDER_NAME_SIZE]);

/* run_fd: the session's run folder. Makes the sub-folder with connection.json in it,
 * both owned by uid (a host id, also used as gid) alone; the gateway may look up and
 * connect. *ret_fd: O_PATH of it, owned by the caller. */
int runfolder_new(int run_fd, const char *name, uid_t uid, uid_t gateway_uid,
                  const void *connection, size_t connection_size, int *ret_fd,
                  struct err *e) MUST_CHECK;
/* Takes the sub-folder away from its user: root's, 0755. What is in it can then be
 * neither removed nor replaced. */
int runfolder_seal(int run_fd, const char *name, struct err *e) MUST_CHECK;
/* Removes the names that a well-behaved kernel leaves, and the sub-folder when it is
 * empty then. Never walks: what else lies there goes with the tmpfs. */
void runfolder_remove(int run_fd, const char *name);

#endif
