#include "kernelspec.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "buf.h"
#include "cull.h"
#include "err.h"
#include "log.h"
#include "specfile.h"
#include "specnews.h"

enum {
    NAME_MAX_BYTES = 127, /* LAUNCH_NAME_MAX less its NUL */
    DIRS_MAX = 64,
    SPECS_MAX = 1024, /* of one directory */
    RESOURCES_MAX = 64,
    CULL_SECONDS_MAX = 366 * 86400,
};

struct kernelspecs {
    char *dirs[DIRS_MAX]; /* owned */
    unsigned count;
    char *allowed;         /* owned: comma list, or NULL */
    char *default_name;    /* owned */
    struct specnews *news; /* owned; NULL: nothing is told */
};

struct kernelspec *kernelspec_free(struct kernelspec *s)
{
    if (s == NULL)
        return NULL;
    free(s->name);
    free(s->path);
    json_decref(s->spec);
    for (size_t i = 0; s->resources != NULL && s->resources[i] != NULL; i++)
        free(s->resources[i]);
    free(s->resources);
    free(s);
    return NULL;
}

struct kernelspecs *kernelspecs_new(const char *dirs, const char *allowed, const char *default_name)
{
    struct kernelspecs *k = xcalloc(1, sizeof *k);

    /* An empty item keeps its index: the launcher counts the same list. */
    while (dirs != NULL && k->count < DIRS_MAX) {
        size_t n = strcspn(dirs, ":");
        k->dirs[k->count++] = view_dup((struct view){ (const uint8_t *)dirs, n });
        dirs = dirs[n] == ':' ? dirs + n + 1 : NULL;
    }
    k->allowed = allowed != NULL && *allowed != '\0' ? xstrdup(allowed) : NULL;
    k->default_name = xstrdup(default_name != NULL ? default_name : "python3");
    return k;
}

struct kernelspecs *kernelspecs_free(struct kernelspecs *k)
{
    if (k == NULL)
        return NULL;
    for (unsigned i = 0; i < k->count; i++)
        free(k->dirs[i]);
    free(k->allowed);
    free(k->default_name);
    specnews_free(k->news);
    free(k);
    return NULL;
}

const char *kernelspecs_default(const struct kernelspecs *k)
{
    return k->default_name;
}

static int is_name(const char *name)
{
    size_t n = strlen(name);

    if (n == 0 || n > NAME_MAX_BYTES || name[0] == '.')
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)name[i]) && strchr("._-", name[i]) == NULL)
            return 0;
    }
    return 1;
}

static int is_allowed(const struct kernelspecs *k, const char *name)
{
    const char *at = k->allowed;
    size_t len = strlen(name);

    if (at == NULL)
        return 1;
    while (*at != '\0') {
        at += strspn(at, ", ");
        size_t n = strcspn(at, ", ");
        if (n == len && n > 0 && strncasecmp(at, name, n) == 0)
            return 1;
        at += n;
    }
    return 0;
}

