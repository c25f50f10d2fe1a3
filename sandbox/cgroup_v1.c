/*
 * Controllers in v1 hierarchies. They have no rule against processes in inner
 * groups, so one group per session and hierarchy carries the limits, without
 * leaves: three moves per process are few enough to wait for.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "cgfile.h"
#include "cgroup_ops.h"
#include "err.h"

/* How much of a limit of memory buffers of TCP and UDP may take: of one session beside its limit, of all
 * sessions within theirs. Beyond it, sending waits and datagrams are dropped. */
enum { SOCKETS_OF_SESSION = 4, SOCKETS_OF_ALL = 16 };

/* "No limit" is a number that no machine has. */
#define NO_LIMIT (UINT64_C(1) << 60)

static int v1_base_open(struct cgroup_base *b, struct err *e)
{
    for (unsigned i = 0; i < CGPLACE_CONTROLLERS; i++) {
        autoclose int base = -1;

        if (b->place.v1_fd[i] < 0)
            continue;
        /* The unified tree was swept: these hold no process any more. */
        int r = cgfile_remove_tree_wait(b->place.v1_fd[i], b->name);
        if (r == 0)
            r = cgfile_make_dir(b->place.v1_fd[i], b->name, &base);
        /* All sessions together count as half of one task beside us and the gateway. */
        if (r == 0 && i == b->place.v1_of[CGPLACE_CPU])
            r = cgfile_write(base, "cpu.shares", "%d", 512);
        if (r == 0)
            r = cgfile_make_dir(base, "s", &b->v1_sessions[i]);
        if (r < 0)
            return err_sys(e, -r, "make v1 cgroup '%s'", b->name);
    }
    return 0;
}

static void v1_base_close(struct cgroup_base *b)
{
    for (unsigned i = 0; i < CGPLACE_CONTROLLERS; i++) {
        closep(&b->v1_sessions[i]);
        if (b->place.v1_fd[i] >= 0)
            (void)!cgfile_remove_tree(b->place.v1_fd[i], b->name);
    }
}

static int limit(int fd, const char *name, uint64_t value, struct err *e)
{
    int r = cgfile_write(fd, name, "%" PRIu64, value);

    return r < 0 ? err_sys(e, -r, "set %s to %" PRIu64, name, value) : 0;
}

static int limit_memory(int fd, uint64_t bytes, struct err *e)
{
    int r = limit(fd, "memory.limit_in_bytes", bytes, e);

    if (r < 0)
        return r;
    /* memory + swap may not be less than memory: hence second. Absent with swapaccount=0. */
    r = cgfile_write(fd, "memory.memsw.limit_in_bytes", "%" PRIu64, bytes);
    if (r == -ENOENT)
        r = cgfile_write(fd, "memory.swappiness", "0");
    return r < 0 ? err_sys(e, -r, "forbid swap") : 0;
}

/* Buffers of TCP and UDP are counted by a counter of their own, beside memory.usage_in_bytes, and only in
 * groups that had a limit of them before their first socket. The file went with some kernels. */
static int limit_sockets(int fd, uint64_t bytes, struct err *e)
{
    int r = cgfile_write(fd, "memory.kmem.tcp.limit_in_bytes", "%" PRIu64, bytes);

    return r < 0 && r != -ENOENT && r != -EOPNOTSUPP ? err_sys(e, -r, "limit buffers of sockets")
                                                     : 0;
}

static int v1_group_of_sessions(const struct cgroup_base *b, enum cgplace_controller c)
{
    return b->v1_sessions[b->place.v1_of[c]];
}

static int share_memory(int fd, uint64_t bytes, struct err *e)
{
    const uint64_t sockets = bytes / SOCKETS_OF_ALL;
    uint64_t use;
    int r = cgfile_u64(fd, "memory.usage_in_bytes", &use);

    if (r == 0)
        r = cgfile_write(fd, "memory.limit_in_bytes", "%" PRIu64,
                         bytes - sockets > use ? bytes - sockets : use);
    if (r < 0 && r != -EBUSY) /* what is used has just grown: the limit before stays */
        return err_sys(e, -r, "limit the memory of all sessions");
    return limit_sockets(fd, sockets, e);
}

