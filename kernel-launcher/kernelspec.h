/* kernelspec - finds the directory of a kernelspec by (directory index, name). */
#ifndef HC_LAUNCHER_KERNELSPEC_H
#define HC_LAUNCHER_KERNELSPEC_H

#include "cleanup.h"

struct err;

/* path: the ':'-list of the launcher's own start-up. Opens <dir>/kernels/<name>
 * beneath <dir> as it is now, O_PATH; a link in it may lead anywhere below <dir>,
 * never out of it. -ENOENT, -EINVAL for a name that is none. The caller owns *ret_fd. */
int kernelspec_open(const char *path, unsigned dir, const char *name, int *ret_fd,
                    struct err *e) MUST_CHECK;

#endif
