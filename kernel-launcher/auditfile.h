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

#endif
