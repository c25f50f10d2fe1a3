#include "lastclose.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "cleanup.h"
#include "proc.h"

/* Goes on when the parent has let go of its descriptors: ours are the last then. */
static _Noreturn void hold(int fd, int other_fd, int wait_fd)
{
    const int kept[] = { fd, other_fd, wait_fd };
    char c;

    proc_reset_signals();
    for (int i = 0; i < 3; i++) { /* to where no descriptor of the others is in the way */
        int moved = kept[i] >= 0 ? fcntl(kept[i], F_DUPFD_CLOEXEC, 1000 + i) : -1;

        if (moved >= 0)
            (void)dup2(moved, i);
        else
            (void)close(i);
    }
    (void)syscall(SYS_close_range, 3U, ~0U, 0);
    while (read(2, &c, 1) < 0 && errno == EINTR)
        ;
    _exit(0);
}

pid_t lastclose(int *fd, int *other_fd)
{
    int p[2];

    if ((*fd < 0 && *other_fd < 0) || pipe2(p, O_CLOEXEC) < 0) {
        closep(fd);
        closep(other_fd);
        return 0;
    }
    pid_t pid = proc_clone(0, -1, NULL);
    if (pid == 0)
        hold(*fd, *other_fd, p[0]);
    closep(fd); /* here, when there is no child */
    closep(other_fd);
    close(p[0]);
    close(p[1]);
    return pid > 0 ? pid : 0;
}

pid_t lastclose_sync(int fd)
{
    pid_t pid = fd >= 0 ? proc_clone(0, -1, NULL) : -1;

    if (pid != 0)
        return pid > 0 ? pid : 0;
    proc_reset_signals();
    if (fd != 0)
        (void)dup2(fd, 0);
    (void)syscall(SYS_close_range, 1U, ~0U, 0);
    int in_it =
        openat(0, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* that of a mount is only a path */
    _exit(in_it >= 0 && syncfs(in_it) == 0 ? 0 : 1);
}
