/*
 * procmask - what a session sees in /proc: a fresh proc of its own pid namespace
 * that shows foreign processes to nobody, with files of our own over those that
 * describe the host, nothing behind those that expose it, and no writable setting.
 */
#ifndef HC_PROCMASK_H
#define HC_PROCMASK_H

#include <sys/types.h>

#include "cleanup.h"

struct err;
struct launch_limits;

/* Launcher: a sealed, detached tmpfs with the files to lay over. Owned by the caller. */
int procmask_new(const struct launch_limits *limits, int *ret_fd, struct err *e) MUST_CHECK;

/* Init's birth, as root of the new user namespace, cwd the new root with the folders
 * proc and run: mounts proc, uses run as a place for files_fd in between. The old
 * proc must still be visible (the kernel demands it for a new one). */
int procmask_mount(int files_fd, struct err *e) MUST_CHECK;

/* Launcher, about a pid 1 that waits, in its own network namespace: /proc/net of that namespace, wherever it
 * is looked at, shows what counts in it alone; the rest nobody can open or list. Its entries belong to the
 * host's root (the namespace is older than the maps of its ids), so nobody inside changes that. */
int procmask_net(pid_t pid, struct err *e) MUST_CHECK;

#endif
