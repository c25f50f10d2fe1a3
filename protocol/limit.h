/*
 * limit - the limits of one session (struct launch_limits), a row each: the names that
 * options, REST and the file of principals have for them, units and ranges. Whoever reads,
 * writes or hands on all limits walks over the rows.
 */
#ifndef HC_LIMIT_H
#define HC_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include "launchmsg.h"

/*
 * ROW(ID, member of launch_limits, name in JSON, option, unit, least, most, of a principal).
 * The option counts units of the member, and so do least and most: the least and most that
 * somebody may ask for. JSON counts the same units, but of thousandths whole ones, with
 * decimals. NULL for the name: no client asks for it. The last column: a line of
 * --principals may set it.
 */
#define LIMIT_ROWS(ROW)                                                           \
    ROW(MEMORY, memory_bytes, "memory_mb", "memory-mb", 1 << 20, 64, 1 << 24, 1)  \
    ROW(CPUS, cpu_millis, "cpus", "cpu-millis", LIMIT_THOUSANDTH, 10, 4096000, 1) \
    ROW(PIDS, pids, "pids", "pids", 1, 16, 1 << 22, 1)                            \
    ROW(DISK, home_bytes, "disk_mb", "disk-mb", 1 << 20, 1, 1 << 24, 1)           \
    ROW(TMP, tmp_bytes, "tmp_mb", "tmp-mb", 1 << 20, 1, 1 << 24, 1)               \
    ROW(SHM, shm_bytes, "shm_mb", "shm-mb", 1 << 20, 1, 1 << 24, 1)               \
    ROW(INODES, inodes, "inodes", "inodes", 1, 64, 1 << 30, 1)                    \
    ROW(FDS, nofile, "fds", "fds", 1, 64, 1 << 20, 1)                             \
    ROW(OUTPUT, output_bytes, "output_mb", "output-mb", 1 << 20, 1, 1 << 24, 1)

enum { LIMIT_THOUSANDTH = 0 }; /* a unit: the member counts thousandths */

#define LIMIT_ID(id, ...)                                            LIMIT_##id,
#define LIMIT_LEAST(id, member, name, option, unit, least, ...)      LIMIT_##id##_LEAST = (least),
#define LIMIT_MOST(id, member, name, option, unit, least, most, ...) LIMIT_##id##_MOST = (most),
enum limit_id { LIMIT_ROWS(LIMIT_ID) LIMITS };
enum { LIMIT_ROWS(LIMIT_LEAST) };
enum { LIMIT_ROWS(LIMIT_MOST) };

struct limit {
    const char *member, *name, *option;
    uint64_t unit;        /* of the member, per 1 of the option */
    uint64_t number_unit; /* of the member, per 1 in JSON */
    uint64_t least, most; /* of the member */
    size_t offset;
    int wide;         /* uint64_t, else uint32_t */
    int milli;        /* a number with decimals in JSON */
    int of_principal; /* the file of principals may set it */
};
extern const struct limit limit_rows[LIMITS];

uint64_t limit_get(const struct launch_limits *from, const struct limit *l);
void limit_set(struct launch_limits *to, const struct limit *l, uint64_t value);

/* How much of its memory a session's file systems may be made of, together: all but a quarter, and never
 * more than an interpreter needs besides. Files above that would be the end of the kernel, not ENOSPC. */
uint64_t limit_of_files_in_memory(const struct launch_limits *l);
/* Makes /tmp and /dev/shm no larger than an eighth and a sixteenth of it, as they are by default. */
void limit_shrink_files_in_memory(struct launch_limits *l);

/* The row with this name in JSON, or NULL. */
const struct limit *limit_named(const char *name);

#endif
