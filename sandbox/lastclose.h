/*
 * lastclose - the last descriptor of a file system unmounts it, and that waits for the disk. The
 * launcher, who waits for nothing, leaves it to a child that does nothing else.
 */
#ifndef HC_LASTCLOSE_H
#define HC_LASTCLOSE_H

/* Closes both now, as far as the caller is concerned; -1 is none. Whoever reaps the launcher's
 * children reaps that one too. */
void lastclose(int *fd, int *other_fd);

/* Writes a file system to its disk, likewise by a child; fd is in it, and stays the caller's. */
void lastclose_sync(int fd);

#endif
