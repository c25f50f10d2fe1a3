#include "workspaces.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "err.h"
#include "lastclose.h"
#include "loopdev.h"
#include "sandbox.h"
#include "userns.h"
#include "workimage.h"

enum {
    IDLE_MAX = 32, /* that stay mounted without a session: the next one need not wait */
    FILE_BYTES = 16384,
    INODES_LEAST = 1024,
    OWNER = USERNS_USER_ID, /* on the disk */
};

struct workspace {
    struct workspace *next;
    char name[WORKIMAGE_NAME_SIZE];
    int device_fd, mount_fd; /* owned; the mount keeps the file system while nobody uses it */
    dev_t dev;               /* of the image, as is: */
    ino_t ino;
    uint64_t bytes;
    unsigned users;
    uint64_t left;   /* when the last one left */
    pid_t sync_pid;  /* a child that writes it to the disk; 0: none */
    int sync_again;  /* when that child has ended */
    pid_t close_pid; /* of one that goes: the child that unmounts it */
};

static struct extimage_spec spec_of(uint64_t bytes)
{
    uint64_t inodes = bytes / FILE_BYTES;

    if (inodes < INODES_LEAST)
        inodes = INODES_LEAST;
    return (struct extimage_spec){ .bytes = bytes,
                                   .inodes = inodes < UINT32_MAX ? (uint32_t)inodes : UINT32_MAX,
                                   .journal = 1,
                                   .owner = OWNER };
}

uint64_t sandbox_workspace_size(uint64_t bytes)
{
    const struct extimage_spec spec = spec_of(bytes);

    return extimage_size(&spec);
}

/* ---- mounts ---- */

/* A view of it in which the files belong to user_id. */
static int mount_for(int device_fd, uid_t user_id, int *ret_fd, struct err *e)
{
    char map[64];
    autoclose int ns = -1;
    autoclose int fd = -1;
    int r = extimage_mount(device_fd, 1, &fd, e);

    snprintf(map, sizeof map, "%u %u 1\n", (unsigned)OWNER, (unsigned)user_id);
    if (r == 0)
        r = userns_make(map, &ns, e);
    if (r < 0)
        return r;
    struct mount_attr a = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)ns };
    if (mount_setattr(fd, "", AT_EMPTY_PATH, &a, sizeof a) < 0)
        return err_sys(e, errno, "lay ids over a workspace");
    *ret_fd = take_fd(&fd);
    return 0;
}

static int is_going(const struct workspaces *w, const char *name)
{
    const struct workspace *one = w->going;

    while (one != NULL && strcmp(one->name, name) != 0)
        one = one->next;
    return one != NULL;
}

/* Of mkfs, or root's, of an e2fsck of the operator's. Else what has that name is a session's, and no
 * business of ours. */
