/* specfile - kernel.json of one kernelspec: read, checked, completed. */
#ifndef HC_SPECFILE_H
#define HC_SPECFILE_H

#include <jansson.h>

#include "cleanup.h"

struct err;

/* kernels_fd/name/kernel.json with every key that clients rely on filled in; the caller frees *ret.
 * -ENOENT: there is none. Else the error says why it cannot be used, and holds nothing of what is in it. */
int specfile_read(int kernels_fd, const char *name, json_t **ret, struct err *e) MUST_CHECK;

#endif
