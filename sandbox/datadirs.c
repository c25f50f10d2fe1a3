#include "datadirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "buf.h"
#include "err.h"
#include "layers.h"

/* mountinfo writes space, tab, newline and backslash of a path as three octal digits. */
static void unescape(char *path)
{
    char *to = path;

    for (const char *p = path; *p != '\0'; p++) {
        unsigned code;

        if (p[0] == '\\' && sscanf(p + 1, "%3o", &code) == 1) {
            *to++ = (char)code;
            p += 3;
        } else {
            *to++ = *p;
        }
    }
    *to = '\0';
}

/* An overlay shows one file system only: where another one is mounted, the empty folder under it. */
static int check_mounts(const char *path, struct err *e)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    autofree char *line = NULL;
    size_t size = 0, n = strlen(path);
    char point[PATH_MAX];
    int r = 0;

    if (f == NULL)
        return err_sys(e, errno, "open /proc/self/mountinfo");
    if (n > 0 && path[n - 1] == '/')
        n--;
    while (r == 0 && getline(&line, &size, f) > 0) {
        if (sscanf(line, "%*d %*d %*s %*s %4095s", point) != 1)
            continue;
        unescape(point);
        if (strncmp(point, path, n) == 0 && point[n] == '/' && point[n + 1] != '\0')
            r = err_set(e, EXDEV,
                        "%.80s is a mount of its own, which sessions would not see: give it a "
                        "name of its own",
                        point);
    }
    fclose(f);
    return r;
}

static int open_dir(const char *path, int *ret_fd, struct err *e)
{
    char real[PATH_MAX];

    if (realpath(path, real) == NULL)
        return err_sys(e, errno, "'%.100s'", path);
    int fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "'%.100s'", path);
    int r = check_mounts(real, e);
    if (r < 0)
        close(fd);
    else
        *ret_fd = fd;
    return r;
}

static int add(struct datadirs *d, const struct namedpath *entry, const struct layers *layers,
               struct err *e)
{
    autoclose int fd = -1;
    autoclose int tried = -1;
    uint32_t bit;

    if (datadirs_bit(d, view_cstr(entry->name), &bit) == 0)
        return err_set(e, EINVAL, "the name is there twice");
    if (d->count == NAMEDPATH_MAX)
        return err_set(e, E2BIG, "there are more than %d directories", NAMEDPATH_MAX);
    int r = open_dir(entry->path, &fd, e);
    if (r < 0)
        return r;
    d->dir[d->count].fd = fd;
    snprintf(d->dir[d->count].target, sizeof d->dir[d->count].target, "data/%s", entry->name);
    r = datadirs_mount(d, d->count, layers, &tried, e);
    if (r < 0)
        return r;
    (void)take_fd(&fd);
    d->count++;
    return 0;
}

int datadirs_open(const char *list, const struct layers *layers, struct datadirs *d, struct err *e)
{
    struct datadirs opened = { 0 };
    struct namedpath entry;
    int r = 1;

    while (r > 0 && (r = namedpath_next(&list, &entry, e)) > 0) {
        int added = add(&opened, &entry, layers, e);

        if (added < 0) {
            err_wrap(e, "%s", entry.name);
            r = added;
        }
    }
    if (r < 0) {
        datadirs_close(&opened);
        return r;
    }
    datadirs_close(d);
    *d = opened;
    return 0;
}

void datadirs_close(struct datadirs *d)
{
    for (unsigned i = 0; i < d->count; i++)
        close(d->dir[i].fd);
    d->count = 0;
}

int datadirs_bit(const struct datadirs *d, struct view name, uint32_t *ret)
{
    for (unsigned i = 0; i < d->count; i++) {
        if (view_equals(name, d->dir[i].target + strlen("data/"))) {
            *ret = UINT32_C(1) << i;
            return 0;
        }
    }
    return -ENOENT;
}

uint32_t datadirs_all(const struct datadirs *d)
{
    return d->count < 32 ? (UINT32_C(1) << d->count) - 1 : UINT32_MAX;
}

int datadirs_mount(const struct datadirs *d, unsigned i, const struct layers *layers, int *ret_fd,
                   struct err *e)
{
    return layers_cover(layers, "data", d->dir[i].fd, MOUNT_ATTR_NOEXEC, ret_fd, e);
}