static int share_no_memory(int fd, struct err *e)
{
    int r = cgfile_write(fd, "memory.limit_in_bytes", "-1");

    if (r == 0)
        r = cgfile_write(fd, "memory.kmem.tcp.limit_in_bytes", "-1");
    return r < 0 && r != -ENOENT && r != -EOPNOTSUPP
               ? err_sys(e, -r, "take the limit of all sessions away")
               : 0;
}

static int v1_share(struct cgroup_base *b, const struct cgroup_share *share, struct err *e)
{
    const int memory = v1_group_of_sessions(b, CGPLACE_MEMORY);
    const int pids = v1_group_of_sessions(b, CGPLACE_PIDS);
    int r = share->memory != UINT64_MAX ? share_memory(memory, share->memory, e)
                                        : share_no_memory(memory, e);

    if (r < 0)
        return r;
    r = share->tasks != UINT64_MAX ? cgfile_write(pids, "pids.max", "%" PRIu64, share->tasks)
                                   : cgfile_write(pids, "pids.max", "max");
    return r < 0 ? err_sys(e, -r, "limit the processes of all sessions") : 0;
}

static void v1_read_share(const struct cgroup_base *b, struct cgroup_share *ret)
{
    const int memory = v1_group_of_sessions(b, CGPLACE_MEMORY);
    uint64_t bytes, sockets;

    if (cgfile_u64(memory, "memory.limit_in_bytes", &bytes) == 0 && bytes < NO_LIMIT)
        ret->memory = bytes;
    if (ret->memory != UINT64_MAX &&
        cgfile_u64(memory, "memory.kmem.tcp.limit_in_bytes", &sockets) == 0 && sockets < NO_LIMIT)
        ret->memory += sockets;
    (void)!cgfile_u64(v1_group_of_sessions(b, CGPLACE_PIDS), "pids.max", &ret->tasks);
}

static int watch_oom(struct cgroup *cg, struct err *e)
{
    autoclose int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    autoclose int control =
        openat(cg->v1[CGPLACE_MEMORY], "memory.oom_control", O_RDONLY | O_CLOEXEC);

    if (event < 0 || control < 0)
        return err_sys(e, errno, "open memory.oom_control");
    int r = cgfile_write(cg->v1[CGPLACE_MEMORY], "cgroup.event_control", "%d %d", event, control);
    if (r < 0)
        return err_sys(e, -r, "watch memory.oom_control");
    cg->oom_fd = take_fd(&event);
    return 0;
}

static int v1_open(struct cgroup *cg, const struct launch_limits *l, struct err *e)
{
    const struct cgroup_base *b = cg->base;
    int r;

    for (unsigned i = 0; i < CGPLACE_CONTROLLERS; i++) {
        if (b->place.v1_of[i] != i) {
            cg->v1[i] = cg->v1[b->place.v1_of[i]];
            continue;
        }
        if (mkdirat(b->v1_sessions[i], cg->name, 0755) < 0)
            return err_sys(e, errno, "make v1 cgroup '%s'", cg->name);
        r = cgfile_open_dir(b->v1_sessions[i], cg->name, &cg->v1[i]);
        if (r < 0)
            return err_sys(e, -r, "open v1 cgroup '%s'", cg->name);
    }
    r = limit_memory(cg->v1[CGPLACE_MEMORY], l->memory_bytes, e);
    if (r == 0)
        r = limit_sockets(cg->v1[CGPLACE_MEMORY], l->memory_bytes / SOCKETS_OF_SESSION, e);
    if (r == 0)
        r = limit(cg->v1[CGPLACE_PIDS], "pids.max", l->pids, e);
    if (r == 0)
        r = cgroup_watch_tasks(cg, cg->v1[CGPLACE_PIDS], e);
    return r < 0 ? r : watch_oom(cg, e);
}

