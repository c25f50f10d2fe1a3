#include "leaves.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"

enum { NAME_SIZE = 64 };

static int groups = -1;

void leaves_init(int groups_fd)
{
    groups = groups_fd;
}

int leaves_there(void)
{
    return groups >= 0;
}

static void name_of(uint64_t number, const char *file, char ret[NAME_SIZE])
{
    snprintf(ret, NAME_SIZE, "p%" PRIu64 "%s", number, file);
}

int leaves_make(uint64_t number, int *ret_fd, struct err *e)
{
    char name[NAME_SIZE];

    name_of(number, "", name);
    if (mkdirat(groups, name, 0755) < 0) /* EAGAIN: as many as the launcher lets us have */
        return errno == EAGAIN ? err_set(e, HC_ELIMIT, "too many programs were left running")
                               : err_sys(e, errno, "make cgroup '%s'", name);
    int fd = openat(groups, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        int rc = err_sys(e, errno, "open cgroup '%s'", name);
        (void)unlinkat(groups, name, AT_REMOVEDIR);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

int leaves_kill(uint64_t number)
{
    char name[NAME_SIZE];

    name_of(number, "/cgroup.kill", name);
    autoclose int fd = openat(groups, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 || write(fd, "1", 1) != 1 ? -errno : 0;
}

int leaves_remove(uint64_t number)
{
    char name[NAME_SIZE];

    name_of(number, "", name);
    return unlinkat(groups, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}
