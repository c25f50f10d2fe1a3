/* What homes on a disk need: a loop device over a sparse file, ext4 in it, and ids laid over it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "box.h"
#include "err.h"
#include "mountfd.h"
#include "probes.h"
#include "proc.h"

enum { IMAGE_BYTES = 8 << 20, TRIES = 32 };

/* Without a name, in the state directory or the nearest folder above it that exists. */
static int make_image(const char *state_dir, int *ret_fd, struct err *e)
{
    char dir[PATH_MAX];
    int fd;

    snprintf(dir, sizeof dir, "%s", state_dir);
    while ((fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) < 0 && errno == ENOENT) {
        char *slash = strrchr(dir, '/');

        if (slash == NULL || slash == dir)
            break;
        *slash = '\0';
    }
    autoclose int image = fd;
    if (image < 0 || ftruncate(image, IMAGE_BYTES) < 0)
        return err_sys(e, errno, "make a file in '%.120s'", dir);
    *ret_fd = take_fd(&image);
    return 0;
}

static const char *find_mkfs(void)
{
    static const char *const places[] = { "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4",
                                          "/usr/bin/mkfs.ext4" };

    for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

static int make_file_system(int image_fd, struct err *e)
{
    const char *program = find_mkfs();
    int status = -1;

    if (program == NULL)
        return err_set(e, ENOENT, "no mkfs.ext4 (package e2fsprogs)");
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        /* Below the numbers that the launcher uses: not close-on-exec at 3. */
        if (null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0 &&
            dup2(image_fd, 3) >= 0 && fcntl(3, F_SETFD, 0) >= 0)
            execl(program, "mkfs.ext4", "-q", "-F", "/proc/self/fd/3", (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || proc_reap(pid, &status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(e, EIO, "mkfs.ext4 failed (status %d)",
                       WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}

/* Another may take the device that was free a moment ago. Autoclear: it is free again with its
 * last user. */
static int attach_loop(int image_fd, char ret_path[32], int *ret_fd, struct err *e)
{
    autoclose int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    const struct loop_config c = { .fd = (unsigned)image_fd,
                                   .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };

    if (control < 0)
        return err_sys(e, errno, "open /dev/loop-control");
    for (int i = 0; i < TRIES; i++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);

        if (number < 0)
            return err_sys(e, errno, "find a free loop device");
        snprintf(ret_path, 32, "/dev/loop%d", number);
        autoclose int fd = open(ret_path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            return err_sys(e, errno, "open %s", ret_path);
        if (ioctl(fd, LOOP_CONFIGURE, &c) == 0) {
            *ret_fd = take_fd(&fd);
            return 0;
        }
        if (errno != EBUSY)
            return err_sys(e, errno, "set up %s", ret_path);
    }
    return err_set(e, EBUSY, "no loop device stays free");
}

static int mount_ext4(const char *device, int *ret_fd, struct err *e)
{
    autoclose int fs = fsopen("ext4", FSOPEN_CLOEXEC);

    if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", device, 0) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(e, errno, "mount ext4 from %s", device);
    int fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNTFD_DATA);
    if (fd < 0)
        return err_sys(e, errno, "fsmount ext4");
    *ret_fd = fd;
    return 0;
}

static int disk_mount(const struct probe_env *env, int *ret_fd, struct err *e)
{
    char device[32];
    autoclose int image = -1;
    autoclose int loop = -1;
    int r = make_image(env->state_dir, &image, e);

    if (r == 0)
        r = make_file_system(image, e);
    if (r == 0)
        r = attach_loop(image, device, &loop, e);
    return r < 0 ? r : mount_ext4(device, ret_fd, e);
}

/* A full one says so, and no process is killed for it. */
static int fill(int mount_fd, struct err *e)
{
    static const char block[64 * 1024];
    autoclose int fd = openat(mount_fd, "probe", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(e, errno, "make a file in a home on a disk");
    for (int i = 0; i < 4 * IMAGE_BYTES / (int)sizeof block; i++)
        if (write(fd, block, sizeof block) < 0)
            return errno == ENOSPC ? 0 : err_sys(e, errno, "fill a home on a disk");
    return err_set(e, EPROTO, "a home on a disk takes more than its size");
}

int probe_disk_home(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    autoclose int fd = -1;
    int r = disk_mount(env, &fd, e);

    (void)ret;
    return r < 0 ? r : fill(fd, e);
}

/* The owner of what lies there is another one through this mount. */
static int lay_ids(const struct userns *u, int mount_fd, struct err *e)
{
    struct mount_attr a = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)u->outer_fd };
    struct stat st;

    if (mount_setattr(mount_fd, "", AT_EMPTY_PATH, &a, sizeof a) < 0)
        return err_sys(e, errno, "lay ids over a mount");
    if (fstat(mount_fd, &st) < 0)
        return err_sys(e, errno, "look at the mount");
    if (st.st_uid != u->id_base + USERNS_OUTER_FIRST)
        return err_set(e, EPROTO, "the mount shows owner %u, not %u", st.st_uid,
                       u->id_base + USERNS_OUTER_FIRST);
    return 0;
}

int probe_idmapped_mount(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    const struct mountfd_tmpfs t = {
        .source = "probe", .bytes = 1 << 20, .inodes = 16, .mode = 0755, .attributes = MOUNTFD_DATA
    };
    struct userns own;
    const struct userns *u;
    struct err disk = { 0 };
    autoclose int fd = -1;
    int r = box_userns(env, &own, &u, e);

    if (r == 0 && u->outer_fd < 0)
        return err_set(e, ENOTSUP, "there is no outer user namespace to take ids from");
    if (r == 0 && disk_mount(env, &fd, &disk) < 0) {
        probe_say(ret, HOSTWALL_PRESENT, "tried on a tmpfs");
        r = mountfd_tmpfs(&t, &fd, e);
    }
    return r < 0 ? r : lay_ids(u, fd, e);
}
