#include "loopdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "err.h"

enum {
    TRIES = 64, /* somebody else may take the one that was free */
    BLOCK_SIZE = 4096,
};

/* Direct I/O: the session's own page cache, charged to the session, is the only one, and the
 * writes of a flood go to the disk instead of into the host's. A file system that cannot do
 * it is served through its cache; the driver decides. */
static int configure(int device_fd, int file_fd)
{
    const struct loop_config c = {
        .fd = (unsigned)file_fd,
        .block_size = BLOCK_SIZE,
        .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
    };

    return ioctl(device_fd, LOOP_CONFIGURE, &c) < 0 ? -errno : 0;
}

static int open_free(int control_fd, int *ret_fd, struct err *e)
{
    char path[32];
    int number = ioctl(control_fd, LOOP_CTL_GET_FREE);

    if (number < 0)
        return err_sys(e, errno == ENOSPC ? ENODEV : errno, "find a free loop device");
    snprintf(path, sizeof path, "/dev/loop%d", number);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_sys(e, errno == ENOENT ? ENODEV : errno, "open %s", path);
    *ret_fd = fd;
    return 0;
}

static int open_control(int *ret_fd, struct err *e)
{
    *ret_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (*ret_fd < 0)
        return err_sys(e, errno == ENOENT || errno == ENXIO ? ENODEV : errno,
                       "open /dev/loop-control");
    return 0;
}

int loopdev_check(struct err *e)
{
    autoclose int control = -1;
    autoclose int fd = -1;
    int r = open_control(&control, e);

    return r < 0 ? r : open_free(control, &fd, e);
}

int loopdev_attach(int file_fd, int *ret_fd, struct err *e)
{
    autoclose int control = -1;
    int r = open_control(&control, e);

    if (r < 0)
        return r;
    r = -EBUSY;
    for (int i = 0; i < TRIES && r == -EBUSY; i++) {
        autoclose int fd = -1;

        r = open_free(control, &fd, e);
        if (r < 0)
            return r;
        r = configure(fd, file_fd);
        if (r == 0)
            *ret_fd = take_fd(&fd);
    }
    return r < 0 ? err_sys(e, -r, "set up a loop device") : 0;
}

/* The name under which the kernel's files know it: numbers of nodes and of devices may differ. */
static int name_of(int device_fd, char *ret, size_t size)
{
    char path[64], target[256];
    struct stat st;

    if (fstat(device_fd, &st) < 0)
        return -errno;
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(st.st_rdev), minor(st.st_rdev));
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return -errno;
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    if ((size_t)snprintf(ret, size, "%s", slash != NULL ? slash + 1 : target) >= size)
        return -ENAMETOOLONG;
    return 0;
}

int loopdev_keep_blocks(int device_fd)
{
    char name[32], path[80];
    int r = name_of(device_fd, name, sizeof name);

    if (r < 0)
        return r;
    snprintf(path, sizeof path, "/sys/fs/ext4/%s/extent_max_zeroout_kb", name);
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
        return -errno;
    return 0;
}
