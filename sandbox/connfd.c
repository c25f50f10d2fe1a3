#include "connfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "err.h"

int connfd_read(int fd, char ret[CONNFD_MAX], size_t *ret_size, struct err *e)
{
    struct stat st;
    size_t n = 0;

    /* Anything else than a file could keep us waiting. */
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, EINVAL, "the connection data is no file");
    if (st.st_size > CONNFD_MAX)
        return err_set(e, EMSGSIZE, "connection data of more than %d bytes", CONNFD_MAX);
    while (n < (size_t)st.st_size) {
        ssize_t got = pread(fd, ret + n, (size_t)st.st_size - n, (off_t)n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(e, errno, "read the connection data");
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *ret_size = n;
    return 0;
}

int connfd_new(const char *bytes, size_t size, uid_t uid, int *ret_fd, struct err *e)
{
    autoclose int fd = memfd_create("connection.json", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(e, errno, "copy the connection data");
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0 ||
        fchmod(fd, 0400) < 0 || fchown(fd, uid, uid) < 0)
        return err_sys(e, errno, "give the connection data to the kernel");
    *ret_fd = take_fd(&fd);
    return 0;
}
