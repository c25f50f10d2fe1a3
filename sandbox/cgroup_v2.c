/*
 * Controllers in the unified tree: the session's own directory carries the
 * limits; its leaves have no controllers, so all use is the session's.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cgfile.h"
#include "cgroup_ops.h"
#include "err.h"

static int v2_base_open(struct cgroup_base *b, struct err *e)
{
    static const char all[] = "+memory +pids +cpu";
    int r = cgfile_write(b->base_fd, "cgroup.subtree_control", "%s", all);

    if (r == 0)
        r = cgfile_write(b->sessions_fd, "cgroup.subtree_control", "%s", all);
    /* All sessions together weigh half of any other group beside them. */
    if (r == 0)
        r = cgfile_write(b->base_fd, "cpu.weight", "%d", 50);
    return r < 0 ? err_sys(e, -r, "hand out the controllers of '%s'", b->name) : 0;
}

static void v2_base_close(struct cgroup_base *b)
{
    (void)b; /* its one directory is removed by the caller */
}

static int write_or_max(int fd, const char *name, uint64_t value)
{
    return value != UINT64_MAX ? cgfile_write(fd, name, "%" PRIu64, value)
                               : cgfile_write(fd, name, "max");
}

static int v2_share(struct cgroup_base *b, const struct cgroup_share *share, struct err *e)
{
    uint64_t use = 0;
    const char *file = "memory.current";
    int r = cgfile_u64(b->sessions_fd, file, &use);

    if (r == 0)
        r = write_or_max(b->sessions_fd, file = "memory.max",
                         share->memory > use ? share->memory : use);
    if (r == 0)
        r = write_or_max(b->sessions_fd, file = "pids.max", share->tasks);
    return r < 0 ? err_sys(e, -r, "set %s of all sessions of '%s'", file, b->name) : 0;
}

static void v2_read_share(const struct cgroup_base *b, struct cgroup_share *ret)
{
    (void)!cgfile_u64(b->sessions_fd, "memory.max", &ret->memory);
    (void)!cgfile_u64(b->sessions_fd, "pids.max", &ret->tasks);
}

/* memory.peak came with 5.19; since 6.12 a write resets it for that descriptor alone. */
static void open_peak(struct cgroup *cg)
{
    cg->peak_fd = openat(cg->fd, "memory.peak", O_RDWR | O_CLOEXEC);
    cg->peak_resets = cg->peak_fd >= 0;
    if (cg->peak_fd < 0)
        cg->peak_fd = openat(cg->fd, "memory.peak", O_RDONLY | O_CLOEXEC);
}

static int set_limits(int fd, const struct launch_limits *l, const char **ret_file)
{
    int r = cgfile_write(fd, *ret_file = "memory.max", "%" PRIu64, l->memory_bytes);

    if (r == 0)
        r = cgfile_write(fd, *ret_file = "memory.swap.max", "0");
    if (r == -ENOENT)
        r = 0; /* a kernel without swap accounting */
    if (r == 0)
        r = cgfile_write(fd, *ret_file = "memory.oom.group", "0");
    if (r == 0)
        r = cgfile_write(fd, *ret_file = "pids.max", "%" PRIu32, l->pids);
    return r;
}

static int v2_cpu(struct cgroup *cg, uint32_t millis, struct err *e)
{
    int r = cgfile_write(cg->fd, "cpu.max", "%" PRIu64 " 100000", (uint64_t)millis * 100);

    return r < 0 ? err_sys(e, -r, "set cpu.max of cgroup '%s'", cg->name) : 0;
}

static int v2_open(struct cgroup *cg, const struct launch_limits *l, struct err *e)
{
    const char *file = "";
    int r = set_limits(cg->fd, l, &file);

    if (r < 0)
        return err_sys(e, -r, "set %s of cgroup '%s'", file, cg->name);
    cg->oom_fd = openat(cg->fd, "memory.events", O_RDONLY | O_CLOEXEC);
    if (cg->oom_fd < 0)
        return err_sys(e, errno, "open memory.events");
    open_peak(cg);
    return cgroup_watch_tasks(cg, cg->fd, e);
}

static int v2_place(struct cgroup *cg, pid_t pid, struct err *e)
{
    (void)cg; /* CLONE_INTO_CGROUP did it */
    (void)pid;
    (void)e;
    return 0;
}

/* Reading from the start re-arms the poll of a kernfs file. */
static int read_again(int fd, char *ret, size_t size)
{
    ssize_t n = pread(fd, ret, size - 1, 0);

    if (n < 0)
        return -errno;
    ret[n] = '\0';
    return 0;
}

static int read_peak(struct cgroup *cg, int reset, uint64_t *ret)
{
    char text[64];
    int r;

    if (cg->peak_fd < 0) { /* before 5.19: at least never less than now */
        return cgfile_u64(cg->fd, "memory.current", ret);
    }
    r = read_again(cg->peak_fd, text, sizeof text);
    if (r < 0)
        return r;
    *ret = strtoull(text, NULL, 10);
    /* Before 6.12 root may open the file for writing, and the write says EINVAL. */
    if (reset && cg->peak_resets && write(cg->peak_fd, "reset\n", 6) < 0)
        cg->peak_resets = 0;
    return 0;
}

static int v2_status(struct cgroup *cg, int reset_peak, struct launch_status_answer *ret,
                     struct err *e)
{
    char events[512];
    int r = read_again(cg->oom_fd, events, sizeof events);

    if (r == 0)
        r = cgfile_find_key(events, "oom_kill", &ret->oom_kills);
    if (r == 0)
        r = cgfile_u64(cg->fd, "memory.current", &ret->memory_bytes);
    if (r == 0)
        r = read_peak(cg, reset_peak, &ret->memory_peak_bytes);
    if (r == 0)
        r = cgfile_u64(cg->fd, "memory.max", &ret->memory_limit_bytes);
    if (r == 0)
        r = cgfile_u64(cg->fd, "pids.current", &ret->pids);
    if (r == 0)
        r = cgfile_u64(cg->fd, "pids.max", &ret->pids_limit);
    if (r == 0 && cg->tasks_fd >= 0)
        r = cgfile_key(cg->fd, "pids.events", "max", &ret->tasks_refused);
    return r < 0 ? err_sys(e, -r, "read the use of cgroup '%s'", cg->name) : 0;
}

static int v2_remove(struct cgroup *cg, struct err *e)
{
    (void)cg;
    (void)e;
    return 0;
}

static void v2_close(struct cgroup *cg)
{
    closep(&cg->oom_fd);
    closep(&cg->tasks_fd);
    closep(&cg->peak_fd);
}

const struct cgroup_ops cgroup_v2_ops = {
    .is_v2 = 1,
    .oom_events = POLLPRI,
    .quota_file = "cpu.max",
    .no_quota = "max",
    .base_open = v2_base_open,
    .base_close = v2_base_close,
    .share = v2_share,
    .read_share = v2_read_share,
    .open = v2_open,
    .cpu = v2_cpu,
    .place = v2_place,
    .status = v2_status,
    .remove = v2_remove,
    .close = v2_close,
};
