/*
 * rlimits - the per-process limits of a session (sandbox.md §8). A second net:
 * memory, processes and time are the cgroup's.
 */
#ifndef HC_RLIMITS_H
#define HC_RLIMITS_H

#include <stdint.h>

#include "cleanup.h"

struct err;

struct rlimits_plan {
    uint64_t nofile, nproc, fsize_bytes; /* hard limits; 0 keeps the inherited one */
};

/* No core dumps, neither to a file nor to a pipe of the host. */
int rlimits_forbid_core(struct err *e) MUST_CHECK;

/* Sets soft and hard limits. Never raises a hard limit: what was inherited and is
 * lower stays. Returns 0 or a negative errno. */
int rlimits_set(const struct rlimits_plan *plan, struct err *e) MUST_CHECK;

/* For our own processes: files as large as the disks, whatever limit the server was started under.
 * Where that may not be raised (no CAP_SYS_RESOURCE) the soft one becomes the hard one. */
void rlimits_lift_file_size(void);

/* Whether a file of so many bytes may be written. -EFBIG names the limit, and what needs more. */
int rlimits_check_file_size(uint64_t bytes, const char *what, struct err *e) MUST_CHECK;

#endif
