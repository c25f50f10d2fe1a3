#include "lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "err.h"

int lockfile_write(int fd, pid_t pid, const char *more, struct err *e)
{
    char text[PATH_MAX + 32];
    int n = snprintf(text, sizeof text, "pid %d\n%s\n", (int)pid, more);

    /* In this order it is never empty: somebody may look now. */
    if (pwrite(fd, text, (size_t)n, 0) != n || ftruncate(fd, n) < 0)
        return err_sys(e, errno, "write lock file");
    return 0;
}

int lockfile_write_slot(int fd, pid_t pid, unsigned slot, struct err *e)
{
    char line[32];

    snprintf(line, sizeof line, "slot %u", slot);
    return lockfile_write(fd, pid, line, e);
}

int lockfile_holder(int fd, char ret_holder[LOCKFILE_HOLDER])
{
    ssize_t n = pread(fd, ret_holder, LOCKFILE_HOLDER - 1, 0);
    int failed = n < 0 ? -errno : 0;

    ret_holder[n > 0 ? n : 0] = '\0';
    ret_holder[strcspn(ret_holder, "\n")] = '\0';
    return failed;
}

int lockfile_held(int dir_fd, const char *name, char ret_holder[LOCKFILE_HOLDER], struct err *e)
{
    autoclose int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "open lock '%s'", name);
    int rc = lockfile_holder(fd, ret_holder);
    if (rc < 0)
        return err_sys(e, -rc, "read lock '%s'", name);
    if (ret_holder[0] == '\0') /* nobody has ever run here, or starts just now for the first time */
        return 0;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? 1 : err_sys(e, errno, "lock '%s'", name);
}
