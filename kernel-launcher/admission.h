/*
 * admission - whether the host has room for one more session. Refusing in time is
 * better than what the kernel's OOM killer would choose. The decision is pure;
 * admission_look() measures for it.
 */
#ifndef HC_ADMISSION_H
#define HC_ADMISSION_H

#include <stdint.h>

#include "cleanup.h"

struct err;
struct launch_limits;
struct launcher;

#define ADMISSION_DEFAULT UINT64_MAX /* a reserve that is chosen by the size of the host */

/* Sizes in bytes; UINT64_MAX: unknown, which is never a reason to refuse. */
struct admission {
    uint64_t memory_total, memory_available;
    uint64_t memory_reserve; /* in force */
    uint64_t memory_promised;
    uint64_t tasks, files; /* left */
    uint64_t disk_available, disk_reserve;
    uint64_t disk_needed; /* by the session that is asked for; 0: none */
    unsigned sessions, sessions_max;
};

enum admission_lack {
    ADMISSION_OPEN,
    ADMISSION_MEMORY,
    ADMISSION_TASKS,
    ADMISSION_FILES,
    ADMISSION_SESSIONS,
    ADMISSION_DISK,
};

/* 512 MiB or a twentieth of the memory, whatever is more; never more than a quarter. */
uint64_t admission_reserve(uint64_t configured, uint64_t memory_total);

/* What all sessions together may have of the host: what is left when the reserve is taken off, and never
 * too little for one. UINT64_MAX: no limit, without a reserve or when the total is unknown. */
uint64_t admission_share_memory(uint64_t reserve, uint64_t total);
/* Of tasks 1,024 or a twentieth stay for the host, a quarter at most. */
uint64_t admission_share_tasks(uint64_t total);

/* The same of a disk: 1 GiB or a twentieth. */
uint64_t admission_disk_reserve(uint64_t configured, uint64_t disk_total);
int admission_disk_fits(const struct admission *a, uint64_t bytes);

/* What a session takes while it starts, as far as it does not use it yet. */
uint64_t admission_promise(uint64_t memory_limit, uint64_t used);

/* The first thing that is missing for a session with this limit. */
enum admission_lack admission_decide(const struct admission *a, uint64_t memory_limit);
const char *admission_lack_name(enum admission_lack lack); /* "" when it is open */

void admission_look(const struct launcher *l, struct admission *ret);

/* 0, or -HC_EFULL with a text that clients may read. A change is told in the log. */
int admission_check(struct launcher *l, const struct admission *a,
                    const struct launch_limits *limits, struct err *e) MUST_CHECK;

/* -HC_EFULL in place of the codes by which the kernel says that something ran out. */
int admission_failure(int rc, struct err *e);

#endif
