#include "sockmem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "walls.h"

int sockmem_lower(const char *text, unsigned long most, char *ret, size_t size)
{
    unsigned long n[3];
    int above = 0;

    if (sscanf(text, "%lu %lu %lu", &n[0], &n[1], &n[2]) != 3)
        return -EINVAL;
    for (unsigned i = 0; i < 3; i++) {
        above |= n[i] > most;
        n[i] = n[i] > most ? most : n[i];
    }
    if (!above)
        return 0;
    return snprintf(ret, size, "%lu %lu %lu\n", n[0], n[1], n[2]) < (int)size ? 1 : -EINVAL;
}

/* 0: lowered, or low enough, or a kernel without the setting. */
static int lower_file(const char *path, struct err *e)
{
    autoclose int fd = open(path, O_RDWR | O_CLOEXEC);
    char text[96], lower[96];

    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "open %s", path);
    ssize_t n = read(fd, text, sizeof text - 1);
    if (n < 0)
        return err_sys(e, errno, "read %s", path);
    text[n] = '\0';
    int r = sockmem_lower(text, SOCKMEM_BUFFER, lower, sizeof lower);
    if (r < 0)
        return err_set(e, EPROTO, "%s is not three numbers", path);
    if (r == 1 && pwrite(fd, lower, strlen(lower), 0) < 0)
        return err_sys(e, errno, "lower %s", path);
    return 0;
}

int sockmem_bound(struct err *e)
{
    if (wall_is_off(WALL_NETNS)) /* a test's: they would be the host's */
        return 0;
    int r = lower_file("proc/sys/net/ipv4/tcp_rmem", e);
    return r < 0 ? r : lower_file("proc/sys/net/ipv4/tcp_wmem", e);
}
