/*
 * lastclose - the last descriptor of a file system unmounts it, and that waits for the disk. The
 * launcher, who waits for nothing, leaves it to a child that does nothing else.
 */
#ifndef HC_LASTCLOSE_H
#define HC_LASTCLOSE_H

#include <sys/types.h>

/* Closes both now, as far as the caller is concerned; -1 is none. Returns the child that ends when
 * they are closed; 0: there is none. Whoever reaps the launcher's children reaps that one too. */
pid_t lastclose(int *fd, int *other_fd);

/* Writes a file system to its disk, likewise by a child; fd is in it, and stays the caller's. */
pid_t lastclose_sync(int fd);

#endif
