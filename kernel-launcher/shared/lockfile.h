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

enum { LOCKFILE_HOLDER = 64 };

/* The first line of the text of an open lock, cut to the room; empty while nobody has written one. Negative errno when it
 * cannot be read (it is empty then, too). */
int lockfile_holder(int fd, char ret_holder[LOCKFILE_HOLDER]);

/* 1 when a living process holds the lock `name` below the directory, with the first line of its text; 0 when none
 * does, or there is no such file. The lock is tried: a server that starts in that moment waits, as it
 * does for what a dead one left. */
int lockfile_held(int dir_fd, const char *name, char ret_holder[LOCKFILE_HOLDER],
                  struct err *e) MUST_CHECK;

#endif
