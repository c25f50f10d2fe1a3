/* gatewaydrop - the forked child on its way to become the gateway. */
#ifndef HC_GATEWAYDROP_H
#define HC_GATEWAYDROP_H

#include <sys/types.h>

#include "cleanup.h"

struct err;
struct gateway_config;

/* Places the descriptors, gives up every power and execs. Returns only on
 * failure; the caller sends e and calls _exit. *status_fd is kept open (close-on-exec)
 * and may get another number. launcher: the parent's pid, to notice that it died. */
void gatewaydrop_exec(const struct gateway_config *c, int link_fd, int *status_fd, pid_t launcher,
                      struct err *e);

#endif
