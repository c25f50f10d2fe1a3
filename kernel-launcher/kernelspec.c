#include "kernelspec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "err.h"
#include "launchmsg.h"

/* Jupyter's own rule for names, which leaves no room for a path. */
static int valid_name(const char *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(name);

    if (n == 0 || n > LAUNCH_NAME_MAX || strspn(name, allowed) != n)
        return 0;
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int directory(const char *path, unsigned index, char out[PATH_MAX], struct err *e)
{
    const char *p = path;

    for (; index > 0; index--) {
        p += strcspn(p, ":");
        if (*p == '\0')
            return err_set(e, ENOENT, "the kernel path has no directory of this index");
        p++;
    }
    size_t n = strcspn(p, ":");
    if (n == 0 || n >= PATH_MAX)
        return err_set(e, ENOENT, "the kernel path has no directory of this index");
    memcpy(out, p, n);
    out[n] = '\0';
    return 0;
}

int kernelspec_open(const char *path, unsigned dir, const char *name, int *ret_fd, struct err *e)
{
    char base[PATH_MAX], below[LAUNCH_NAME_MAX + 16];
    struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };

    if (!valid_name(name))
        return err_set(e, EINVAL, "this cannot be the name of a kernelspec");
    int rc = directory(path, dir, base, e);
    if (rc < 0)
        return rc;
    autoclose int base_fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base_fd < 0)
        return err_sys(e, errno, "kernel path directory %u", dir);
    snprintf(below, sizeof below, "kernels/%s", name);
    int fd = (int)syscall(SYS_openat2, base_fd, below, &how, sizeof how);
    if (fd < 0)
        return err_sys(e, errno, "kernelspec '%s'", name);
    *ret_fd = fd;
    return 0;
}