static int v1_cpu(struct cgroup *cg, uint32_t millis, struct err *e)
{
    int r = limit(cg->v1[CGPLACE_CPU], "cpu.cfs_period_us", 100000, e);

    return r < 0 ? r : limit(cg->v1[CGPLACE_CPU], "cpu.cfs_quota_us", (uint64_t)millis * 100, e);
}

static int v1_place(struct cgroup *cg, pid_t pid, struct err *e)
{
    for (unsigned i = 0; i < CGPLACE_CONTROLLERS; i++) {
        if (cg->base->place.v1_of[i] != i)
            continue;
        int r = cgfile_write(cg->v1[i], "cgroup.procs", "%d", (int)pid);
        if (r < 0)
            return err_sys(e, -r, "move process %d to cgroup '%s'", (int)pid, cg->name);
    }
    return 0;
}

static int v1_status(struct cgroup *cg, int reset_peak, struct launch_status_answer *ret,
                     struct err *e)
{
    int mem = cg->v1[CGPLACE_MEMORY], pids = cg->v1[CGPLACE_PIDS];
    uint64_t events;
    int r;

    /* Before the counters: an event after this read makes the descriptor readable again. */
    if (read(cg->oom_fd, &events, sizeof events) < 0 && errno != EAGAIN)
        return err_sys(e, errno, "read the out-of-memory events");
    r = cgfile_u64(mem, "memory.usage_in_bytes", &ret->memory_bytes);
    if (r == 0)
        r = cgfile_u64(mem, "memory.max_usage_in_bytes", &ret->memory_peak_bytes);
    if (r == 0)
        r = cgfile_u64(mem, "memory.limit_in_bytes", &ret->memory_limit_bytes);
    if (r == 0)
        r = cgfile_key(mem, "memory.oom_control", "oom_kill", &ret->oom_kills);
    if (r == 0)
        r = cgfile_u64(pids, "pids.current", &ret->pids);
    if (r == 0)
        r = cgfile_u64(pids, "pids.max", &ret->pids_limit);
    if (r == 0 && cg->tasks_fd >= 0)
        r = cgfile_key(pids, "pids.events", "max", &ret->tasks_refused);
    if (r == 0 && reset_peak)
        r = cgfile_write(mem, "memory.max_usage_in_bytes", "0");
    return r < 0 ? err_sys(e, -r, "read the use of cgroup '%s'", cg->name) : 0;
}

/* Memory charged to a group that is removed stays with its parent: no wait for it. */
static int v1_remove(struct cgroup *cg, struct err *e)
{
    for (unsigned i = 0; i < CGPLACE_CONTROLLERS; i++) {
        if (cg->base->v1_sessions[i] < 0)
            continue;
        int r = cgfile_remove_tree(cg->base->v1_sessions[i], cg->name);
        if (r < 0)
            return err_sys(e, -r, "remove v1 cgroup '%s'", cg->name);
    }
    return 0;
}

static void v1_close(struct cgroup *cg)
{
    for (unsigned i = 0; i < CGPLACE_CONTROLLERS; i++)
        if (cg->base->place.v1_of[i] == i)
            closep(&cg->v1[i]);
    closep(&cg->oom_fd);
    closep(&cg->tasks_fd);
}

const struct cgroup_ops cgroup_v1_ops = {
    .is_v2 = 0,
    .oom_events = POLLIN,
    .quota_file = "cpu.cfs_quota_us",
    .no_quota = "-1",
    .base_open = v1_base_open,
    .base_close = v1_base_close,
    .share = v1_share,
    .read_share = v1_read_share,
    .open = v1_open,
    .cpu = v1_cpu,
    .place = v1_place,
    .status = v1_status,
    .remove = v1_remove,
    .close = v1_close,
};