static int is_resource(const char *name)
{
    return strncmp(name, "logo-", 5) == 0 || strcmp(name, "kernel.js") == 0 ||
           strcmp(name, "kernel.css") == 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char **list_resources(int dir_fd)
{
    char **out = xcalloc(RESOURCES_MAX + 1, sizeof *out);
    size_t count = 0;
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (d == NULL) {
        closep(&fd);
        return out;
    }
    for (struct dirent *e; count < RESOURCES_MAX && (e = readdir(d)) != NULL;) {
        if (is_name(e->d_name) && is_resource(e->d_name))
            out[count++] = xstrdup(e->d_name);
    }
    closedir(d);
    qsort(out, count, sizeof *out, by_text);
    return out;
}

/* A number of seconds; everything else, and a time below 0, counts as not given. */
static uint64_t cull_time(const json_t *seconds)
{
    double s = json_is_number(seconds) ? json_number_value(seconds) : -1;

    return s >= 0 && s <= CULL_SECONDS_MAX ? (uint64_t)(s * 1000) : CULL_UNSET;
}

/* The spec in directory `name` below kernels_fd, or NULL when it is none; *ret_unusable: 1 when it was meant as one. */
static struct kernelspec *load(const struct kernelspecs *k, unsigned dir, int kernels_fd,
                               const char *name, int *ret_unusable)
{
    autoclose int fd = openat(kernels_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    json_t *spec = NULL;
    struct err e = { 0 };
    int rc = specfile_read(kernels_fd, name, &spec, &e);

    if (rc < 0 && rc != -ENOENT) {
        specnews_bad(k->news, k->dirs[dir], name, &e);
        *ret_unusable = 1;
    } else {
        specnews_good(k->news, k->dirs[dir], name);
    }
    if (rc < 0)
        return NULL;
    struct kernelspec *s = xcalloc(1, sizeof *s);
    const json_t *ours = json_object_get(json_object_get(spec, "metadata"), "holdcell");
    const char *sockets = json_string_value(json_object_get(ours, "sockets"));
    const char *mode = json_string_value(json_object_get(spec, "interrupt_mode"));
    s->name = xstrdup(name);
    s->dir = dir;
    s->spec = spec;
    s->sockets_fd = sockets != NULL && strcmp(sockets, "fds") == 0;
    s->interrupt_by_message = strcmp(mode, "message") == 0;
    s->cull_ms = cull_time(json_object_get(json_object_get(spec, "metadata"), "cull_idle_timeout"));
    s->resources = list_resources(fd);
    if (asprintf(&s->path, "%s/kernels/%s", k->dirs[dir], name) < 0)
        check_failed("memory", __func__, __FILE__, __LINE__);
    return s;
}

static int open_kernels(const struct kernelspecs *k, unsigned dir)
{
    autofree char *path = NULL;

    if (k->dirs[dir][0] == '\0' || asprintf(&path, "%s/kernels", k->dirs[dir]) < 0)
        return -ENOENT;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* The errno value of a directory that is there and cannot be read, else 0. */
static int unreadable(const struct kernelspecs *k, unsigned dir)
{
    autoclose int fd = open_kernels(k, dir);

    return fd < 0 && fd != -ENOENT ? -fd : 0;
}

/* Names in one directory, sorted, so that two spellings of one name are decided
 * the same way each time. */
static size_t list_names(int kernels_fd, char **out)
{
    int fd = fcntl(kernels_fd, F_DUPFD_CLOEXEC, 0);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    size_t count = 0;

    if (d == NULL) {
        closep(&fd);
        return 0;
    }
    rewinddir(d);
    for (struct dirent *e; count < SPECS_MAX && (e = readdir(d)) != NULL;) {
        if (is_name(e->d_name))
            out[count++] = xstrdup(e->d_name);
    }
    closedir(d);
    qsort(out, count, sizeof *out, by_text);
    return count;
}

/* Tells a client that the name may be in a place that only the operator can open up;
 * where that is on the host is for the log. */
static const char *not_read(const struct kernelspecs *k)
{
    for (unsigned i = 0; i < k->count; i++) {
        if (unreadable(k, i) != 0)
            return " (a directory of the kernel path could not be read: see the server's log)";
    }
    return "";
}

struct found {
    struct kernelspec **list; /* owned */
    size_t count, room;
    int unusable; /* something of a name that was asked for is no kernelspec */
};

static int has(const struct found *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++) {
        if (strcasecmp(f->list[i]->name, name) == 0)
            return 1;
    }
    return 0;
}

/* Adds what one directory has and those before it had not. only: NULL, or the
 * one name that is wanted. */
static void scan(const struct kernelspecs *k, unsigned dir, const char *only, struct found *f)
{
    autoclose int fd = open_kernels(k, dir);
    autofree char **names = fd >= 0 ? xcalloc(SPECS_MAX, sizeof *names) : NULL;
    size_t count = fd >= 0 ? list_names(fd, names) : 0;

    for (size_t i = 0; i < count; i++) {
        struct kernelspec *s = NULL;
        if ((only == NULL || strcasecmp(names[i], only) == 0) && is_allowed(k, names[i]) &&
            !has(f, names[i]))
            s = load(k, dir, fd, names[i], &f->unusable);
        free(names[i]);
        if (s == NULL)
            continue;
        if (f->count == f->room) {
            f->room = f->room > 0 ? 2 * f->room : 16;
            f->list = realloc(f->list, f->room * sizeof *f->list);
            check(f->list != NULL);
        }
        f->list[f->count++] = s;
    }
}

#define UNUSABLE " (there is one that cannot be used: see the server's log)"

int kernelspecs_find(const struct kernelspecs *k, const char *name, struct kernelspec **ret,
                     struct err *e)
{
    struct found f = { 0 };

    for (unsigned i = 0; is_name(name) && i < k->count && f.count == 0; i++)
        scan(k, i, name, &f);
    if (f.count == 0)
        return err_set(e, ENOENT, "Kernel spec %.128s not found%s", name,
                       f.unusable ? UNUSABLE : not_read(k));
    /* Two spellings of one name in one directory: the first in order. */
    *ret = f.list[0];
    for (size_t i = 1; i < f.count; i++)
        f.list[i] = kernelspec_free(f.list[i]);
    free(f.list);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcasecmp((*(struct kernelspec *const *)a)->name,
                      (*(struct kernelspec *const *)b)->name);
}

int kernelspecs_list(const struct kernelspecs *k, struct kernelspec ***ret, struct err *e)
{
    struct found f = { 0 };

    (void)e;
    for (unsigned i = 0; i < k->count; i++)
        scan(k, i, NULL, &f);
    if (f.count > 0)
        qsort(f.list, f.count, sizeof *f.list, by_name);
    *ret = f.list;
    return (int)f.count;
}

static void warn_of_directory(const struct kernelspecs *k, unsigned dir)
{
    autoclose int fd = open_kernels(k, dir);
    char text[512];

    log_escape(k->dirs[dir], strlen(k->dirs[dir]), text, sizeof text);
    if (fd == -ENOENT)
        log_warn("kernel_path_missing",
                 "dir=%s note=\"there is no kernels folder in it; what comes later is found\"",
                 text);
    else if (fd < 0)
        log_warn("kernel_path_unreadable",
                 "dir=%s error=\"%s\" hint=\"the gateway's user must be able to list its "
                 "kernels folder\"",
                 text, strerror(-fd));
}

/* A name that no client could ask for, which somebody gave a kernelspec all the same. */
static void warn_of_names(const struct kernelspecs *k, unsigned dir)
{
    const struct err e = { EINVAL, "the name of its directory may have A-Z a-z 0-9 . _ - alone" };
    int fd = open_kernels(k, dir);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct stat st;
    char path[NAME_MAX + sizeof "/kernel.json"];

    if (d == NULL) {
        closep(&fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/kernel.json", entry->d_name);
        if (entry->d_name[0] != '.' && !is_name(entry->d_name) &&
            fstatat(dirfd(d), path, &st, 0) == 0)
            specnews_bad(k->news, k->dirs[dir], entry->d_name, &e);
    }
    closedir(d);
}

void kernelspecs_warn(struct kernelspecs *k)
{
    struct found f = { 0 };

    if (k->news == NULL)
        k->news = specnews_new();
    for (unsigned i = 0; i < k->count; i++) {
        warn_of_directory(k, i);
        warn_of_names(k, i);
        scan(k, i, NULL, &f);
    }
    for (size_t i = 0; i < f.count; i++)
        kernelspec_free(f.list[i]);
    free(f.list);
}
