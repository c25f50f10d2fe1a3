/*
 * initimage - holdcell-init as a sealed memfd: it can be exec'ed where no path to
 * it exists, and nobody can write to it through /proc/PID/exe.
 */
#ifndef HC_INITIMAGE_H
#define HC_INITIMAGE_H

#include "cleanup.h"

struct err;

int initimage_open(const char *path, int *ret_fd, struct err *e) MUST_CHECK;

#endif
