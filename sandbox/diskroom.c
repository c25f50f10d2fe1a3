#include "diskroom.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "err.h"

/* No header of the kernel's has these: neither is part of it. */
#define ZFS_MAGIC      0x2fc12fc1L
#define BCACHEFS_MAGIC 0xca451a4eL

enum { STAT_BLOCK = 512 };

/* Both write elsewhere what is written again. ZFS only looks at the free space in fallocate(). */
static const char *taker_back(long type)
{
    return type == ZFS_MAGIC ? "zfs" : type == BCACHEFS_MAGIC ? "bcachefs" : NULL;
}

/* btrfs writes a block again to another place, and needs room for it then, however much was taken before:
 * but not in files with this flag, which only an empty one can get. It is read back: a mount option, or
 * another file system below an overlay, may have its own mind. */
static int forbid_copy_on_write(int fd, struct err *e)
{
    unsigned flags = 0;

    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
        return err_set(e, EOPNOTSUPP, "read the flags of a file on btrfs: errno %d", errno);
    flags |= FS_NOCOW_FL;
    (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0 || !(flags & FS_NOCOW_FL))
        return err_set(
            e, EOPNOTSUPP,
            "btrfs does not switch copy on write off (chattr +C): it would promise no room");
    return 0;
}

static int check_kind(int fd, struct err *e)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return err_sys(e, errno, "look at the file system");
    const char *name = taker_back((long)fs.f_type);
    if (name != NULL)
        return err_set(e, EOPNOTSUPP, "%s promises no room: it copies what is written again", name);
    return (long)fs.f_type == BTRFS_SUPER_MAGIC ? forbid_copy_on_write(fd, e) : 0;
}

/* The system call, not posix_fallocate(): the C library would write zeros where there is none, one after
 * the other, and believe in them. */
int diskroom_fill(int fd, uint64_t bytes, struct err *e)
{
    int rc;

    do
        rc = fallocate(fd, 0, 0, (off_t)bytes);
    while (rc < 0 && errno == EINTR);
    if (rc == 0)
        return 0;
    if (errno == EOPNOTSUPP || errno == ENOSYS)
        return err_set(e, EOPNOTSUPP, "the file system promises no room (it has no fallocate)");
    return err_sys(e, errno, "take %" PRIu64 " MiB of the disk", bytes >> 20);
}

int diskroom_missing(int fd, uint64_t *ret, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(e, errno, "look at a file");
    const uint64_t has = (uint64_t)st.st_blocks * STAT_BLOCK;
    *ret = has < (uint64_t)st.st_size ? (uint64_t)st.st_size - has : 0;
    return 0;
}

int diskroom_take(int fd, uint64_t bytes, struct err *e)
{
    uint64_t missing = 0;
    int rc = check_kind(fd, e);

    if (rc == 0)
        rc = diskroom_fill(fd, bytes, e);
    if (rc == 0)
        rc = diskroom_missing(fd, &missing, e);
    if (rc < 0 || missing == 0)
        return rc;
    return err_set(e, EOPNOTSUPP,
                   "the file system promises no room: of %" PRIu64 " KiB that it took %" PRIu64
                   " KiB have no block",
                   bytes >> 10, missing >> 10);
}
