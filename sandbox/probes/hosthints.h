/*
 * hosthints - settings of the host that are second nets behind the walls (sandbox.md
 * calls them hints): read from /proc, judged, never changed. A setting that the kernel does
 * not have is told as that.
 */
#ifndef HC_HOSTHINTS_H
#define HC_HOSTHINTS_H

#include "probe.h"

/* proc_fd: /proc, or a tree of a test like it. release: as uname(2) tells it. */
void hosthints_look(int proc_fd, const char *release, enum hostwall hint, struct probe_result *ret);

#endif
