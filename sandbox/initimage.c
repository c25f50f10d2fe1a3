#include "initimage.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "err.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

enum { IMAGE_MAX = 256 << 20 }; /* a sanitizer build is large */

static int new_memfd(void)
{
    int fd = memfd_create("holdcell-init", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

    /* Older kernels do not know the flag and need none. */
    return fd < 0 && errno == EINVAL
               ? memfd_create("holdcell-init", MFD_CLOEXEC | MFD_ALLOW_SEALING)
               : fd;
}

static int copy(int from, int to, off_t size, struct err *e)
{
    while (size > 0) {
        ssize_t n = sendfile(to, from, NULL, (size_t)size);

        if (n <= 0)
            return err_sys(e, n < 0 ? errno : EIO, "copy init");
        size -= n;
    }
    return 0;
}

int initimage_open(const char *path, int *ret_fd, struct err *e)
{
    autoclose int from = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (from < 0 || fstat(from, &st) < 0)
        return err_sys(e, errno, "open init '%s'", path);
    autoclose int to = new_memfd();
    if (to < 0)
        return err_sys(e, errno, "make a memfd");
    if (!S_ISREG(st.st_mode) || st.st_size > IMAGE_MAX)
        return err_set(e, EINVAL, "init '%s' is no program", path);
    int r = copy(from, to, st.st_size, e);
    if (r < 0)
        return r;
    /* Readable: an image that is not would make its process belong to the initial user namespace,
     * and opening its namespaces would take more power over the host. */
    if (fchmod(to, 0555) < 0 ||
        fcntl(to, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return err_sys(e, errno, "seal init");
    *ret_fd = take_fd(&to);
    return 0;
}
