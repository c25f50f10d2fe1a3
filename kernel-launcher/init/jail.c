#include "jail.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "err.h"
#include "rootdir.h"

int jail_open_root(int *ret_fd, struct err *e)
{
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "open the root");
    *ret_fd = fd;
    return 0;
}

int jail_enter(struct err *e)
{
    if (chroot(ROOTDIR_EMPTY) < 0 || chdir("/") < 0)
        return err_sys(e, errno, "enter '%s'", ROOTDIR_EMPTY);
    return 0;
}

int jail_leave(struct err *e)
{
    if (fchdir(JAIL_ROOT_FD) < 0 || chroot(".") < 0)
        return err_sys(e, errno, "go back to the session's root");
    return 0;
}
