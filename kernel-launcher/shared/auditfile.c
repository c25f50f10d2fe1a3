#include "auditfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "err.h"

int auditfile_open(const char *path, int *ret_fd, struct err *e)
{
    struct stat st;

    if (path[0] != '/')
        return err_set(e, EINVAL, "option --audit-log: '%.120s' is not an absolute path", path);
    /* NONBLOCK: a fifo in its place must not hold us. */
    autoclose int fd = open(
        path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
    if (fd < 0)
        return err_sys(e, errno, "option --audit-log: open '%.120s'", path);
    if (fstat(fd, &st) < 0)
        return err_sys(e, errno, "option --audit-log: '%.120s'", path);
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        return err_set(e, EINVAL, "option --audit-log: '%.120s' is no plain file of one name",
                       path);
    if (st.st_uid != geteuid() || (st.st_mode & 022) != 0)
        return err_set(e, EPERM,
                       "option --audit-log: '%.120s' must belong to root and be writable by root "
                       "only",
                       path);
    *ret_fd = take_fd(&fd);
    return 0;
}

static int in_use(const char *path, struct err *e)
{
    return err_set(e, EBUSY,
                   "option --audit-log: '%.120s' is in use by another server: each needs an audit "
                   "file of its own",
                   path);
}

static int same_file(int a, int b)
{
    struct stat x, y;

    return a >= 0 && fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

int auditfile_lock(const char *path, int fd, int *lock_fd, struct err *e)
{
    struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    char name[40];

    if (same_file(*lock_fd, fd)) /* the next gateway, or a SIGHUP without a rotation */
        return 0;
    /* The lock belongs to the open file description. That of fd goes to the gateway, which
     * could unlock it; so this is another one, of the same file whatever the path names by
     * now. O_APPEND: nothing else opens a file with chattr +a for writing. */
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    autoclose int own = open(name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (own < 0)
        return err_sys(e, errno, "option --audit-log: open '%.120s' to lock it", path);
    if (fcntl(own, F_OFD_SETLK, &all) < 0)
        return errno == EAGAIN || errno == EACCES
                   ? in_use(path, e)
                   : err_sys(e, errno, "option --audit-log: lock '%.120s'", path);
    closep(lock_fd);
    *lock_fd = take_fd(&own);
    return 0;
}

int auditfile_test(const char *path, int fd, struct err *e)
{
    struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    if (fcntl(fd, F_OFD_GETLK, &all) < 0)
        return err_sys(e, errno, "option --audit-log: lock '%.120s'", path);
    return all.l_type == F_UNLCK ? 0 : in_use(path, e);
}
