#include "rmtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "err.h"

enum { DEPTH_MAX = 64 }; /* one open directory per level */

static int remove_entry(int dir, const char *name, unsigned depth, struct err *e);

static int empty_directory(int fd, unsigned depth, struct err *e)
{
    int rc = 0;
    DIR *d = fdopendir(fd);

    if (d == NULL) {
        rc = err_sys(e, errno, "read directory");
        close(fd);
        return rc;
    }
    while (rc == 0) {
        errno = 0;
        struct dirent *entry = readdir(d);
        if (entry == NULL) {
            rc = errno != 0 ? err_sys(e, errno, "read directory") : 0;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = remove_entry(dirfd(d), entry->d_name, depth, e);
    }
    closedir(d);
    return rc;
}

static int remove_entry(int dir, const char *name, unsigned depth, struct err *e)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM) /* POSIX says EPERM, Linux EISDIR */
        return err_sys(e, errno, "remove '%.64s'", name);
    if (depth >= DEPTH_MAX)
        return err_set(e, ELOOP, "'%.64s' lies deeper than %d levels", name, DEPTH_MAX);
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "open '%.64s' to remove it", name);
    int rc = empty_directory(fd, depth + 1, e);
    if (rc < 0)
        return rc;
    if (unlinkat(dir, name, AT_REMOVEDIR) < 0)
        return err_sys(e, errno, "remove directory '%.64s'", name);
    return 0;
}

int rmtree_at(int dir, const char *name, struct err *e)
{
    return remove_entry(dir, name, 0, e);
}
