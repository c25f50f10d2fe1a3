#include "oomscore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "err.h"

static const char raised[] = "500"; /* as a kernel's */

static int score_fd = -1;
static char own[16];

int oomscore_open(int *ret_fd, struct err *e)
{
    int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "open the score for the OOM killer");
    *ret_fd = fd;
    return 0;
}

int oomscore_init(int fd, struct err *e)
{
    ssize_t n = pread(fd, own, sizeof own - 1, 0);

    if (n <= 0)
        return err_sys(e, n < 0 ? errno : EIO, "read the score for the OOM killer");
    own[n] = '\0';
    score_fd = fd;
    return 0;
}

static int set(const char *score, struct err *e)
{
    const ssize_t n = (ssize_t)strlen(score);

    if (score_fd >= 0 && pwrite(score_fd, score, (size_t)n, 0) != n)
        return err_sys(e, errno, "write the score for the OOM killer");
    return 0;
}

int oomscore_raise(struct err *e)
{
    return atoi(own) < atoi(raised) ? set(raised, e) : 0;
}

int oomscore_restore(struct err *e)
{
    return set(own, e);
}
