/*
 * files - what a request does to the session's files. Runs in a child of init
 * that passed the drop: paths are resolved inside the sandbox with the session's
 * rights, so a link can lead nowhere that the session's own code could not go.
 * The tree is hostile all the same: nothing here may block on what it finds, and
 * everything is bounded. The current directory is the session's home.
 *
 * Error texts hold no path: the asker knows it, and names inside are not to be
 * trusted.
 */
#ifndef HC_FILES_H
#define HC_FILES_H

#include "initmsg.h"

struct err;

/* A regular file of a file system that holds data (not of /proc, whose files may
 * block a reader or never end). *ret_fd is owned by the caller and blocking. */
int files_open(const char *path, uint32_t flags, uint32_t mode, struct init_stat *ret, int *ret_fd,
               struct err *e) MUST_CHECK;
int files_stat(const char *path, struct init_stat *ret,
               struct err *e) MUST_CHECK; /* of a link itself */

/* Appends entries to page, at most INIT_PAGE_MAX bytes. Entries that come or go
 * between two pages may be missed or told twice. */
int files_list(const char *path, uint64_t cursor, struct buf *page, uint64_t *ret_cursor,
               struct err *e) MUST_CHECK;

/* A new, empty file beside path; ret_name has room for INIT_PATH_MAX + 1 bytes. */
int files_aside(const char *path, uint32_t mode, char *ret_name, int *ret_fd,
                struct err *e) MUST_CHECK;
int files_rename(const char *from, const char *to, int replace, struct err *e) MUST_CHECK;

#endif
