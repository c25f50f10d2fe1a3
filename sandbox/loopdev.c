#include "loopdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>

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
