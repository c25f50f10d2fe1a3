#include "mountfd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"

static int set_text(int fs, const char *key, const char *value, struct err *e)
{
    if (fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) < 0)
        return err_sys(e, errno, "mount option %s=%s", key, value);
    return 0;
}

static int configure_tmpfs(int fs, const struct mountfd_tmpfs *t, struct err *e)
{
    char size[32], inodes[32], mode[32];

    snprintf(size, sizeof size, "%" PRIu64, t->bytes);
    snprintf(inodes, sizeof inodes, "%" PRIu32, t->inodes);
    snprintf(mode, sizeof mode, "%o", t->mode);
    int r = set_text(fs, "source", t->source, e);
    if (r == 0)
        r = set_text(fs, "size", size, e);
    if (r == 0)
        r = set_text(fs, "nr_inodes", inodes, e);
    if (r == 0)
        r = set_text(fs, "mode", mode, e);
    /* Linux 6.4; without it the session's swap limit of 0 does the same. */
    (void)fsconfig(fs, FSCONFIG_SET_FLAG, "noswap", NULL, 0);
    return r;
}

static int finish(int fs, unsigned attributes, int *ret_fd, struct err *e)
{
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(e, errno, "create a file system");
    int fd = fsmount(fs, FSMOUNT_CLOEXEC, attributes);
    if (fd < 0)
        return err_sys(e, errno, "fsmount");
    *ret_fd = fd;
    return 0;
}

/* *ret_fs, the context of the file system, is what seal() needs; NULL: not needed. */
static int new_tmpfs(const struct mountfd_tmpfs *t, int *ret_fd, int *ret_fs, struct err *e)
{
    autoclose int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);

    if (fs < 0)
        return err_sys(e, errno, "fsopen tmpfs");
    int r = configure_tmpfs(fs, t, e);
    if (r == 0)
        r = finish(fs, t->attributes, ret_fd, e);
    if (r < 0)
        return err_wrap(e, "tmpfs '%s'", t->source);
    if (ret_fs != NULL)
        *ret_fs = take_fd(&fs);
    return 0;
}

static int seal(int fs, int fd, struct err *e)
{
    struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };

    /* After fsmount() the context stands for a change of the options. */
    if (fsconfig(fs, FSCONFIG_SET_FLAG, "ro", NULL, 0) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0 ||
        mount_setattr(fd, "", AT_EMPTY_PATH, &read_only, sizeof read_only) < 0)
        return err_sys(e, errno, "make a file system read-only");
    return 0;
}

int mountfd_tmpfs(const struct mountfd_tmpfs *t, int *ret_fd, struct err *e)
{
    return new_tmpfs(t, ret_fd, NULL, e);
}

int mountfd_sealed(const struct mountfd_tmpfs *t, mountfd_fill *fill, void *arg, int *ret_fd,
                   struct err *e)
{
    autoclose int fd = -1;
    autoclose int fs = -1;
    int r = new_tmpfs(t, &fd, &fs, e);

    if (r == 0)
        r = fill(fd, arg, e);
    if (r == 0)
        r = seal(fs, fd, e);
    if (r < 0)
        return r;
    *ret_fd = take_fd(&fd);
    return 0;
}

int mountfd_overlay(const char *source, const int *lower_fds, unsigned count,
                    unsigned more_attributes, int *ret_fd, struct err *e)
{
    autoclose int fs = fsopen("overlay", FSOPEN_CLOEXEC);
    char lowers[256]; /* fsconfig takes 255 bytes */
    size_t n = 0;

    if (fs < 0)
        return err_sys(e, errno, "fsopen overlay");
    /* By /proc/self/fd: a plain path, or FSCONFIG_SET_FD, shows the host's path in mountinfo. */
    for (unsigned i = 0; i < count; i++) {
        int add = snprintf(lowers + n, sizeof lowers - n, "%s/proc/self/fd/%d", i == 0 ? "" : ":",
                           lower_fds[i]);
        if (add < 0 || (size_t)add >= sizeof lowers - n)
            return err_set(e, E2BIG, "too many layers of '%s'", source);
        n += (size_t)add;
    }
    int r = set_text(fs, "source", source, e);
    if (r == 0)
        r = set_text(fs, "lowerdir", lowers, e);
    if (r == 0)
        r = finish(fs, MOUNTFD_TREE | more_attributes, ret_fd, e);
    return r < 0 ? err_wrap(e, "overlay '%s'", source) : 0;
}

int mountfd_attach(int fd, const char *target, struct err *e)
{
    if (move_mount(fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(e, errno, "mount at %s", target);
    return 0;
}
