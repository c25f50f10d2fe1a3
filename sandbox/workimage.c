#include "workimage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "diskroom.h"
#include "err.h"

#define UNFINISHED ".img.new" /* ends the names of those that are being made */

enum { FILE_NAME_SIZE = WORKIMAGE_NAME_SIZE + 8, FRESH_SIZE = 32, TRIES = 16 };

static void name_of(const char *name, char ret[FILE_NAME_SIZE])
{
    snprintf(ret, FILE_NAME_SIZE, "%s.img", name);
}

/* ---- unfinished ones ---- */

/* Locked as long as it is made, which tells it from what a dead server left. */
static int make_named(int dir_fd, char ret_name[FRESH_SIZE], int *ret_fd, struct err *e)
{
    for (int i = 0; i < TRIES; i++) {
        uint64_t number;
        struct stat st;

        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return err_sys(e, errno, "random bytes");
        snprintf(ret_name, FRESH_SIZE, ".%016llx" UNFINISHED, (unsigned long long)number);
        autoclose int fd =
            openat(dir_fd, ret_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            return err_sys(e, errno, "make an image");
        /* Between open and lock another server may have swept it. */
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0)
            continue;
        *ret_fd = take_fd(&fd);
        return 0;
    }
    return err_set(e, EEXIST, "make an image: no name is free");
}

/* Without a name where the file system can do that; else ret_name is to be removed. */
static int make_fresh(int dir_fd, char ret_name[FRESH_SIZE], int *ret_fd, struct err *e)
{
    ret_name[0] = '\0';
    *ret_fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*ret_fd >= 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != EISDIR)
        return err_sys(e, errno, "make an image");
    return make_named(dir_fd, ret_name, ret_fd, e);
}

static void remove_fresh(int dir_fd, const char *name)
{
    if (name[0] != '\0')
        (void)unlinkat(dir_fd, name, 0);
}

int workimage_unnamed(int dir_fd, int *ret_fd, struct err *e)
{
    char fresh[FRESH_SIZE];
    int r = make_fresh(dir_fd, fresh, ret_fd, e);

    if (r == 0)
        remove_fresh(dir_fd, fresh);
    return r;
}

static int is_unfinished(const char *name)
{
    size_t n = strlen(name), end = sizeof UNFINISHED - 1;

    return name[0] == '.' && n > end && strcmp(name + n - end, UNFINISHED) == 0;
}

void workimage_sweep(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (d == NULL) {
        closep(&fd);
        return;
    }
    while ((entry = readdir(d)) != NULL) {
        if (!is_unfinished(entry->d_name))
            continue;
        autoclose int one =
            openat(dir_fd, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (one >= 0 && flock(one, LOCK_EX | LOCK_NB) == 0)
            (void)unlinkat(dir_fd, entry->d_name, 0);
    }
    closedir(d);
}

/* ---- whole ones ---- */

static int check_room(const struct workimage_place *p, uint64_t size, struct err *e)
{
    struct statvfs fs;

    if (fstatvfs(p->dir_fd, &fs) < 0)
        return err_sys(e, errno, "look at the disk of the workspaces");
    uint64_t left = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (left < p->reserve || left - p->reserve < size)
        return err_set(e, HC_EFULL, "the disk has no room for the workspace");
    return 0;
}

/* 1: it has the name; 0: another server was first, and its is as good. */
static int publish(int dir_fd, int fd, const char *fresh, const char *file, struct err *e)
{
    char self[32];
    int r;

    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (fresh[0] == '\0')
        r = linkat(AT_FDCWD, self, dir_fd, file, AT_SYMLINK_FOLLOW);
    else
        r = linkat(dir_fd, fresh, dir_fd, file, 0);
    if (r < 0)
        return errno == EEXIST ? 0 : err_sys(e, errno, "name a workspace");
    /* Or what a session has written down for good could be lost with the name. */
    return fsync(dir_fd) < 0 ? err_sys(e, errno, "write the directory of the workspaces") : 1;
}

/* As publish(). */
static int make(const struct workimage_place *p, const char *file, const struct extimage_spec *spec,
                struct err *e)
{
    char fresh[FRESH_SIZE];
    autoclose int fd = -1;
    int r = check_room(p, extimage_size(spec), e);

    if (r == 0)
        r = make_fresh(p->dir_fd, fresh, &fd, e);
    if (r < 0)
        return r;
    r = extimage_make(p->templates, spec, fd, e);
    if (r == 0 && fsync(fd) < 0)
        r = err_sys(e, errno, "write a workspace");
    if (r == 0)
        r = publish(p->dir_fd, fd, fresh, file, e);
    remove_fresh(p->dir_fd, fresh);
    if (r == -ENOSPC)
        return err_set(e, HC_EFULL, "the disk has no room for the workspace");
    return r;
}

/* One that was copied with holes, say, could not be filled where others fill the disk. */
static int fill_holes(const struct workimage_place *p, int fd, uint64_t size, struct err *e)
{
    uint64_t missing = 0;
    int r = diskroom_missing(fd, &missing, e);

    if (r < 0 || missing == 0)
        return r;
    r = check_room(p, missing, e);
    if (r == 0)
        r = diskroom_fill(fd, size, e);
    return r == -ENOSPC ? err_set(e, HC_EFULL, "the disk has no room for the workspace") : r;
}

int workimage_open(const struct workimage_place *p, const char *name,
                   const struct extimage_spec *spec, struct workimage *ret, struct err *e)
{
    char file[FILE_NAME_SIZE];
    struct stat st;
    int made = 0;

    name_of(name, file);
    for (int i = 0;; i++) {
        autoclose int fd = openat(p->dir_fd, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0 && errno == ENOENT && i < TRIES) {
            made = make(p, file, spec, e);
            if (made < 0)
                return made;
            continue;
        }
        if (fd < 0)
            return err_sys(e, errno, "open a workspace");
        /* The loop device keeps the file open, and with it the lock. */
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
            return err_sys(e, errno, "lock a workspace");
        if (fstat(fd, &st) < 0)
            return err_sys(e, errno, "look at a workspace");
        if (!S_ISREG(st.st_mode) || st.st_uid != 0)
            return err_set(e, EPERM, "an image of a workspace is no file of root");
        /* Removed or replaced meanwhile: that is another one's name now. */
        if (!workimage_is_named(p->dir_fd, name, st.st_dev, st.st_ino) && i < TRIES)
            continue;
        int r = fill_holes(p, fd, (uint64_t)st.st_size, e);
        if (r < 0)
            return r;
        *ret = (struct workimage){ take_fd(&fd), (uint64_t)st.st_size, st.st_dev, st.st_ino, made };
        return 0;
    }
}

int workimage_is_named(int dir_fd, const char *name, dev_t dev, ino_t ino)
{
    char file[FILE_NAME_SIZE];
    struct stat st;

    name_of(name, file);
    return fstatat(dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == dev &&
           st.st_ino == ino;
}
