#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "datadirs.h"
#include "err.h"
#include "homes.h"
#include "launchmsg.h"
#include "layers.h"
#include "mountfd.h"
#include "procmask.h"
#include "rootdir.h"
#include "runfolder.h"
#include "walls.h"

static void add(struct mounts *m, const char *target, int fd)
{
    check(m->count < MOUNTS_MAX);
    m->mount[m->count].fd = fd;
    m->mount[m->count].target = target;
    m->count++;
}

/* The options would show the id (uid=) in mountinfo: so chown. */
static int give(int fd, uid_t id, struct err *e)
{
    if (fchownat(fd, "", id, id, AT_EMPTY_PATH) < 0)
        return err_sys(e, errno, "give a file system to id %u", id);
    return 0;
}

static int is_seen(const struct mounts_plan *p, unsigned i)
{
    return (p->files->data >> i & 1) != 0 && i < p->data->count;
}

static int furnish(int fd, void *arg, struct err *e)
{
    const struct mounts_plan *p = arg;
    int r = rootdir_furnish(fd, p->layers->runtime_fd >= 0 ? p->layers->runtime_dir : NULL, e);

    for (unsigned i = 0; r == 0 && p->data != NULL && i < p->data->count; i++)
        if (is_seen(p, i))
            r = rootdir_add(fd, p->data->dir[i].target, e);
    return r;
}

static int new_root(const struct mounts_plan *p, int *ret_fd, struct err *e)
{
    const struct mountfd_tmpfs t = {
        .source = "root",
        .bytes = 1 << 20,
        .inodes = 256,
        .mode = 0755,
        .attributes = MOUNTFD_DATA,
    };

    return mountfd_sealed(&t, furnish, (void *)(uintptr_t)p, ret_fd, e);
}

static int add_tmpfs(struct mounts *m, const char *target, const struct mountfd_tmpfs *t,
                     uid_t owner, struct err *e)
{
    autoclose int fd = -1;
    int r = mountfd_tmpfs(t, &fd, e);

    if (r == 0)
        r = give(fd, owner, e);
    if (r < 0)
        return r;
    add(m, target, take_fd(&fd));
    return 0;
}

/* The host's inodes themselves; in tests alone. */
static int add_bind(struct mounts *m, const char *target, int dir_fd, const char *path,
                    unsigned attributes, struct err *e)
{
    struct mount_attr attr = { .attr_set = attributes };
    int fd =
        open_tree(dir_fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);

    if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
        return err_sys(e, errno, "bind '%s'", target);
    add(m, target, fd);
    return 0;
}

/* Trees that only differ by session in their inodes. */
static int add_usr(struct mounts *m, const struct layers *l, struct err *e)
{
    const int lowers[] = { l->usr_hide_fd, l->usr_fd };
    int fd = -1;

    if (wall_is_off(WALL_OVERLAY))
        return add_bind(m, "usr", l->usr_fd, "", MOUNTFD_TREE, e);
    int r = mountfd_overlay("usr", lowers, 2, 0, &fd, e);
    if (r == 0)
        add(m, "usr", fd);
    return r;
}

static int add_etc(struct mounts *m, const struct layers *l, struct err *e)
{
    const int lowers[] = { l->etc_fd, l->empty_fd };
    int fd = -1;

    if (wall_is_off(WALL_OVERLAY))
        return add_bind(m, "etc", l->etc_fd, "", MOUNTFD_TREE, e);
    if (wall_is_off(WALL_ROOT))
        return add_bind(m, "etc", AT_FDCWD, "/etc", MOUNTFD_TREE, e);
    int r = mountfd_overlay("etc", lowers, 2, 0, &fd, e);
    if (r == 0)
        add(m, "etc", fd);
    return r;
}

static int add_runtime(struct mounts *m, const struct layers *l, struct err *e)
{
    const char *target = l->runtime_dir + 1;
    int fd = -1;

    if (wall_is_off(WALL_OVERLAY))
        return add_bind(m, target, l->runtime_fd, "", MOUNTFD_TREE, e);
    int r = layers_cover(l, target, l->runtime_fd, 0, &fd, e);
    if (r == 0)
        add(m, target, fd);
    return r;
}

static int add_trees(struct mounts *m, const struct layers *l, struct err *e)
{
    int r = add_usr(m, l, e);

    if (r == 0)
        r = add_etc(m, l, e);
    return r == 0 && l->runtime_fd >= 0 ? add_runtime(m, l, e) : r;
}

static int add_operators_data(struct mounts *m, const struct mounts_plan *p, struct err *e)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && p->data != NULL && i < p->data->count; i++) {
        int fd = -1;

        if (!is_seen(p, i))
            continue;
        r = datadirs_mount(p->data, i, p->layers, &fd, e);
        if (r == 0)
            add(m, p->data->dir[i].target, fd);
        else
            err_wrap(e, "/%s", p->data->dir[i].target);
    }
    return r;
}

static int add_dev(struct mounts *m, struct err *e)
{
    int fd = -1;
    int r = rootdir_dev(&fd, e);

    if (r == 0)
        add(m, "dev", fd);
    return r;
}

