#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "err.h"
#include "initmsg.h"

int tree_make(const char *path, size_t n, struct err *e)
{
    char part[INIT_PATH_MAX + 1];
    struct stat st;

    if (n > INIT_PATH_MAX)
        return err_sys(e, ENAMETOOLONG, "make directory");
    memcpy(part, path, n);
    part[n] = '\0';
    for (size_t i = 1; i <= n; i++) {
        char kept = part[i];

        if ((kept != '/' && kept != '\0') || part[i - 1] == '/')
            continue;
        part[i] = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST) {
            /* EROFS and EACCES may hide that it is there: only the last word counts. */
            int code = errno;
            if (stat(part, &st) < 0)
                return err_sys(e, code, "make directory");
        }
        part[i] = kept;
    }
    if (n > 0 && (stat(part, &st) < 0 || !S_ISDIR(st.st_mode)))
        return err_sys(e, ENOTDIR, "make directory");
    return 0;
}

/* A directory on the way down: what ".." must lead back to. */
struct place {
    dev_t dev;
    ino_t ino;
};

enum {
    DEPTH_MAX = 64 * 1024, /* above the inodes of any home; 1 MB */
};

struct walk {
    int fd;              /* the directory we are in */
    struct place *above; /* owned */
    size_t depth, room;
};

static int place_of(int fd, struct place *ret, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(e, errno, "stat");
    *ret = (struct place){ st.st_dev, st.st_ino };
    return 0;
}

static int enter(struct walk *w, const char *name, struct err *e)
{
    int r, fd;

    if (w->depth == w->room) {
        size_t room = w->room == 0 ? 64 : w->room * 2;
        struct place *more;

        if (room > DEPTH_MAX)
            return err_sys(e, ELOOP, "remove");
        more = realloc(w->above, room * sizeof *more);
        if (more == NULL)
            return err_sys(e, ENOMEM, "remove");
        w->above = more;
        w->room = room;
    }
    r = place_of(w->fd, &w->above[w->depth], e);
    if (r < 0)
        return r;
    fd = openat(w->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "open a directory");
    close(w->fd);
    w->fd = fd;
    w->depth++;
    return 0;
}

/* Holding no descriptor per level keeps any depth within NOFILE; the price is that
 * ".." must be looked at, for the session may have moved the directory. */
static int leave(struct walk *w, struct err *e)
{
    autoclose int fd = openat(w->fd, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct place here = { 0, 0 };
    int r;

    if (fd < 0)
        return err_sys(e, errno, "open a directory");
    r = place_of(fd, &here, e);
    if (r < 0)
        return r;
    w->depth--;
    if (here.dev != w->above[w->depth].dev || here.ino != w->above[w->depth].ino)
        return err_sys(e, ESTALE, "remove");
    close(w->fd);
    w->fd = take_fd(&fd);
    return 0;
}

/* 1: gone (by whom ever); 0: a directory that is not empty. */
static int remove_entry(int dir_fd, const char *name, int is_dir, struct err *e)
{
    if (!is_dir) {
        if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
            return 1;
        if (errno != EISDIR)
            return err_sys(e, errno, "remove");
    }
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 1;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return 0;
    return err_sys(e, errno, "remove");
}

/* Removes what it can of one reading of the directory. 1: entered a directory
 * below; 0: this one was empty; 2: read again. */
static int sweep(struct walk *w, struct err *e)
{
    _Alignas(struct dirent64) char some[16 * 1024];
    long n;
    int found = 0;

    if (lseek(w->fd, 0, SEEK_SET) < 0)
        return err_sys(e, errno, "list");
    n = syscall(SYS_getdents64, w->fd, some, sizeof some);
    if (n < 0)
        return err_sys(e, errno, "list");
    for (long at = 0; at < n;) {
        const struct dirent64 *d = (const struct dirent64 *)(some + at);
        int r;

        at += d->d_reclen;
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        found = 1;
        r = remove_entry(w->fd, d->d_name, d->d_type == DT_DIR, e);
        if (r < 0)
            return r;
        if (r == 0) {
            r = enter(w, d->d_name, e);
            return r < 0 ? r : 1;
        }
    }
    return found ? 2 : 0;
}

static int empty_directory(const char *path, struct err *e)
{
    struct walk w = { .fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) };
    int r;

    if (w.fd < 0)
        return err_sys(e, errno, "open a directory");
    for (;;) {
        r = sweep(&w, e);
        if (r < 0 || (r == 0 && w.depth == 0))
            break;
        if (r == 0)
            r = leave(&w, e);
        if (r < 0)
            break;
    }
    close(w.fd);
    free(w.above);
    return r;
}

static int names_itself(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;

    return *name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int tree_remove(const char *path, int recursive, struct err *e)
{
    int r;

    if (names_itself(path)) /* ".." would empty a directory that the path does not name */
        return err_sys(e, EINVAL, "remove");
    if (unlinkat(AT_FDCWD, path, 0) == 0)
        return 0;
    if (errno != EISDIR)
        return err_sys(e, errno, "remove");
    for (;;) {
        if (unlinkat(AT_FDCWD, path, AT_REMOVEDIR) == 0)
            return 0;
        if ((errno != ENOTEMPTY && errno != EEXIST) || !recursive)
            return err_sys(e, errno, "remove");
        r = empty_directory(path, e);
        if (r < 0)
            return r;
    }
}
