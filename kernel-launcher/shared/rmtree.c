#include "rmtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"

/* The tree may be as deep as its maker had patience for: so nobody climbs down in it. What a
 * directory of the first level holds is removed or, being a directory that is not empty, moved up to
 * the first level, and then it is its turn. Each directory moves once. */
struct tree {
    DIR *top;
    uint64_t moved; /* names the next one that moves up */
};

static int move_up(struct tree *t, int dir, const char *name, struct err *e)
{
    char fresh[32];

    do { /* a name that its maker thought of costs one try; an empty directory of that name goes by this */
        snprintf(fresh, sizeof fresh, "%" PRIu64, t->moved++);
        if (renameat(dir, name, dirfd(t->top), fresh) == 0 || errno == ENOENT)
            return 0;
    } while (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR);
    return err_sys(e, errno, "move '%.64s' to remove it", name);
}

/* 1: a directory that holds something. By the name alone, so a mount point is EBUSY, and nothing below it
 * is touched. */
static int remove_entry(int dir, const char *name, struct err *e)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM) /* POSIX says EPERM, Linux EISDIR */
        return err_sys(e, errno, "remove '%.64s'", name);
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return 1;
    return err_sys(e, errno, "remove directory '%.64s'", name);
}

static int open_directory(int dir, const char *name, DIR **ret, struct err *e)
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    *ret = fd >= 0 ? fdopendir(fd) : NULL;
    if (*ret == NULL)
        return err_sys(e, errno, "open '%.64s' to remove it", name);
    (void)take_fd(&fd);
    return 0;
}

typedef int each_fn(struct tree *t, int dir, const char *name, struct err *e);

/* What is removed or comes in meanwhile may hide entries from readdir(): over again until there are none. */
static int for_each(struct tree *t, DIR *d, each_fn *fn, struct err *e)
{
    for (int found = 1, rc; found; rewinddir(d)) {
        const struct dirent *entry;

        found = 0;
        while (errno = 0, (entry = readdir(d)) != NULL) {
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            found = 1;
            if ((rc = fn(t, dirfd(d), entry->d_name, e)) < 0)
                return rc;
        }
        if (errno != 0)
            return err_sys(e, errno, "read directory");
    }
    return 0;
}

static int clear_inner(struct tree *t, int dir, const char *name, struct err *e)
{
    int rc = remove_entry(dir, name, e);

    return rc == 1 ? move_up(t, dir, name, e) : rc;
}

static int clear_outer(struct tree *t, int dir, const char *name, struct err *e)
{
    DIR *d;
    int rc = remove_entry(dir, name, e);

    if (rc != 1)
        return rc;
    rc = open_directory(dir, name, &d, e);
    if (rc < 0)
        return rc;
    rc = for_each(t, d, clear_inner, e);
    closedir(d);
    return rc < 0 ? rc : remove_entry(dir, name, e); /* 1: it has filled again, and is met again */
}

int rmtree_inside(int dir, struct err *e)
{
    struct tree t = { .top = NULL };
    int rc = open_directory(dir, ".", &t.top, e);

    if (rc < 0)
        return rc;
    rc = for_each(&t, t.top, clear_outer, e);
    closedir(t.top);
    return rc;
}

int rmtree_at(int dir, const char *name, struct err *e)
{
    struct tree t = { .top = NULL };
    int rc = remove_entry(dir, name, e);

    if (rc != 1)
        return rc;
    rc = open_directory(dir, name, &t.top, e);
    if (rc < 0)
        return rc;
    rc = for_each(&t, t.top, clear_outer, e);
    closedir(t.top);
    if (rc == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return err_sys(e, errno, "remove directory '%.64s'", name);
    return rc;
}