static int add_run(struct mounts *m, struct err *e)
{
    /* Room for some hundred generations of kernels that leave their files behind. */
    const struct mountfd_tmpfs t = {
        .source = "run",
        .bytes = 4 << 20,
        .inodes = 8192,
        .mode = 0755,
        .attributes = MOUNTFD_DATA | MOUNT_ATTR_NOEXEC,
    };
    int r = add_tmpfs(m, &RUNFOLDER_PATH[1], &t, 0, e);

    if (r < 0)
        return r;
    m->run_fd = openat(m->mount[m->count - 1].fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return m->run_fd < 0 ? err_sys(e, errno, "open the run folder") : 0;
}

/* The wall left out: limits that are none. A disk promises no such size. */
static struct launch_limits without_disk_wall(const struct launch_limits *given)
{
    struct launch_limits l = *given;

    if (wall_is_off(WALL_DISK)) {
        l.home_bytes = l.tmp_bytes = l.shm_bytes = UINT64_C(1) << 40;
        l.inodes = 1 << 30;
    }
    return l;
}

static int add_home(struct mounts *m, const struct mounts_plan *p, struct err *e)
{
    const struct launch_limits l = without_disk_wall(p->limits);
    enum sandbox_home kind = wall_is_off(WALL_DISK) ? SANDBOX_HOME_MEMORY : p->files->home;
    const int with_work = p->workspace_fd != NULL && *p->workspace_fd >= 0;
    int fd = -1;
    int r = homes_make(p->homes, &l, kind, p->user_id, with_work, &fd, &m->home_fd, e);

    if (r == 0)
        add(m, "home/user", fd);
    if (r == 0 && with_work) /* the folder is ours still, and empty */
        add(m, "home/user/work", take_fd(p->workspace_fd));
    return r;
}

static int add_data(struct mounts *m, const struct mounts_plan *p, struct err *e)
{
    const struct launch_limits l = without_disk_wall(p->limits);
    const struct mountfd_tmpfs shm = { "shm", l.shm_bytes, l.inodes, 01777,
                                       MOUNTFD_DATA | MOUNT_ATTR_NOEXEC },
                               tmp = { "tmp", l.tmp_bytes, l.inodes, 01777, MOUNTFD_DATA };
    const int host = wall_is_off(WALL_ROOT);
    int r = host ? add_bind(m, "dev/shm", AT_FDCWD, "/dev/shm", MOUNTFD_DATA, e)
                 : add_tmpfs(m, "dev/shm", &shm, p->init_id, e);

    if (r == 0)
        r = host ? add_bind(m, "tmp", AT_FDCWD, "/var/tmp", MOUNTFD_DATA, e)
                 : add_tmpfs(m, "tmp", &tmp, p->init_id, e);
    return r == 0 ? add_home(m, p, e) : r;
}

int mounts_new(const struct mounts_plan *p, struct mounts *ret, struct err *e)
{
    struct mounts m = MOUNTS_NONE;
    int r = new_root(p, &m.root_fd, e);

    if (r == 0)
        r = procmask_new(p->limits, &m.proc_fd, e);
    if (r == 0)
        r = add_trees(&m, p->layers, e);
    if (r == 0)
        r = add_operators_data(&m, p, e);
    if (r == 0)
        r = add_dev(&m, e);
    if (r == 0)
        r = add_data(&m, p, e);
    if (r == 0)
        r = add_run(&m, e);
    if (r < 0) {
        mounts_close(&m);
        return r;
    }
    *ret = m;
    return 0;
}

void mounts_close(struct mounts *m)
{
    closep(&m->root_fd);
    closep(&m->proc_fd);
    closep(&m->run_fd);
    closep(&m->home_fd);
    for (unsigned i = 0; i < m->count; i++)
        closep(&m->mount[i].fd);
    m->count = 0;
}

static int mount_devpts(struct err *e)
{
    /* Made here: the slaves then belong to the session's ids. Linux makes every instance a new one
     * since 4.7. */
    if (mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
              "newinstance,ptmxmode=0666,mode=0620,max=64") < 0)
        return err_sys(e, errno, "mount devpts");
    return 0;
}

static int pivot(struct err *e)
{
    /* Both are ".": the old root then lies over the new one, and no folder for it need exist. */
    if (syscall(SYS_pivot_root, ".", ".") < 0)
        return err_sys(e, errno, "pivot_root");
    if (umount2(".", MNT_DETACH) < 0)
        return err_sys(e, errno, "let go of the host's root");
    if (chdir("/") < 0)
        return err_sys(e, errno, "enter the new root");
    return 0;
}

int mounts_enter(const struct mounts *m, struct err *e)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(e, errno, "make mounts private");
    int r = mountfd_attach(m->root_fd, "/", e);
    if (r < 0)
        return r;
    if (fchdir(m->root_fd) < 0)
        return err_sys(e, errno, "enter the new root");
    r = procmask_mount(m->proc_fd, e);
    for (unsigned i = 0; r == 0 && i < m->count; i++)
        r = mountfd_attach(m->mount[i].fd, m->mount[i].target, e);
    if (r == 0)
        r = mount_devpts(e);
    return r < 0 ? r : pivot(e);
}

int mounts_spec(const struct layers *layers, int dir_fd, int *ret_fd, struct err *e)
{
    return layers_cover(layers, "kernelspec", dir_fd, 0, ret_fd, e);
}
