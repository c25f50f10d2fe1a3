#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "cgfile.h"
#include "cgroup_ops.h"
#include "err.h"
#include "walls.h"

enum {
    SWEEP_TRIES = 1000, /* of 10 ms */
    LOCK_TRIES = 100,   /* of 10 ms: a child that did not get as far as exec holds the lock too */
};

static int is_populated(int fd)
{
    uint64_t populated = 1;

    /* A group that cannot be read was removed: nobody is in it. */
    return cgfile_key(fd, "cgroup.events", "populated", &populated) == 0 && populated != 0;
}

/* A launcher holds the lock of its base as long as it lives. The table of instances gives each its own
 * number, but not across two tables: in a container or chroot with the host's cgroups and a /run of
 * its own, or when somebody emptied /run. Who sweeps a base that is in use ends all its sessions. */
static int lock_base(int fd, const char *name, struct err *e)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_sys(e, errno, "lock cgroup '%s'", name);
        cgfile_nap();
    }
    return err_set(
        e, EBUSY,
        "cgroup '%s' is in use by another holdcell: who shares the cgroups of a host has "
        "to share its /run/holdcell",
        name);
}

/* Before Linux 6.18 killed processes go the last of their way within the quota of their session, minutes on a
 * hundredth of a processor: what ends has none. */
static void lift_quotas(const struct cgroup_base *b)
{
    const int above =
        b->ops->is_v2 ? b->place.unified_fd : b->place.v1_fd[b->place.v1_of[CGPLACE_CPU]];
    autoclose int base = -1;
    autoclose int sessions = -1;

    if (cgfile_open_dir(above, b->name, &base) == 0 && cgfile_open_dir(base, "s", &sessions) == 0)
        cgfile_write_below(sessions, b->ops->quota_file, b->ops->no_quota);
}

static void lift_quota(const struct cgroup *cg)
{
    const struct cgroup_base *b = cg->base;
    /* Not the double that is borrowed: it may be closed. */
    const int fd = b->ops->is_v2 ? cg->fd : cg->v1[b->place.v1_of[CGPLACE_CPU]];

    (void)!cgfile_write(fd, b->ops->quota_file, "%s", b->ops->no_quota);
}

/* Kills and removes the base that an earlier launcher left. Its processes are
 * reaped by the supervisor; a group is removable soon after their end. */
static int sweep(const struct cgroup_base *b, struct err *e)
{
    const int parent = b->place.unified_fd;
    const char *const name = b->name;
    int r = 0;

    for (int i = 0; i < SWEEP_TRIES; i++) {
        autoclose int fd = -1;

        r = cgfile_open_dir(parent, name, &fd);
        if (r == -ENOENT)
            return 0;
        if (r < 0)
            return err_sys(e, -r, "open cgroup '%s'", name);
        r = lock_base(fd, name, e);
        if (r < 0)
            return r;
        lift_quotas(b); /* now that it is certain that they are nobody's */
        if (is_populated(fd))
            r = cgfile_write(fd, "cgroup.kill", "1");
        if (r < 0)
            return err_sys(e, -r, "sweep cgroup '%s'", name);
        r = cgfile_remove_tree(parent, name);
        if (r != -EBUSY)
            return r < 0 ? err_sys(e, -r, "remove cgroup '%s'", name) : 0;
        cgfile_nap();
    }
    return err_set(e, EBUSY, "cgroup '%s' of an earlier launcher does not empty", name);
}

static int open_base(struct cgroup_base *b, struct err *e)
{
    int r = sweep(b, e);

    if (r < 0)
        return r;
    r = cgfile_make_dir(b->place.unified_fd, b->name, &b->base_fd);
    if (r < 0)
        return err_sys(e, -r, "make cgroup '%s'", b->name);
    r = lock_base(b->base_fd, b->name, e);
    if (r < 0) {
        closep(&b->base_fd); /* not ours */
        return r;
    }
    /* Somebody who swept it before it was locked has removed it: this fails then. */
    r = cgfile_make_dir(b->base_fd, "s", &b->sessions_fd);
    return r < 0 ? err_sys(e, -r, "make cgroup '%s/s'", b->name) : b->ops->base_open(b, e);
}

