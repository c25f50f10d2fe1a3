/*
 * report - what a freshly cloned child says to the launcher over a pipe: one
 * struct err, small enough to be written whole (PIPE_BUF). Code 0 means that
 * all went well; end of file without a report means that the child either
 * exec'ed (close-on-exec end) or died.
 */
#ifndef HC_REPORT_H
#define HC_REPORT_H

#include "cleanup.h"

struct err;

enum { REPORT_END = 0, REPORT_OK = 1 };

/* Returns 0 or a negative errno. */
int report_send(int fd, const struct err *what) MUST_CHECK;

/* REPORT_END at end of file, REPORT_OK when the child says that all went well,
 * its own code (negative, its text in e) when it does not, -ETIMEDOUT after
 * timeout_ms, -EPROTO when what came is no report. */
int report_wait(int fd, int timeout_ms, struct err *e) MUST_CHECK;

#endif
