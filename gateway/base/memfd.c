#include "memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "err.h"

int memfd_sealed(const char *name, const void *p, size_t n, int *ret_fd, struct err *e)
{
    autoclose int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return err_sys(e, errno, "make a memfd");
    for (size_t done = 0; done < n;) {
        ssize_t m = pwrite(fd, (const char *)p + done, n - done, (off_t)done);
        if (m <= 0)
            return err_sys(e, m < 0 ? errno : EIO, "write a memfd");
        done += (size_t)m;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return err_sys(e, errno, "seal a memfd");
    *ret_fd = take_fd(&fd);
    return 0;
}
