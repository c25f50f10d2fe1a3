#include "rootdir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "err.h"
#include "mountfd.h"
#include "mounts.h"

static const char *const folders[] = {
    "dev", "etc",        "home", "home/user", "kernelspecs", "proc",
    "run", "run/kernel", "tmp",  "usr",       "var",         &ROOTDIR_EMPTY[1],
};

struct link {
    const char *name, *target;
};

static const struct link root_links[] = {
    { "bin", "usr/bin" },     { "sbin", "usr/sbin" }, { "lib", "usr/lib" },
    { "lib64", "usr/lib64" }, { "var/tmp", "/tmp" },
};

static const struct link dev_links[] = {
    { "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
    { "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
    { "ptmx", "pts/ptmx" },
};

static const struct {
    const char *name;
    unsigned minor; /* of major 1, devices.txt */
} nodes[] = { { "null", 3 }, { "zero", 5 }, { "full", 7 }, { "random", 8 }, { "urandom", 9 } };

static int make_links(int dirfd, const struct link *links, unsigned count, struct err *e)
{
    for (unsigned i = 0; i < count; i++)
        if (symlinkat(links[i].target, dirfd, links[i].name) < 0)
            return err_sys(e, errno, "make link '%s'", links[i].name);
    return 0;
}

static int make_folder(int root_fd, const char *path, struct err *e)
{
    if (mkdirat(root_fd, path, 0755) < 0 && errno != EEXIST)
        return err_sys(e, errno, "make folder '%s'", path);
    return 0;
}

/* a, a/b and a/b/c. */
int rootdir_add(int root_fd, const char *wanted, struct err *e)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s", wanted);
    for (char *p = strchr(path, '/'); p != NULL; p = strchr(p + 1, '/')) {
        *p = '\0';
        int r = make_folder(root_fd, path, e);
        *p = '/';
        if (r < 0)
            return r;
    }
    return make_folder(root_fd, path, e);
}

int rootdir_furnish(int root_fd, const char *runtime_dir, struct err *e)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < sizeof folders / sizeof *folders; i++)
        r = make_folder(root_fd, folders[i], e);
    for (unsigned i = 0; r == 0 && i < MOUNTS_SPECS; i++) {
        char path[32];

        snprintf(path, sizeof path, "%s/%u", &MOUNTS_SPEC_PATH[1], i);
        r = make_folder(root_fd, path, e);
    }
    if (r == 0 && runtime_dir != NULL)
        r = rootdir_add(root_fd, runtime_dir + 1, e);
    if (r == 0)
        r = make_links(root_fd, root_links, sizeof root_links / sizeof *root_links, e);
    return r;
}

static int make_nodes(int fd, struct err *e)
{
    for (unsigned i = 0; i < sizeof nodes / sizeof *nodes; i++)
        if (mknodat(fd, nodes[i].name, S_IFCHR | 0666, makedev(1, nodes[i].minor)) < 0 ||
            fchmodat(fd, nodes[i].name, 0666, 0) < 0) /* whatever our umask is */
            return err_sys(e, errno, "make device '%s'", nodes[i].name);
    return 0;
}

static int fill_dev(int fd, void *arg, struct err *e)
{
    (void)arg;
    int r = make_nodes(fd, e);

    if (r == 0)
        r = make_folder(fd, "pts", e);
    if (r == 0)
        r = make_folder(fd, "shm", e);
    return r < 0 ? r : make_links(fd, dev_links, sizeof dev_links / sizeof *dev_links, e);
}

int rootdir_dev(int *ret_fd, struct err *e)
{
    const struct mountfd_tmpfs t = {
        .source = "dev",
        .bytes = 64 << 10,
        .inodes = 32,
        .mode = 0755,
        .attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, /* the one mount with devices */
    };

    return mountfd_sealed(&t, fill_dev, NULL, ret_fd, e) < 0 ? err_wrap(e, "/dev") : 0;
}
