/*
 * cgroom - what the groups above ours leave of memory and tasks (cgroup.h). On a host
 * of our own they have no limits; in a container, or below a slice of systemd, they do,
 * and /proc/meminfo says nothing of that.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "cgfile.h"
#include "cgroup_ops.h"

enum { DEEPEST = 64 };

struct names {
    const char *limit, *use, *cache;
    long magic;
};

static const struct names v1_names = { "memory.limit_in_bytes", "memory.usage_in_bytes",
                                       "total_inactive_file", CGROUP_SUPER_MAGIC };
static const struct names v2_names = { "memory.max", "memory.current", "inactive_file",
                                       CGROUP2_SUPER_MAGIC };

/* v1 says "no limit" by a number that no machine has. */
#define NO_LIMIT (UINT64_C(1) << 60)

static void lower(uint64_t *least, uint64_t value)
{
    if (value < *least)
        *least = value;
}

static void look_memory(int fd, const struct names *n, struct cgroup_room *ret)
{
    uint64_t limit, use, cache = 0;

    if (cgfile_u64(fd, n->limit, &limit) < 0 || limit >= NO_LIMIT ||
        cgfile_u64(fd, n->use, &use) < 0)
        return;
    if (cgfile_key(fd, "memory.stat", n->cache, &cache) < 0 || cache > use)
        cache = 0;
    use -= cache;
    lower(&ret->memory_total, limit);
    lower(&ret->memory, limit > use ? limit - use : 0);
}

static void look_tasks(int fd, uint64_t *total, uint64_t *left)
{
    uint64_t limit, use;

    if (cgfile_u64(fd, "pids.max", &limit) < 0 || limit == UINT64_MAX ||
        cgfile_u64(fd, "pids.current", &use) < 0)
        return;
    if (total != NULL)
        lower(total, limit);
    lower(left, limit > use ? limit - use : 0);
}

/* From the group at fd up to the root of its file system, or of what is mounted of it. */
static void walk(int fd, const struct names *n, int memory, int tasks, struct cgroup_room *ret)
{
    autoclose int at = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct statfs fs;

    for (int i = 0; i < DEEPEST && at >= 0; i++) {
        if (fstatfs(at, &fs) < 0 || fs.f_type != n->magic)
            return;
        if (memory)
            look_memory(at, n, ret);
        if (tasks)
            look_tasks(at, &ret->tasks_total, &ret->tasks);
        int up = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        closep(&at);
        at = up;
    }
}

void cgroup_base_room(const struct cgroup_base *b, struct cgroup_room *ret)
{
    const int shared =
        b->ops->is_v2 ? b->sessions_fd : b->v1_sessions[b->place.v1_of[CGPLACE_PIDS]];

    *ret = (struct cgroup_room){ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
    /* Of memory the reserve is of the host, and compared with what the host has left. */
    look_tasks(shared, NULL, &ret->tasks);
    if (b->ops->is_v2) {
        walk(b->base_fd, &v2_names, 1, 1, ret);
        return;
    }
    /* A shared hierarchy has one descriptor, that of its first controller. */
    walk(b->place.v1_fd[b->place.v1_of[CGPLACE_MEMORY]], &v1_names, 1, 0, ret);
    walk(b->place.v1_fd[b->place.v1_of[CGPLACE_PIDS]], &v1_names, 0, 1, ret);
}

int cgroup_memory(const struct cgroup *cg, uint64_t *ret)
{
    if (cg->base->ops->is_v2)
        return cgfile_u64(cg->fd, v2_names.use, ret);
    return cgfile_u64(cg->v1[CGPLACE_MEMORY], v1_names.use, ret);
}
