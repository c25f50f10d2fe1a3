/*
 * auditfile - opens the audit file for whoever writes it without a right to open it. Also
 * part of `holdcell serve`, which tries the path before anything is started.
 */
#ifndef HC_AUDITFILE_H
#define HC_AUDITFILE_H

#include "cleanup.h"

struct err;

/* For appending and reading; made with mode 0600 when it is not there. Refused are symbolic
 * links, files with further names, and what others than root may write. */
int auditfile_open(const char *path, int *ret_fd, struct err *e) MUST_CHECK;

/* Keeps other servers from the file: two that write into one break its chain. fd: what
 * auditfile_open() gave. *lock_fd, owned by the caller, holds the lock until it is closed: -1,
 * or that of the file before, which is let go when the new one is locked, and stays when it
 * is not. -EBUSY: another server has it. */
int auditfile_lock(const char *path, int fd, int *lock_fd, struct err *e) MUST_CHECK;

/* Whether a lock could be had now, without taking it. -EBUSY as above. */
int auditfile_test(const char *path, int fd, struct err *e) MUST_CHECK;

#endif
