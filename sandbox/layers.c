#include "layers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "err.h"
#include "etctree.h"
#include "mountfd.h"

/* Exists on the host as an empty folder; what is mounted there only we see. */
static const char mount_point[] = "/run/holdcell/layers";

/* The host's own software and sources are no business of a session. */
static const char *const hidden_in_usr[] = { "local", "src" };

int layers_own_namespace(struct err *e)
{
    if (unshare(CLONE_NEWNS) < 0)
        return err_sys(e, errno, "make a mount namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return err_sys(e, errno, "keep our mounts to ourselves");
    return 0;
}

static int make_mount_point(struct err *e)
{
    if ((mkdir("/run/holdcell", 0755) < 0 && errno != EEXIST) ||
        (mkdir(mount_point, 0755) < 0 && errno != EEXIST))
        return err_sys(e, errno, "make %s", mount_point);
    return 0;
}

static int make_layer(const char *name, int *ret_fd, struct err *e)
{
    autoclose int dir = open(mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0 || mkdirat(dir, name, 0755) < 0)
        return err_sys(e, errno, "make layer '%s'", name);
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "open layer '%s'", name);
    *ret_fd = fd;
    return 0;
}

/* overlayfs.rst: a character device 0/0 hides the name in the layers below. */
static int hide_in_usr(int fd, struct err *e)
{
    for (unsigned i = 0; i < sizeof hidden_in_usr / sizeof *hidden_in_usr; i++)
        if (mknodat(fd, hidden_in_usr[i], S_IFCHR, makedev(0, 0)) < 0)
            return err_sys(e, errno, "hide /usr/%s", hidden_in_usr[i]);
    return 0;
}

/* The rights of a merged folder are those of its topmost layer. */
static int make_covers(struct layers *l, struct err *e)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < sizeof l->cover_fd / sizeof *l->cover_fd; i++) {
        const char name[] = { 'c', 'o', 'v', 'e', 'r', (char)('0' + i), '\0' };

        r = make_layer(name, &l->cover_fd[i], e);
        if (r == 0 && fchmod(l->cover_fd[i], 0750 | (i & 1) | (i & 2) << 1) < 0)
            r = err_sys(e, errno, "set the rights of layer '%s'", name);
    }
    return r;
}

static int make_layers(int fd, void *arg, struct err *e)
{
    struct layers *l = arg;
    int r = mountfd_attach(fd, mount_point, e);

    if (r < 0)
        return r;
    l->mounted = 1;
    r = make_layer("empty", &l->empty_fd, e);
    if (r == 0)
        r = make_layer("usr", &l->usr_hide_fd, e);
    if (r == 0)
        r = hide_in_usr(l->usr_hide_fd, e);
    if (r == 0)
        r = make_covers(l, e);
    if (r == 0)
        r = make_layer("etc", &l->etc_fd, e);
    return r < 0 ? r : etctree_fill(l->etc_fd, e);
}

/* Every byte and node in it is made here, so its size is bounded by what etctree copies. */
static int mount_layers(struct layers *l, struct err *e)
{
    const struct mountfd_tmpfs t = {
        .source = "layers",
        .bytes = 64 << 20,
        .inodes = 16384,
        .mode = 0755,
        .attributes = MOUNTFD_DATA,
    };
    autoclose int fd = -1; /* attached: the mount lives on without it */

    return mountfd_sealed(&t, make_layers, l, &fd, e);
}

/* Sessions have /bin, /lib ... as links into /usr; a host with folders there would need more layers. */
static int check_merged_usr(struct err *e)
{
    char target[16];
    ssize_t n = readlink("/bin", target, sizeof target);

    if (n < 0 || (strncmp(target, "usr/bin", 7) != 0 && strncmp(target, "/usr/bin", 8) != 0))
        return err_set(e, ENOTSUP, "/bin is no link to usr/bin: only merged-/usr hosts are served");
    return 0;
}

/* Where the sandbox has things of its own, the runtime cannot be. */
static int check_runtime_path(const char *path, struct err *e)
{
    static const char *const taken[] = { "/bin", "/dev",       "/etc",     "/home", "/kernelspecs",
                                         "/lib", "/proc",      "/run",     "/sbin", "/sys",
                                         "/tmp", "/usr/local", "/usr/src", "/var" };

    for (unsigned i = 0; i < sizeof taken / sizeof *taken; i++) {
        size_t n = strlen(taken[i]);

        if (strncmp(path, taken[i], n) == 0 && (path[n] == '/' || path[n] == '\0'))
            return err_set(e, EINVAL, "the runtime cannot be below %s: %s", taken[i], path);
    }
    if (strcmp(path, "/") == 0)
        return err_set(e, EINVAL, "the runtime cannot be the root directory");
    return 0;
}

static int open_runtime(const char *dir, struct layers *l, struct err *e)
{
    l->runtime_dir = realpath(dir, NULL);
    if (l->runtime_dir == NULL)
        return err_sys(e, errno, "find the runtime '%s'", dir);
    int r = check_runtime_path(l->runtime_dir, e);
    if (r < 0 || strncmp(l->runtime_dir, "/usr/", 5) == 0)
        return r; /* seen through the layer of /usr */
    l->runtime_fd = open(l->runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->runtime_fd < 0)
        return err_sys(e, errno, "open the runtime '%s'", dir);
    return 0;
}

int layers_open(const char *runtime_dir, struct layers *ret, struct err *e)
{
    struct layers l = LAYERS_NONE;
    int r = check_merged_usr(e);

    if (r == 0)
        r = make_mount_point(e);
    if (r == 0)
        r = mount_layers(&l, e);
    if (r == 0 && (l.usr_fd = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        r = err_sys(e, errno, "open /usr");
    if (r == 0)
        r = open_runtime(runtime_dir, &l, e);
    if (r < 0) {
        layers_close(&l);
        return r;
    }
    *ret = l;
    return 0;
}

void layers_close(struct layers *l)
{
    closep(&l->empty_fd);
    for (unsigned i = 0; i < sizeof l->cover_fd / sizeof *l->cover_fd; i++)
        closep(&l->cover_fd[i]);
    closep(&l->usr_fd);
    closep(&l->usr_hide_fd);
    closep(&l->etc_fd);
    closep(&l->runtime_fd);
    free(l->runtime_dir);
    l->runtime_dir = NULL;
    if (l->mounted)
        (void)umount2(mount_point, MNT_DETACH);
    l->mounted = 0;
}

int layers_cover(const struct layers *l, const char *source, int dir_fd, unsigned more_attributes,
                 int *ret_fd, struct err *e)
{
    struct stat st;

    if (fstat(dir_fd, &st) < 0)
        return err_sys(e, errno, "look at '%s'", source);
    const int lowers[] = { l->cover_fd[(st.st_mode & 1) | (st.st_mode & 4) >> 1], dir_fd };
    return mountfd_overlay(source, lowers, 2, more_attributes, ret_fd, e);
}
