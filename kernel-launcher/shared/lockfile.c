#include "lockfile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
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