int cgroup_base_open(unsigned slot, const char *parent, struct cgroup_base **ret, struct err *e)
{
    struct cgroup_base *b = xcalloc(1, sizeof *b);
    int r;

    b->place = (struct cgplace){ .unified_fd = -1, .v1_fd = { -1, -1, -1 } };
    b->base_fd = b->sessions_fd = -1;
    for (unsigned i = 0; i < CGPLACE_CONTROLLERS; i++)
        b->v1_sessions[i] = -1;
    snprintf(b->name, sizeof b->name, "holdcell-%u", slot);
    r = cgplace_find(parent, &b->place, e);
    if (r == 0) {
        b->ops = b->place.is_v2 ? &cgroup_v2_ops : &cgroup_v1_ops;
        r = open_base(b, e);
    }
    if (r < 0) {
        cgroup_base_close(b);
        return r;
    }
    *ret = b;
    return 0;
}

struct cgroup_base *cgroup_base_close(struct cgroup_base *b)
{
    if (b == NULL)
        return NULL;
    closep(&b->sessions_fd);
    if (b->base_fd >= 0) { /* else it is another's: the empty groups too */
        /* Fails when a session lives on; the next start of this slot sweeps it. */
        (void)!cgfile_remove_tree(b->place.unified_fd, b->name);
        b->ops->base_close(b);
        closep(&b->base_fd); /* with the lock, so last */
    }
    cgplace_close(&b->place);
    free(b);
    return NULL;
}

int cgroup_base_limit(struct cgroup_base *b, const struct cgroup_share *share, struct err *e)
{
    struct cgroup_share in_force = *share;

    if (wall_is_off(WALL_MEMORY))
        in_force.memory = UINT64_MAX;
    if (wall_is_off(WALL_PIDS))
        in_force.tasks = UINT64_MAX;
    return b->ops->share(b, &in_force, e);
}

void cgroup_base_share(const struct cgroup_base *b, struct cgroup_share *ret)
{
    *ret = (struct cgroup_share){ UINT64_MAX, UINT64_MAX };
    b->ops->read_share(b, ret);
}

int cgroup_base_is_v2(const struct cgroup_base *b)
{
    return b->ops->is_v2;
}

static int open_session(struct cgroup *cg, unsigned index, const struct launch_limits *limits,
                        struct err *e)
{
    struct cgroup_base *b = cg->base;

    b->generation++;
    snprintf(cg->name, sizeof cg->name, "%u-%" PRIu64, index, b->generation);
    if (mkdirat(b->sessions_fd, cg->name, 0755) < 0)
        return err_sys(e, errno, "make cgroup '%s'", cg->name);
    int r = cgfile_open_dir(b->sessions_fd, cg->name, &cg->fd);
    if (r < 0)
        return err_sys(e, -r, "open cgroup '%s'", cg->name);
    struct launch_limits in_force = *limits;

    if (wall_is_off(WALL_MEMORY))
        in_force.memory_bytes = UINT64_C(1) << 40;
    if (wall_is_off(WALL_PIDS))
        in_force.pids = 1 << 20;
    return b->ops->open(cg, &in_force, e);
}

int cgroup_watch_tasks(struct cgroup *cg, int pids_group, struct err *e)
{
    cg->tasks_fd = openat(pids_group, "pids.events", O_RDONLY | O_CLOEXEC);
    if (cg->tasks_fd < 0 && errno != ENOENT)
        return err_sys(e, errno, "open pids.events");
    return 0;
}

int cgroup_limit_cpu(struct cgroup *cg, uint32_t millis, struct err *e)
{
    return cg->base->ops->cpu(cg, wall_is_off(WALL_CPU) ? 1 << 20 : millis, e);
}

int cgroup_new(struct cgroup_base *b, unsigned index, const struct launch_limits *limits,
               struct cgroup **ret, struct err *e)
{
    struct cgroup *cg = xcalloc(1, sizeof *cg);

    cg->base = b;
    cg->fd = cg->oom_fd = cg->tasks_fd = cg->peak_fd = -1;
    for (unsigned i = 0; i < CGPLACE_CONTROLLERS; i++)
        cg->v1[i] = -1;
    int r = open_session(cg, index, limits, e);
    if (r < 0) {
        if (cgroup_free(cg, NULL) < 0) {
            /* Nobody was ever in it, so this means that the host is broken; the base's sweep is
             * the second chance, and the name is never used again. */
            closep(&cg->fd);
            free(cg);
        }
        return r;
    }
    *ret = cg;
    return 0;
}

int cgroup_free(struct cgroup *cg, struct err *e)
{
    /* First, for the walk needs descriptors too, and there may be no other left. */
    cg->base->ops->close(cg);
    int r = cgfile_remove_tree(cg->base->sessions_fd, cg->name);
    if (r < 0)
        return err_sys(e, -r, "remove cgroup '%s'", cg->name);
    r = cg->base->ops->remove(cg, e);
    if (r < 0)
        return r;
    closep(&cg->fd);
    free(cg);
    return 0;
}

