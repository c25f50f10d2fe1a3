/* hostroom - what is left of the host's memory, tasks and open files (sandbox.h). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "cgfile.h"
#include "cgroup.h"
#include "sandbox_internal.h"

static void lower(uint64_t *least, uint64_t value)
{
    if (value < *least)
        *least = value;
}

static void look_memory(int proc, struct sandbox_room *ret)
{
    char text[4096], *line;
    uint64_t kib;

    if (cgfile_read(proc, "meminfo", text, sizeof text) < 0)
        return;
    if (sscanf(text, "MemTotal: %" SCNu64, &kib) == 1)
        ret->memory_total = kib << 10;
    line = strstr(text, "MemAvailable:");
    if (line != NULL && sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
        ret->memory = kib << 10;
}

/* The fourth field of loadavg is running/all tasks. */
static void look_tasks(int proc, struct sandbox_room *ret)
{
    char text[128];
    uint64_t tasks, most;

    if (cgfile_read(proc, "loadavg", text, sizeof text) < 0 ||
        sscanf(text, "%*s %*s %*s %*u/%" SCNu64, &tasks) != 1)
        return;
    for (unsigned i = 0; i < 2; i++) {
        if (cgfile_u64(proc, i == 0 ? "sys/kernel/threads-max" : "sys/kernel/pid_max", &most) < 0)
            continue;
        lower(&ret->tasks_total, most);
        lower(&ret->tasks, most > tasks ? most - tasks : 0);
    }
}

/* Descriptors are given out from the lowest on: the next one tells how many are open. */
static void look_files(int proc, struct sandbox_room *ret)
{
    char text[128];
    uint64_t open_now, most;
    struct rlimit own;
    autoclose int next = fcntl(proc, F_DUPFD_CLOEXEC, 0);

    if (cgfile_read(proc, "sys/fs/file-nr", text, sizeof text) == 0 &&
        sscanf(text, "%" SCNu64 " %*u %" SCNu64, &open_now, &most) == 2)
        lower(&ret->files, most > open_now ? most - open_now : 0);
    if (next >= 0 && getrlimit(RLIMIT_NOFILE, &own) == 0 && own.rlim_cur != RLIM_INFINITY)
        lower(&ret->files, own.rlim_cur > (uint64_t)next ? own.rlim_cur - (uint64_t)next : 0);
}

/* What root alone could still use counts for nothing. */
static void look_disk(int dir_fd, struct sandbox_room *ret)
{
    struct statvfs fs;

    if (dir_fd < 0 || fstatvfs(dir_fd, &fs) < 0)
        return;
    ret->disk_total = (uint64_t)fs.f_blocks * fs.f_frsize;
    ret->disk = (uint64_t)fs.f_bavail * fs.f_frsize;
}

void sandbox_host_room(const struct sandbox_host *h, struct sandbox_room *ret)
{
    autoclose int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct cgroup_room groups;

    *ret = (struct sandbox_room){ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                  UINT64_MAX, UINT64_MAX, UINT64_MAX };
    if (proc >= 0) {
        look_memory(proc, ret);
        look_tasks(proc, ret);
        look_files(proc, ret);
    } else if (errno == EMFILE || errno == ENFILE) {
        ret->files = 0;
    }
    look_disk(h->homes.dir_fd, ret);
    cgroup_base_room(h->cgroups, &groups);
    lower(&ret->memory_total, groups.memory_total);
    lower(&ret->memory, groups.memory);
    lower(&ret->tasks_total, groups.tasks_total);
    lower(&ret->tasks, groups.tasks);
}

int sandbox_host_share(struct sandbox_host *h, const struct sandbox_share *wanted,
                       struct sandbox_share *ret, struct err *e)
{
    const struct cgroup_share share = { wanted->memory, wanted->tasks };
    struct cgroup_share in_force;
    int r = cgroup_base_limit(h->cgroups, &share, e);

    if (r < 0)
        return r;
    cgroup_base_share(h->cgroups, &in_force);
    *ret = (struct sandbox_share){ in_force.memory, in_force.tasks };
    return 0;
}
