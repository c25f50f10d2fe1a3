/* rmtree - removes a directory tree whose content an unprivileged process made. */
#ifndef HC_RMTREE_H
#define HC_RMTREE_H

#include "cleanup.h"

struct err;

/* Removes name below dir with all that is in it, however deep; 0 when it does not exist. Follows
 * no link, and goes into no mount point (EBUSY). */
int rmtree_at(int dir, const char *name, struct err *e) MUST_CHECK;
/* Likewise all that is in the directory; it stays. */
int rmtree_inside(int dir, struct err *e) MUST_CHECK;

#endif
