#include "auditfile.h"

#include <errno.h>
#include <fcntl.h>
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
