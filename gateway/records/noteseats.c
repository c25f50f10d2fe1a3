#include "noteseats.h"

#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "memfd.h"
#include "noteitem.h"

int noteseats_memfd(struct view items, int *ret_fd, struct err *e)
{
    return memfd_sealed("seats", items.p, items.n, ret_fd, e);
}

int noteseats_read(int fd, struct buf *out, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > NOTESEATS_MAX)
        return err_set(e, HC_EPARSE, "note: the file of its seats has a wrong size");
    size_t n = (size_t)st.st_size;
    buf_init(out, n);
    if (buf_reserve(out, n) < 0)
        return err_set(e, HC_ELIMIT, "no memory for %zu bytes of seats", n);
    if (pread(fd, buf_tail(out), n, 0) != (ssize_t)n)
        return err_set(e, HC_EPARSE, "note: the file of its seats cannot be read");
    buf_commit(out, n);
    return noteitem_check(buf_view(out), e);
}