static void clear_lost_found(int mount_fd, int made)
{
    static const char name[] = "lost+found";
    struct stat st;

    if (made || (fstatat(mount_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == 0))
        (void)unlinkat(mount_fd, name, AT_REMOVEDIR); /* an empty directory, or nothing */
}

static int attach(struct workspaces *w, struct workspace *one, uint64_t bytes, struct err *e)
{
    const struct workimage_place place = { w->dir_fd, w->reserve, &w->templates };
    const struct extimage_spec spec = spec_of(bytes);
    struct workimage image = { .fd = -1 };
    autoclose int device = -1;
    int r = workimage_open(&place, one->name, &spec, &image, e);

    if (r == -EWOULDBLOCK && is_going(w, one->name))
        return err_set(e, HC_EFULL, "the workspace is being unmounted, try again");
    if (r == -EWOULDBLOCK)
        return err_set(e, HC_EFULL, "the workspace is in use by another server");
    if (r < 0)
        return r;
    r = loopdev_attach(image.fd, &device, e);
    closep(&image.fd);
    if (r == 0)
        r = extimage_mount(device, 1, &one->mount_fd, e);
    if (r < 0)
        return r;
    one->device_fd = take_fd(&device);
    one->dev = image.dev;
    one->ino = image.ino;
    one->bytes = image.bytes;
    clear_lost_found(one->mount_fd, image.made);
    return 0;
}

static void take_out(struct workspace **at, const struct workspace *one)
{
    while (*at != one)
        at = &(*at)->next;
    *at = one->next;
}

/* Its name stays known until its children have ended. */
static void drop(struct workspaces *w, struct workspace *one)
{
    take_out(&w->first, one);
    one->close_pid = lastclose(&one->mount_fd, &one->device_fd);
    if (one->close_pid <= 0 && one->sync_pid <= 0) {
        free(one);
        return;
    }
    one->next = w->going;
    w->going = one;
}

static struct workspace *find(const struct workspaces *w, const char *name)
{
    struct workspace *one = w->first;

    while (one != NULL && strcmp(one->name, name) != 0)
        one = one->next;
    return one;
}

static struct workspace *add(struct workspaces *w, const char *name)
{
    struct workspace *one = xcalloc(1, sizeof *one);

    snprintf(one->name, sizeof one->name, "%s", name);
    one->device_fd = one->mount_fd = -1;
    one->next = w->first;
    w->first = one;
    return one;
}

/* The longest idle one goes when there are too many. */
static void bound(struct workspaces *w)
{
    struct workspace *oldest = NULL;
    unsigned idle = 0;

    for (struct workspace *one = w->first; one != NULL; one = one->next) {
        if (one->users > 0)
            continue;
        idle++;
        if (oldest == NULL || one->left < oldest->left)
            oldest = one;
    }
    if (idle > IDLE_MAX)
        drop(w, oldest);
}

/* One that nobody uses, and whose image the operator removed or replaced, is not that of the name any
 * more. Sessions that have it keep it. */
static struct workspace *find_valid(struct workspaces *w, const char *name)
{
    struct workspace *one = find(w, name);

    if (one == NULL || one->users > 0 || workimage_is_named(w->dir_fd, name, one->dev, one->ino))
        return one;
    drop(w, one);
    return NULL;
}

int workspaces_take(struct workspaces *w, const char *name, uint64_t bytes, uid_t user_id,
                    struct workspace **ret, int *ret_fd, struct err *e)
{
    check(strlen(name) < WORKIMAGE_NAME_SIZE && w->dir_fd >= 0);
    struct workspace *one = find_valid(w, name);
    int r = 0, fd = -1;

    if (one == NULL) {
        one = add(w, name);
        r = attach(w, one, bytes, e);
    }
    if (r == 0)
        r = mount_for(one->device_fd, user_id, &fd, e);
    if (r < 0) {
        if (one->users == 0)
            drop(w, one);
        err_wrap(e, "workspace");
        return r;
    }
    one->users++;
    *ret = one;
    *ret_fd = fd;
    return 0;
}

uint64_t workspace_bytes(const struct workspace *one)
{
    return one->bytes;
}

/* By one child at a time, however often sessions come and go while the disk is slow. */
static void start_sync(struct workspace *one)
{
    one->sync_again = one->sync_pid > 0;
    if (one->sync_pid == 0)
        one->sync_pid = lastclose_sync(one->mount_fd);
}

void workspaces_leave(struct workspaces *w, struct workspace *one)
{
    if (--one->users > 0)
        return;
    one->left = ++w->clock;
    start_sync(one);
    bound(w);
}

void workspaces_reaped(struct workspaces *w, pid_t pid)
{
    for (struct workspace *one = w->first; one != NULL; one = one->next) {
        if (one->sync_pid != pid)
            continue;
        one->sync_pid = 0;
        if (one->sync_again)
            start_sync(one);
        return;
    }
    for (struct workspace *one = w->going; one != NULL; one = one->next) {
        if (one->close_pid != pid && one->sync_pid != pid)
            continue;
        *(one->close_pid == pid ? &one->close_pid : &one->sync_pid) = 0;
        if (one->close_pid == 0 && one->sync_pid == 0) {
            take_out(&w->going, one);
            free(one);
        }
        return;
    }
}

void workspaces_close(struct workspaces *w)
{
    while (w->first != NULL)
        drop(w, w->first);
    while (w->going != NULL) { /* who reaps their children is told of nothing any more */
        struct workspace *one = w->going;

        w->going = one->next;
        free(one);
    }
    closep(&w->dir_fd);
    extimage_cache_clear(&w->templates);
}

/* ---- whether this host can ---- */

static int check_disk(const char *path, int fd, struct err *e)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return err_sys(e, errno, "look at '%.120s'", path);
    if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
        return err_set(e, ENOTSUP, "'%.120s' is in memory", path);
    return 0;
}

