/*
 * guard - the gateway shuts itself in once it is started: no file beyond kernelspecs (to
 * read) and its private directory, no exec. Before there are threads.
 */
#ifndef HC_GUARD_H
#define HC_GUARD_H

#include "cleanup.h"

struct err;

/* kernel_path: directories joined by ':'. One that is not there yet may come later, so what
 * is nearest above it can be read, unless that is the root. */
int guard_enter(const char *kernel_path, int private_dir_fd, struct err *e) MUST_CHECK;

#endif
