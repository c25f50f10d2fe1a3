#include "birth.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "caps.h"
#include "err.h"
#include "proc.h"
#include "report.h"
#include "rlimits.h"
#include "userns.h"
#include "walls.h"

enum { ABOVE_ALL = 16 }; /* where descriptors wait that get a number below 5 */

int birth_wait_go(int go_fd, int go_write_fd)
{
    char c;
    ssize_t n;

    close(go_write_fd);
    do
        n = read(go_fd, &c, 1);
    while (n < 0 && errno == EINTR);
    close(go_fd);
    if (n < 0)
        return -errno;
    return n == 1 ? 0 : -ECHILD;
}

/* Needed twice: a change of ids takes the parent-death signal away. */
static int stay_with_launcher(const struct birth *b, struct err *e)
{
    int r = proc_die_with_parent(e);

    return r < 0 ? r : proc_check_parent(b->ready_fd, e);
}

/* Only now, when the process is in all its groups: they become the roots of what it sees. */
static int own_cgroup_namespace(struct err *e)
{
    return unshare(CLONE_NEWCGROUP) < 0 ? err_sys(e, errno, "make a cgroup namespace") : 0;
}

int birth_loopback_up(struct err *e)
{
    struct ifreq r = { .ifr_name = "lo" };
    autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (wall_is_off(WALL_NETNS))
        return 0;

    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0)
        return err_sys(e, errno, "look at lo");
    r.ifr_flags |= IFF_UP;
    return ioctl(fd, SIOCSIFFLAGS, &r) < 0 ? err_sys(e, errno, "bring lo up") : 0;
}

int birth_name_host(struct err *e)
{
    /* The domain name too: a new UTS namespace copies the host's. */
    if (sethostname("cell", 4) < 0 || setdomainname("", 0) < 0)
        return err_sys(e, errno, "set the host name");
    return 0;
}

static int settle(struct err *e)
{
    umask(022);
    if (setsid() < 0)
        return err_sys(e, errno, "setsid");
    return rlimits_forbid_core(e);
}

/* What init keeps for the drops of its children. The bounding set too: uid 0 would get all back at
 * the exec. */
static int cut_capabilities(struct err *e)
{
    int r = caps_keep(caps_of_init(), e);

    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = err_sys(e, errno, "set no_new_privs");
    return r;
}

/* 0, 1, 2: the session's null; 3: requests; 4: ready; 5: groups, or the null; image: close-on-exec. On failure *ret_ready is
 * where the report still goes. */
static int place_descriptors(const struct birth *b, int *ret_ready, int *ret_image, struct err *e)
{
    int image = fcntl(b->init_fd, F_DUPFD_CLOEXEC, ABOVE_ALL);
    int request = fcntl(b->request_fd, F_DUPFD_CLOEXEC, ABOVE_ALL);
    int ready = fcntl(b->ready_fd, F_DUPFD_CLOEXEC, ABOVE_ALL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null >= 0)
        null = fcntl(null, F_DUPFD_CLOEXEC, ABOVE_ALL);
    int groups = b->start.groups ? fcntl(b->groups_fd, F_DUPFD_CLOEXEC, ABOVE_ALL) : null;
    if (groups < 0 || image < 0 || request < 0 || ready < 0 || null < 0)
        return err_sys(e, errno, "put descriptors aside");
    *ret_ready = ready;
    if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
        dup2(request, INIT_REQUEST_FD) < 0 || dup2(ready, INIT_READY_FD) < 0 ||
        dup2(groups, INIT_GROUPS_FD) < 0)
        return err_sys(e, errno, "put descriptors in place");
    *ret_ready = INIT_READY_FD;
    if (dup3(image, INIT_GROUPS_FD + 1, O_CLOEXEC) < 0 ||
        syscall(SYS_close_range, INIT_GROUPS_FD + 2, ~0U, 0) < 0)
        return err_sys(e, errno, "close the launcher's descriptors");
    *ret_image = INIT_GROUPS_FD + 1;
    return 0;
}

static int prepare(const struct birth *b, struct err *e)
{
    int r = userns_become_root(e);

    if (r == 0)
        r = stay_with_launcher(b, e);
    if (r == 0)
        r = own_cgroup_namespace(e);
    if (r == 0)
        r = mounts_enter(b->mounts, e);
    if (r == 0)
        r = birth_loopback_up(e);
    if (r == 0)
        r = birth_name_host(e);
    if (r == 0)
        r = settle(e);
    if (r == 0)
        r = cut_capabilities(e);
    return r < 0 ? r : stay_with_launcher(b, e);
}

_Noreturn void birth_run(const struct birth *b)
{
    struct init_start_args args;
    char *const no_environment[] = { walls_environment(), NULL };
    struct err e = { 0 };
    int ready = b->ready_fd, image = -1;

    close(b->ready_read_fd);
    proc_reset_signals();
    int r = birth_wait_go(b->go_fd, b->go_write_fd);
    if (r < 0)
        err_sys(&e, -r, "wait for the launcher");
    if (r == 0)
        r = prepare(b, &e);
    if (r == 0)
        r = place_descriptors(b, &ready, &image, &e);
    if (r == 0) {
        init_start_format(&b->start, &args);
        execveat(image, "", args.argv, no_environment, AT_EMPTY_PATH);
        err_sys(&e, errno, "exec init");
    }
    init_start_failed(ready, &e);
    _exit(1);
}
