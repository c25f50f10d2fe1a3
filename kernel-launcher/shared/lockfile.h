/*
 * lockfile - what a lock of the instance says: the pid of who holds it, for people and for who
 * comes next. Server and keeper write it, each when it becomes the holder.
 */
#ifndef HC_LOCKFILE_H
#define HC_LOCKFILE_H

#include <sys/types.h>

#include "cleanup.h"

struct err;

/* more: a line without its end. */
int lockfile_write(int fd, pid_t pid, const char *more, struct err *e) MUST_CHECK;
/* The lock of a state directory. */
int lockfile_write_slot(int fd, pid_t pid, unsigned slot, struct err *e) MUST_CHECK;

#endif