static int check_dir(const char *path, int fd, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(e, errno, "look at '%.120s'", path);
    if (st.st_uid != 0 || (st.st_mode & 022) != 0)
        return err_set(e, EPERM, "'%.120s' must belong to root and be writable by root only", path);
    return check_disk(path, fd, e);
}

static int open_dir(const char *path, int *ret_fd, struct err *e)
{
    autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "open '%.120s'", path);
    int r = check_dir(path, fd, e);
    if (r == 0)
        *ret_fd = take_fd(&fd);
    return r;
}

static int try_one(struct workspaces *w, struct err *e)
{
    const struct extimage_spec spec = { .bytes = 1 << 20, .inodes = 16, .owner = OWNER };
    autoclose int fd = -1;
    autoclose int device = -1;
    autoclose int mount = -1;
    struct stat st;
    int r = workimage_unnamed(w->dir_fd, &fd, e);

    if (r == 0)
        r = extimage_make(&w->templates, &spec, fd, e);
    if (r == 0)
        r = loopdev_attach(fd, &device, e);
    if (r == 0)
        r = mount_for(device, 4711, &mount, e);
    if (r < 0)
        return r;
    if (fstatat(mount, ".", &st, 0) < 0 || st.st_uid != 4711)
        return err_set(e, ENOTSUP, "ids laid over a mount have no effect");
    return 0;
}

int workspaces_try_in(int dir_fd, struct err *e)
{
    struct workspaces tried = { .dir_fd = dir_fd };
    int r = try_one(&tried, e);

    extimage_cache_clear(&tried.templates);
    return r;
}

/* Where a directory of that path would be made. */
static int open_above(const char *path, int *ret_fd, struct err *e)
{
    char above[PATH_MAX];
    size_t n = strlen(path);

    if (n >= sizeof above)
        return err_set(e, ENAMETOOLONG, "'%.120s'", path);
    memcpy(above, path, n);
    while (n > 1 && above[n - 1] == '/')
        n--;
    while (n > 1 && above[n - 1] != '/')
        n--;
    above[n] = '\0';
    autoclose int fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "make '%.120s'", path);
    int r = check_disk(path, fd, e);
    if (r == 0)
        *ret_fd = take_fd(&fd);
    return r;
}

int workspaces_try(const char *path, struct err *e)
{
    autoclose int fd = -1;
    int r = open_dir(path, &fd, e);

    if (r == -ENOENT)
        r = open_above(path, &fd, e);
    return r < 0 ? r : workspaces_try_in(fd, e);
}

static int is_used(const struct workspaces *w)
{
    const struct workspace *one = w->first;

    while (one != NULL && one->users == 0)
        one = one->next;
    return one != NULL;
}

int workspaces_open(struct workspaces *w, const char *path, uint64_t reserve, struct err *e)
{
    struct workspaces tried = WORKSPACES_NONE;
    int r = 0;

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_sys(e, errno, "make '%.120s'", path);
    r = open_dir(path, &tried.dir_fd, e);
    if (r == 0)
        r = try_one(&tried, e);
    extimage_cache_clear(&tried.templates);
    if (r < 0) {
        closep(&tried.dir_fd);
        return r;
    }
    tried.reserve = reserve;
    workimage_sweep(tried.dir_fd);
    struct stat old, new;
    int same = w->dir_fd >= 0 && fstat(w->dir_fd, &old) == 0 && fstat(tried.dir_fd, &new) == 0 &&
               old.st_dev == new.st_dev &&old.st_ino == new.st_ino;
    if (same) { /* what is mounted stays */
        closep(&tried.dir_fd);
        w->reserve = reserve;
        return 0;
    }
    if (is_used(w)) {
        closep(&tried.dir_fd);
        return err_set(e, EBUSY, "kept kernels have their workspaces in another directory");
    }
    workspaces_close(w);
    *w = tried;
    return 0;
}
