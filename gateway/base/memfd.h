/* memfd - bytes for another process, as a descriptor of a file that has no name. */
#ifndef HC_MEMFD_H
#define HC_MEMFD_H

#include <stddef.h>

#include "cleanup.h"

struct err;

/* A sealed memfd with these bytes: nobody can change it any more. */
int memfd_sealed(const char *name, const void *p, size_t n, int *ret_fd, struct err *e) MUST_CHECK;

#endif