int cgroup_leaf_new(struct cgroup *cg, const char *leaf, int *ret_fd, struct err *e)
{
    if (mkdirat(cg->fd, leaf, 0755) < 0)
        return err_sys(e, errno, "make cgroup '%s/%s'", cg->name, leaf);
    int r = cgfile_open_dir(cg->fd, leaf, ret_fd);
    if (r < 0) {
        (void)unlinkat(cg->fd, leaf, AT_REMOVEDIR);
        return err_sys(e, -r, "open cgroup '%s/%s'", cg->name, leaf);
    }
    return 0;
}

int cgroup_leaf_share(struct cgroup *cg, const char *leaf, int leaf_fd, uid_t uid, unsigned groups,
                      int *ret_fd, struct err *e)
{
    int r = cgfile_write(leaf_fd, "cgroup.max.depth", "1");

    *ret_fd = -1;
    if (r == 0)
        r = cgfile_write(leaf_fd, "cgroup.max.descendants", "%u", groups);
    if (r < 0)
        return err_sys(e, -r, "bound the groups below '%s/%s'", cg->name, leaf);
    /* cgroup.procs too: a clone into a child group asks for it, as for a move through us. */
    if (fchownat(leaf_fd, "", uid, (gid_t)uid, AT_EMPTY_PATH) < 0 ||
        fchownat(leaf_fd, "cgroup.procs", uid, (gid_t)uid, 0) < 0)
        return err_sys(e, errno, "share cgroup '%s/%s'", cg->name, leaf);
    *ret_fd = open_tree(leaf_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    /* EINVAL: it is in no mount of our namespace. */
    if (*ret_fd < 0 && errno != EINVAL)
        return err_sys(e, errno, "mount cgroup '%s/%s'", cg->name, leaf);
    return 0;
}

int cgroup_leaf_remove(struct cgroup *cg, const char *leaf, struct err *e)
{
    int r = cgfile_remove_tree(cg->fd, leaf);

    return r < 0 ? err_sys(e, -r, "remove cgroup '%s/%s'", cg->name, leaf) : 0;
}

int cgroup_place(struct cgroup *cg, pid_t pid, struct err *e)
{
    return cg->base->ops->place(cg, pid, e);
}

int cgroup_kill(struct cgroup *cg, const char *leaf, struct err *e)
{
    char path[96];

    if (leaf == NULL)
        lift_quota(cg);
    snprintf(path, sizeof path, "%s/cgroup.kill", leaf != NULL ? leaf : ".");
    int r = cgfile_write(cg->fd, path, "1");
    return r < 0 ? err_sys(e, -r, "kill cgroup '%s/%s'", cg->name, leaf != NULL ? leaf : "") : 0;
}

int cgroup_empty(struct cgroup *cg, const char *leaf)
{
    autoclose int fd = -1;

    if (leaf == NULL)
        return !is_populated(cg->fd);
    return cgfile_open_dir(cg->fd, leaf, &fd) < 0 || !is_populated(fd);
}

int cgroup_status(struct cgroup *cg, int reset_peak, struct launch_status_answer *ret,
                  struct err *e)
{
    struct launch_status_answer got = { .sandbox = ret->sandbox };
    int r = cg->base->ops->status(cg, reset_peak, &got, e);

    if (r < 0)
        return r;
    /* The unified tree accounts processor time with and without a cpu controller. */
    r = cgfile_key(cg->fd, "cpu.stat", "usage_usec", &got.cpu_usec);
    if (r < 0)
        return err_sys(e, -r, "read cpu.stat");
    *ret = got;
    return 0;
}

int cgroup_oom_fd(const struct cgroup *cg)
{
    return cg->oom_fd;
}

int cgroup_tasks_fd(const struct cgroup *cg)
{
    return cg->tasks_fd;
}

short cgroup_tasks_events(const struct cgroup *cg)
{
    return cg->base->ops->is_v2 ? POLLPRI : 0;
}

int cgroup_tasks_refused(const struct cgroup *cg, uint64_t *ret)
{
    char text[128];
    ssize_t n = pread(cg->tasks_fd, text, sizeof text - 1, 0);

    if (n < 0)
        return -errno;
    text[n] = '\0';
    return cgfile_find_key(text, "max", ret);
}

short cgroup_oom_events(const struct cgroup *cg)
{
    return cg->base->ops->oom_events;
}
