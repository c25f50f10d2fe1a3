/* handles - descriptors to send: those that a sane gateway sends, and those that none does. */
#ifndef HC_HOSTILE_HANDLES_H
#define HC_HOSTILE_HANDLES_H

#include "peer.h"

enum { HANDLES_START = 7 };

/* Owned by the caller; -1 when this one cannot be made here. */
int handle_any(struct peer *p);
int handle_memfd(const char *text, int sealed);
/* Those of START_KERNEL; with a read end of the kernel's output when ret_log is no NULL. Returns how many. */
unsigned handles_start(unsigned flags, int fds[HANDLES_START], int *ret_log);
void handles_close(int *fds, unsigned n);

#endif
