/* The file tree of a session, by the functions that make it (mounts.h). */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "box.h"
#include "err.h"
#include "launchmsg.h"
#include "mountfd.h"
#include "mounts.h"
#include "probes.h"
#include "procmask.h"
#include "rootdir.h"

/* Small, for nothing is written: memory is taken only when it is. */
static const struct launch_limits limits = {
    .memory_bytes = 64 << 20,
    .home_bytes = 1 << 20,
    .tmp_bytes = 1 << 20,
    .shm_bytes = 1 << 20,
    .inodes = 64,
    .pids = 16,
    .cpu_millis = 1000,
    .nofile = 64,
};

/* ---- overlay ---- */

static int open_in_overlay(const struct layers *l, int *ret_fd, struct err *e)
{
    const int lowers[] = { l->usr_hide_fd, l->usr_fd };
    autoclose int mount_fd = -1;
    int r = mountfd_overlay("usr", lowers, 2, 0, &mount_fd, e);

    if (r < 0)
        return r;
    /* Any file that is the same one below: the loader is everywhere. */
    int fd = openat(mount_fd, "bin/env", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "open /usr/bin/env through an overlay");
    *ret_fd = fd;
    return 0;
}

int probe_overlay(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct layers mine;
    const struct layers *l;
    autoclose int a = -1;
    autoclose int b = -1;
    int r = box_layers(env, &mine, &l, e);

    (void)ret;
    if (r == 0)
        r = open_in_overlay(l, &a, e);
    if (r == 0)
        r = open_in_overlay(l, &b, e);
    if (r < 0)
        return r;
    if (flock(a, LOCK_EX | LOCK_NB) < 0)
        return err_sys(e, errno, "lock a file of an overlay");
    if (flock(b, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, EPROTO, "a lock in one overlay is felt in another");
    return 0;
}

/* ---- devices ---- */

static int devices_inside(void *arg, int channel_fd, struct err *e)
{
    const int *dev_fd = arg;
    char byte = 1;

    (void)channel_fd;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(e, errno, "make mounts private");
    int r = mountfd_attach(*dev_fd, "/dev", e);
    if (r < 0)
        return r;
    autoclose int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    autoclose int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (null < 0 || write(null, &byte, 1) != 1)
        return err_sys(e, errno, "write to its own /dev/null");
    if (zero < 0 || read(zero, &byte, 1) != 1 || byte != 0)
        return err_sys(e, errno, "read its own /dev/zero");
    if (mknod("/dev/shm/probe", S_IFCHR | 0600, 1) == 0)
        return err_set(e, EPROTO, "a device can be made inside");
    return 0;
}

int probe_devices(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    autoclose int fd = -1;
    int r = rootdir_dev(&fd, e);

    (void)ret;
    return r < 0 ? r : box_run(env, devices_inside, NULL, &fd, e);
}

/* ---- proc ---- */

struct proc_parts {
    int root_fd, files_fd;
};

static int furnish(int fd, void *arg, struct err *e)
{
    (void)arg;
    return rootdir_furnish(fd, NULL, e);
}

static int look_at_proc(struct err *e)
{
    struct stat st;

    if (stat("proc/1/status", &st) < 0)
        return err_sys(e, errno, "find itself in its own /proc");
    if (stat("proc/kcore", &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size != 0))
        return err_set(e, EPROTO, "the host's memory is in /proc/kcore");
    autoclose int fd = open("proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        return err_set(e, EPROTO, "a setting in /proc/sys can be opened for writing");
    return 0;
}

static int proc_inside(void *arg, int channel_fd, struct err *e)
{
    const struct proc_parts *p = arg;

    (void)channel_fd;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(e, errno, "make mounts private");
    int r = mountfd_attach(p->root_fd, "/", e);
    if (r == 0 && fchdir(p->root_fd) < 0)
        r = err_sys(e, errno, "enter the new root");
    if (r == 0)
        r = procmask_mount(p->files_fd, e);
    return r < 0 ? r : look_at_proc(e);
}

int probe_proc(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    const struct mountfd_tmpfs t = {
        .source = "root", .bytes = 1 << 20, .inodes = 256, .mode = 0755, .attributes = MOUNTFD_DATA
    };
    struct proc_parts p = { -1, -1 };
    int r = mountfd_sealed(&t, furnish, NULL, &p.root_fd, e);

    (void)ret;
    if (r == 0)
        r = procmask_new(&limits, &p.files_fd, e);
    return r < 0 ? r : box_run(env, proc_inside, NULL, &p, e);
}

/* ---- the whole tree ---- */

/* Where a session has file systems of its own; on the host others are there. */
static const char *const own[] = { "/", "/usr", "/etc", "/tmp", "/dev", "/dev/shm", "/proc" };

enum { OWN = sizeof own / sizeof *own };

struct tree {
    struct mounts mounts;
    dev_t host[OWN];
};

static int with_tree(const struct probe_env *env, box_inside *inside, struct err *e)
{
    const struct sandbox_files files = { .home = SANDBOX_HOME_MEMORY };
    struct mounts_plan plan = {
        .limits = &limits,
        .files = &files,
        .init_id = userns_host_id(env->id_base, userns_outer_init(BOX_INDEX)),
        .user_id = userns_host_id(env->id_base, userns_outer_user(BOX_INDEX)),
    };
    struct tree t;
    struct layers mine;
    struct stat st;
    int r = box_layers(env, &mine, &plan.layers, e);

    for (unsigned i = 0; i < OWN; i++)
        t.host[i] = stat(own[i], &st) == 0 ? st.st_dev : 0;
    if (r == 0)
        r = mounts_new(&plan, &t.mounts, e);
    return r < 0 ? r : box_run(env, inside, NULL, &t, e);
}

static int look_at_devices(const struct tree *t, struct err *e)
{
    struct stat st;

    for (unsigned i = 0; i < OWN; i++) {
        if (stat(own[i], &st) < 0)
            return err_sys(e, errno, "look at %s inside", own[i]);
        if (st.st_dev == t->host[i])
            return err_set(e, EPROTO, "%s inside is the host's", own[i]);
    }
    return 0;
}

static int look_at_sizes(struct err *e)
{
    enum { OURS = 4 }; /* folders that we put there count for nothing */
    const struct {
        const char *path;
        uint64_t bytes;
    } all[] = { { "/home/user", limits.home_bytes },
                { "/tmp", limits.tmp_bytes },
                { "/dev/shm", limits.shm_bytes } };
    struct statfs fs;

    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        if (statfs(all[i].path, &fs) < 0)
            return err_sys(e, errno, "look at the size of %s", all[i].path);
        if ((uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize > all[i].bytes ||
            fs.f_files > limits.inodes + OURS)
            return err_set(e, EPROTO, "%s has no limit", all[i].path);
    }
    return 0;
}

static int root_inside(void *arg, int channel_fd, struct err *e)
{
    const struct tree *t = arg;
    struct stat st;

    (void)channel_fd;
    int r = mounts_enter(&t->mounts, e);
    if (r == 0)
        r = look_at_devices(t, e);
    if (r == 0)
        r = look_at_sizes(e);
    if (r < 0)
        return r;
    if (stat("/run/holdcell", &st) == 0 || stat("/sys", &st) == 0 || stat("/root", &st) == 0)
        return err_set(e, EPROTO, "files of the host are seen inside");
    if (mkdir("/probe", 0700) == 0 || errno != EROFS)
        return err_set(e, EPROTO, "the root can be written");
    if (mkdir("/tmp/probe", 0700) < 0)
        return err_sys(e, errno, "write to its own /tmp");
    return 0;
}

int probe_own_root(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)ret;
    return with_tree(env, root_inside, e);
}

static int namespaces_inside(void *arg, int channel_fd, struct err *e)
{
    const struct tree *t = arg;

    (void)channel_fd;
    int r = mounts_enter(&t->mounts, e);
    if (r < 0)
        return r;
    if (unshare(CLONE_NEWUSER) == 0)
        return err_set(e, EPROTO, "a user namespace can be made inside");
    return 0;
}

int probe_no_user_namespaces(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)ret;
    return with_tree(env, namespaces_inside, e);
}
