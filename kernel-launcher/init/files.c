#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "err.h"
#include "tree.h"

/* Without the magic links of /proc: they reopen what other processes hold. */
static int open_path(const char *path, int flags, uint32_t mode)
{
    struct open_how how = { .flags =
                                (uint64_t)(unsigned)(flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK),
                            .mode = (flags & O_CREAT) != 0 ? mode : 0,
                            .resolve = RESOLVE_NO_MAGICLINKS };

    return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

static int open_flags(uint32_t flags, int *ret, struct err *e)
{
    int how;

    switch (flags & (INIT_OPEN_READ | INIT_OPEN_WRITE)) {
    case INIT_OPEN_READ:
        how = O_RDONLY;
        break;
    case INIT_OPEN_WRITE:
        how = O_WRONLY;
        break;
    case INIT_OPEN_READ | INIT_OPEN_WRITE:
        how = O_RDWR;
        break;
    default:
        return err_set(e, EINVAL, "open: neither for reading nor for writing");
    }
    if ((flags & INIT_OPEN_TRUNC) != 0 && how == O_RDONLY)
        return err_set(e, EINVAL, "open: truncation without writing");
    if ((flags & INIT_OPEN_EXCL) != 0 && (flags & INIT_OPEN_CREATE) == 0)
        return err_set(e, EINVAL, "open: exclusive without creation");
    how |= (flags & INIT_OPEN_CREATE) != 0 ? O_CREAT : 0;
    how |= (flags & INIT_OPEN_EXCL) != 0 ? O_EXCL : 0;
    how |= (flags & INIT_OPEN_TRUNC) != 0 ? O_TRUNC : 0;
    *ret = how;
    return 0;
}

static struct init_stat of_stat(const struct stat *st)
{
    return (struct init_stat){
        .mode = st->st_mode,
        .nlink = (uint32_t)st->st_nlink,
        .size = (uint64_t)st->st_size,
        .mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec,
        .inode = st->st_ino,
    };
}

/* Whoever reads or writes the descriptor must not be made to wait. */
static int check_regular(int fd, struct stat *st, struct err *e)
{
    struct statfs fs;

    if (fstat(fd, st) < 0 || fstatfs(fd, &fs) < 0)
        return err_sys(e, errno, "stat");
    if (S_ISDIR(st->st_mode))
        return err_sys(e, EISDIR, "open");
    if (!S_ISREG(st->st_mode) || fs.f_type == PROC_SUPER_MAGIC)
        return err_set(e, EINVAL, "not a regular file");
    return 0;
}

int files_open(const char *path, uint32_t flags, uint32_t mode, struct init_stat *ret, int *ret_fd,
               struct err *e)
{
    autoclose int fd = -1;
    struct stat st;
    int how = 0;
    int r = open_flags(flags, &how, e);

    if (r < 0)
        return r;
    fd = open_path(path, how, mode);
    if (fd < 0)
        return err_sys(e, errno, "open");
    r = check_regular(fd, &st, e);
    if (r < 0)
        return r;
    /* O_NONBLOCK was for the open alone: a FIFO, or a file under a lease. */
    if (fcntl(fd, F_SETFL, 0) < 0)
        return err_sys(e, errno, "set flags");
    *ret = of_stat(&st);
    *ret_fd = take_fd(&fd);
    return 0;
}

int files_stat(const char *path, struct init_stat *ret, struct err *e)
{
    struct stat st;

    if (fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return err_sys(e, errno, "stat");
    *ret = of_stat(&st);
    return 0;
}

/* 1: appended; 0: gone or one of the two dots; -EMSGSIZE: the page is full. */
static int add_entry(int dir_fd, const struct dirent64 *d, struct buf *page)
{
    struct init_entry entry = { .mode = (uint32_t)DTTOIF(d->d_type),
                                .name_len = (uint32_t)strlen(d->d_name) };
    struct stat st;
    int r;

    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return 0;
    if (fstatat(dir_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0) {
        struct init_stat got = of_stat(&st);
        entry.size = got.size;
        entry.mtime_ns = got.mtime_ns;
        entry.mode = got.mode;
    } else if (errno == ENOENT) {
        return 0;
    } /* else a directory without search permission: the name and its kind are all there is */
    if (buf_len(page) + sizeof entry + entry.name_len > INIT_PAGE_MAX)
        return -EMSGSIZE;
    r = buf_add(page, &entry, sizeof entry);
    if (r == 0)
        r = buf_add(page, d->d_name, entry.name_len);
    return r < 0 ? r : 1;
}

int files_list(const char *path, uint64_t cursor, struct buf *page, uint64_t *ret_cursor,
               struct err *e)
{
    autoclose int fd = open_path(path, O_RDONLY | O_DIRECTORY, 0);
    _Alignas(struct dirent64) char some[16 * 1024];

    if (fd < 0)
        return err_sys(e, errno, "open");
    /* The kernel's own positions: they stay right while other names come and go. */
    if (lseek(fd, (off_t)cursor, SEEK_SET) < 0)
        return err_sys(e, errno, "cursor");
    for (;;) {
        long n = syscall(SYS_getdents64, fd, some, sizeof some);

        if (n < 0)
            return err_sys(e, errno, "list");
        if (n == 0)
            break;
        for (long at = 0; at < n;) {
            const struct dirent64 *d = (const struct dirent64 *)(some + at);
            int r = add_entry(fd, d, page);

            if (r == -EMSGSIZE) {
                *ret_cursor = cursor;
                return 0;
            }
            if (r < 0)
                return err_sys(e, -r, "list");
            cursor = (uint64_t)d->d_off;
            at += d->d_reclen;
        }
    }
    *ret_cursor = 0;
    return 0;
}

/* Where the last component begins, or NULL when there is none that can be made. */
static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;

    return *name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ? NULL : name;
}

int files_aside(const char *path, uint32_t mode, char *ret_name, int *ret_fd, struct err *e)
{
    const char *base = last_component(path);
    char name[INIT_PATH_MAX + 1];
    struct stat st;
    uint64_t mark;
    int fd, n, r;

    if (base == NULL)
        return err_sys(e, EISDIR, "target");
    if (strlen(base) > INIT_NAME_MAX)
        return err_sys(e, ENAMETOOLONG, "target");
    r = tree_make(path, (size_t)(base - path), e);
    if (r < 0)
        return r;
    if (fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return err_sys(e, EISDIR, "target");
    if (getrandom(&mark, sizeof mark, 0) != sizeof mark)
        return err_sys(e, errno, "random name");
    n = snprintf(name, sizeof name, "%.*s.holdcell-%016" PRIx64 ".part", (int)(base - path), path,
                 mark);
    if (n >= (int)sizeof name)
        return err_sys(e, ENAMETOOLONG, "target");
    fd = open_path(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (fd < 0)
        return err_sys(e, errno, "create");
    memcpy(ret_name, name, (size_t)n + 1);
    *ret_fd = fd; /* O_NONBLOCK means nothing for the new regular file that it is */
    return 0;
}

int files_rename(const char *from, const char *to, int replace, struct err *e)
{
    /* RENAME_NOREPLACE is one step in the kernel; a look before the rename would not be. */
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, replace ? 0 : RENAME_NOREPLACE) < 0)
        return err_sys(e, errno, "rename");
    return 0;
}
