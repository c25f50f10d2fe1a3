#include "cgfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

int cgfile_write(int dirfd, const char *name, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        return -EMSGSIZE;
    autoclose int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    /* One write: the kernel parses each write by itself. */
    ssize_t done = write(fd, text, (size_t)n);
    if (done < 0)
        return -errno;
    return done == n ? 0 : -EIO;
}

int cgfile_read(int dirfd, const char *name, char *ret, size_t size)
{
    autoclose int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    size_t used = 0;

    if (fd < 0)
        return -errno;
    while (used < size - 1) {
        ssize_t n = read(fd, ret + used, size - 1 - used);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        used += (size_t)n;
    }
    ret[used] = '\0';
    return 0;
}

static int parse_u64(const char *text, uint64_t *ret)
{
    char *end;

    if (strncmp(text, "max", 3) == 0) {
        *ret = UINT64_MAX;
        return 0;
    }
    errno = 0;
    uint64_t v = strtoull(text, &end, 10);
    if (errno != 0 || end == text)
        return -EINVAL;
    *ret = v;
    return 0;
}

int cgfile_u64(int dirfd, const char *name, uint64_t *ret)
{
    char text[64];
    int r = cgfile_read(dirfd, name, text, sizeof text);

    return r < 0 ? r : parse_u64(text, ret);
}

int cgfile_find_key(const char *text, const char *key, uint64_t *ret)
{
    size_t n = strlen(key);

    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return parse_u64(line + n + 1, ret);
        line = strchr(line, '\n');
        if (line != NULL)
            line++;
    }
    return -ENOENT;
}

int cgfile_key(int dirfd, const char *name, const char *key, uint64_t *ret)
{
    char text[4096];
    int r = cgfile_read(dirfd, name, text, sizeof text);

    return r < 0 ? r : cgfile_find_key(text, key, ret);
}

int cgfile_open_dir(int dirfd, const char *name, int *ret_fd)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

int cgfile_make_dir(int dirfd, const char *name, int *ret_fd)
{
    if (mkdirat(dirfd, name, 0755) < 0 && errno != EEXIST)
        return -errno;
    return cgfile_open_dir(dirfd, name, ret_fd);
}

/* The list of what is below, with a position of its own; NULL and errno. */
static DIR *list(int dirfd)
{
    autoclose int again = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);

    if (dir != NULL)
        again = -1; /* closedir() closes it */
    return dir;
}

static int is_group(const struct dirent *d)
{
    return d->d_type == DT_DIR && strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

void cgfile_write_below(int dirfd, const char *name, const char *text)
{
    DIR *dir = list(dirfd);
    struct dirent *d;

    while (dir != NULL && (d = readdir(dir)) != NULL) {
        autoclose int fd = -1;

        if (is_group(d) && cgfile_open_dir(dirfd, d->d_name, &fd) == 0)
            (void)!cgfile_write(fd, name, "%s", text);
    }
    if (dir != NULL)
        closedir(dir);
}

int cgfile_remove_below(int dirfd)
{
    DIR *dir = list(dirfd);
    int result = 0;
    struct dirent *d;

    if (dir == NULL)
        return -errno;
    while ((d = readdir(dir)) != NULL) {
        if (!is_group(d))
            continue;
        int r = cgfile_remove_tree(dirfd, d->d_name);
        if (r < 0)
            result = r; /* go on: the others need not wait for this one */
    }
    closedir(dir);
    return result;
}

/* 1 when it is gone, 0 when something is in it: -EBUSY in cgroups, for child groups and processes alike. */
static int remove_one(int dirfd, const char *name)
{
    if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 1;
    return errno == EBUSY || errno == ENOTEMPTY ? 0 : -errno;
}

/* Recursion is as deep as the tree that we built ourselves: nobody else may make groups below it. A group
 * without children needs no descriptor: removing must work when creating failed for want of them. */
int cgfile_remove_tree(int dirfd, const char *name)
{
    autoclose int fd = -1;
    int r = remove_one(dirfd, name);

    if (r != 0)
        return r < 0 ? r : 0;
    r = cgfile_open_dir(dirfd, name, &fd);
    if (r == 0)
        r = cgfile_remove_below(fd);
    if (r < 0)
        return r;
    r = remove_one(dirfd, name);
    return r > 0 ? 0 : r == 0 ? -EBUSY : r;
}

void cgfile_nap(void)
{
    struct timespec t = { .tv_nsec = 10000000 };

    nanosleep(&t, NULL);
}

int cgfile_remove_tree_wait(int dirfd, const char *name)
{
    int r = -EBUSY;

    for (int i = 0; i < 1000 && r == -EBUSY; i++) {
        if (i > 0)
            cgfile_nap();
        r = cgfile_remove_tree(dirfd, name);
    }
    return r;
}
