#include "homes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "err.h"
#include "loopdev.h"
#include "mountfd.h"

static struct extimage_spec spec_of(const struct launch_limits *l)
{
    return (struct extimage_spec){ .bytes = l->home_bytes, .inodes = l->inodes };
}

uint64_t sandbox_home_size(const struct launch_limits *limits)
{
    const struct extimage_spec spec = spec_of(limits);

    return extimage_size(&spec);
}

/* Without a name from the start: whoever dies when, nothing is left. Few file systems cannot. */
static int open_image(int dir_fd, int *ret_fd, struct err *e)
{
    static const char name[] = "home.new";
    int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        (void)unlinkat(dir_fd, name, 0);
        fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0)
            (void)unlinkat(dir_fd, name, 0);
    }
    if (fd < 0)
        return err_sys(e, errno, "make an image for a home");
    *ret_fd = fd;
    return 0;
}

static int make_on_disk(struct homes *h, const struct launch_limits *l, int *ret_fd, struct err *e)
{
    const struct extimage_spec spec = spec_of(l);
    autoclose int image = -1;
    autoclose int device = -1;
    int r = loopdev_check(e); /* before so much of the disk is taken and given back */

    if (r == 0)
        r = open_image(h->dir_fd, &image, e);
    if (r == 0)
        r = extimage_make(&h->templates, &spec, image, e);
    if (r == 0)
        r = loopdev_attach(image, &device, e);
    if (r == 0)
        r = extimage_mount(device, 0, ret_fd, e);
    return r < 0 ? err_wrap(e, "home on disk") : 0;
}

static int make_in_memory(const struct launch_limits *l, int with_work, int *ret_fd, struct err *e)
{
    const struct mountfd_tmpfs t = {
        .source = "home",
        .bytes = l->home_bytes,
        .inodes = l->inodes + 1 + (with_work != 0), /* what we put there counts for nothing */
        .mode = 0700,
        .attributes = MOUNTFD_DATA,
    };

    return mountfd_tmpfs(&t, ret_fd, e);
}

static int make_folder(int fd, const char *name, uid_t owner, struct err *e)
{
    if (mkdirat(fd, name, 0755) < 0 || fchownat(fd, name, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(e, errno, "make %s in a home", name);
    return 0;
}

/* The mount options would show the id (uid=) in mountinfo: so chown. Nobody but us has
 * seen this file system yet. */
static int furnish(int fd, uid_t owner, int with_work, struct err *e)
{
    (void)unlinkat(fd, "lost+found", AT_REMOVEDIR);
    int r = make_folder(fd, "outputs", owner, e);
    if (r == 0 && with_work)
        r = make_folder(fd, "work", 0, e); /* a place to mount on */
    if (r < 0)
        return r;
    if (fchmodat(fd, ".", 0700, 0) < 0 || fchownat(fd, "", owner, owner, AT_EMPTY_PATH) < 0)
        return err_sys(e, errno, "give a home to id %u", owner);
    return 0;
}

int homes_make(struct homes *h, const struct launch_limits *limits, enum sandbox_home kind,
               uid_t user_id, int with_work, int *ret_fd, int *ret_root_fd, struct err *e)
{
    autoclose int fd = -1;
    autoclose int root = -1;
    int r = kind == SANDBOX_HOME_DISK ? make_on_disk(h, limits, &fd, e)
                                      : make_in_memory(limits, with_work, &fd, e);

    if (r == 0)
        r = furnish(fd, user_id, with_work, e);
    if (r < 0)
        return r;
    if (kind == SANDBOX_HOME_DISK) {
        root = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
            return err_sys(e, errno, "open a home");
    }
    *ret_fd = take_fd(&fd);
    *ret_root_fd = take_fd(&root);
    return 0;
}

/* ---- whether this host can ---- */

/* What a file system in memory gives a home would be nobody's memory. */
static int check_place(int dir_fd, struct err *e)
{
    struct statfs fs;

    if (fstatfs(dir_fd, &fs) < 0)
        return err_sys(e, errno, "look at the state directory");
    if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
        return err_set(e, ENOTSUP, "the state directory is in memory");
    return 0;
}

int homes_open(struct homes *h, int dir_fd, const struct launch_limits *usual, struct err *e)
{
    const struct extimage_spec spec = spec_of(usual);
    const struct launch_limits small = { .home_bytes = 1 << 20, .inodes = 16 };
    struct homes tried = HOMES_NONE;
    autoclose int fd = -1;
    int root = -1;

    tried.dir_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = tried.dir_fd < 0 ? err_sys(e, errno, "open the state directory") : 0;
    if (r == 0)
        r = check_place(tried.dir_fd, e);
    if (r == 0)
        r = homes_make(&tried, &small, SANDBOX_HOME_DISK, 1, 0, &fd, &root, e);
    if (root >= 0)
        extimage_drop(root);
    closep(&root);
    extimage_cache_clear(&tried.templates);
    if (r == 0)
        r = extimage_prepare(&tried.templates, &spec, e);
    if (r < 0) {
        homes_close(&tried);
        return r;
    }
    homes_close(h);
    *h = tried;
    return 0;
}

void homes_close(struct homes *h)
{
    closep(&h->dir_fd);
    extimage_cache_clear(&h->templates);
}
