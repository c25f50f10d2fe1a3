#include "workspaces.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "err.h"
#include "lastclose.h"
#include "loopdev.h"
#include "userns.h"

enum {
    NAME_SIZE = 64, /* of a principal */
    IDLE_MAX = 32,  /* that stay mounted without a session: the next one need not wait */
    FILE_BYTES = 16384,
    INODES_LEAST = 1024,
    OWNER = USERNS_USER_ID, /* on the disk */
};

struct workspace {
    struct workspace *next;
    char name[NAME_SIZE];
    int device_fd, mount_fd; /* owned; the mount keeps the file system while nobody uses it */
    unsigned users;
    uint64_t left; /* when the last one left */
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

/* ---- images ---- */

static int check_room(const struct workspaces *w, uint64_t size, struct err *e)
{
    struct statvfs fs;

    if (fstatvfs(w->dir_fd, &fs) < 0)
        return err_sys(e, errno, "look at the disk of the workspaces");
    uint64_t left = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (left < w->reserve || left - w->reserve < size)
        return err_set(e, HC_EFULL, "the disk has no room for the workspace");
    return 0;
}

/* A name that is complete from the first moment on: what a crash leaves is written anew. */
static int make_image(struct workspaces *w, const char *file, uint64_t bytes, struct err *e)
{
    const struct extimage_spec spec = spec_of(bytes);
    char fresh[NAME_SIZE + 16];
    int r = check_room(w, extimage_size(&spec), e);

    if (r < 0)
        return r;
    snprintf(fresh, sizeof fresh, ".%s.new", file);
    (void)unlinkat(w->dir_fd, fresh, 0);
    autoclose int fd =
        openat(w->dir_fd, fresh, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, errno, "make a workspace");
    r = extimage_make(&w->templates, &spec, fd, e);
    if (r == 0 && fsync(fd) < 0)
        r = err_sys(e, errno, "write a workspace");
    if (r == 0 && renameat2(w->dir_fd, fresh, w->dir_fd, file, RENAME_NOREPLACE) < 0 &&
        errno != EEXIST) /* of another server: its is as good */
        r = err_sys(e, errno, "name a workspace");
    if (r < 0)
        (void)unlinkat(w->dir_fd, fresh, 0);
    if (r == -ENOSPC)
        return err_set(e, HC_EFULL, "the disk has no room for the workspace");
    return r;
}

static int open_image(struct workspaces *w, const char *name, uint64_t bytes, int *ret_fd,
                      int *ret_made, struct err *e)
{
    char file[NAME_SIZE + 8];
    struct stat st;

    snprintf(file, sizeof file, "%s.img", name);
    for (int made = 0;; made = 1) {
        autoclose int fd = openat(w->dir_fd, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0 && errno == ENOENT && !made) {
            int r = make_image(w, file, bytes, e);
            if (r < 0)
                return r;
            continue;
        }
        if (fd < 0 || fstat(fd, &st) < 0)
            return err_sys(e, errno, "open a workspace");
        if (!S_ISREG(st.st_mode) || st.st_uid != 0)
            return err_set(e, EPERM, "an image of a workspace is no file of root");
        /* The loop device keeps the file open, and with it the lock. */
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
            return errno == EWOULDBLOCK
                       ? err_set(e, HC_EFULL, "the workspace is in use by another server")
                       : err_sys(e, errno, "lock a workspace");
        *ret_fd = take_fd(&fd);
        *ret_made = made;
        return 0;
    }
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

static int attach(struct workspaces *w, struct workspace *one, uint64_t bytes, struct err *e)
{
    autoclose int image = -1;
    autoclose int device = -1;
    int made = 0;
    int r = open_image(w, one->name, bytes, &image, &made, e);

    if (r == 0)
        r = loopdev_attach(image, &device, e);
    if (r == 0)
        r = extimage_mount(device, 1, &one->mount_fd, e);
    if (r < 0)
        return r;
    one->device_fd = take_fd(&device);
    /* Of mkfs. Later what has that name is a session's, and no business of ours. */
    if (made)
        (void)unlinkat(one->mount_fd, "lost+found", AT_REMOVEDIR);
    return 0;
}

static void drop(struct workspaces *w, struct workspace *one)
{
    struct workspace **at = &w->first;

    while (*at != one)
        at = &(*at)->next;
    *at = one->next;
    lastclose(&one->mount_fd, &one->device_fd);
    free(one);
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

int workspaces_take(struct workspaces *w, const char *name, uint64_t bytes, uid_t user_id,
                    struct workspace **ret, int *ret_fd, struct err *e)
{
    struct workspace *one = find(w, name);
    int r = 0, fd = -1;

    check(strlen(name) < NAME_SIZE && w->dir_fd >= 0);
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

void workspaces_leave(struct workspaces *w, struct workspace *one)
{
    if (--one->users > 0)
        return;
    one->left = ++w->clock;
    lastclose_sync(one->mount_fd);
    bound(w);
}

void workspaces_close(struct workspaces *w)
{
    while (w->first != NULL)
        drop(w, w->first);
    closep(&w->dir_fd);
    extimage_cache_clear(&w->templates);
}

/* ---- whether this host can ---- */

static int open_dir(const char *path, int *ret_fd, struct err *e)
{
    struct statfs fs;
    struct stat st;

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_sys(e, errno, "make '%.120s'", path);
    autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
        return err_sys(e, errno, "open '%.120s'", path);
    if (st.st_uid != 0 || (st.st_mode & 022) != 0)
        return err_set(e, EPERM, "'%.120s' must belong to root and be writable by root only", path);
    if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
        return err_set(e, ENOTSUP, "'%.120s' is in memory", path);
    *ret_fd = take_fd(&fd);
    return 0;
}

static int try_one(struct workspaces *w, struct err *e)
{
    const struct extimage_spec spec = { .bytes = 1 << 20, .inodes = 16, .owner = OWNER };
    autoclose int fd = openat(w->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    autoclose int device = -1;
    autoclose int mount = -1;
    struct stat st;

    if (fd < 0)
        return err_sys(e, errno, "make a file without a name");
    int r = extimage_make(&w->templates, &spec, fd, e);
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

int workspaces_open(struct workspaces *w, const char *path, uint64_t reserve, struct err *e)
{
    struct workspaces tried = WORKSPACES_NONE;
    int r = open_dir(path, &tried.dir_fd, e);

    if (r == 0)
        r = try_one(&tried, e);
    extimage_cache_clear(&tried.templates);
    if (r < 0) {
        closep(&tried.dir_fd);
        return r;
    }
    tried.reserve = reserve;
    if (w->first ==
        NULL) { /* else sessions have those of the old directory, and the list is theirs */
        workspaces_close(w);
        *w = tried;
        return 0;
    }
    struct stat old, new;
    int same = fstat(w->dir_fd, &old) == 0 && fstat(tried.dir_fd, &new) == 0 &&
               old.st_dev == new.st_dev &&old.st_ino == new.st_ino;
    closep(&tried.dir_fd);
    if (!same)
        return err_set(e, EBUSY, "kept kernels have their workspaces in another directory");
    w->reserve = reserve;
    return 0;
}
