#include "kernelspec.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "buf.h"
#include "cull.h"
#include "err.h"
#include "log.h"

enum {
    SPEC_FILE_MAX = 64 * 1024,
    NAME_MAX_BYTES = 127, /* LAUNCH_NAME_MAX less its NUL */
    DIRS_MAX = 64,
    SPECS_MAX = 1024, /* of one directory */
    RESOURCES_MAX = 64,
    CULL_SECONDS_MAX = 366 * 86400,
};

struct kernelspecs {
    char *dirs[DIRS_MAX]; /* owned */
    unsigned count;
    char *allowed;      /* owned: comma list, or NULL */
    char *default_name; /* owned */
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

/* Regular, not through a link of the last component, at most SPEC_FILE_MAX bytes. */
static json_t *load_json(int dir_fd)
{
    autoclose int fd = openat(dir_fd, "kernel.json", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    json_error_t je;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > SPEC_FILE_MAX)
        return NULL;
    autofree char *text = malloc(SPEC_FILE_MAX + 1);
    size_t n = 0;
    ssize_t got = 0;
    while (text != NULL && n <= SPEC_FILE_MAX &&
           (got = read(fd, text + n, SPEC_FILE_MAX + 1 - n)) > 0)
        n += (size_t)got;
    if (text == NULL || got < 0 || n > SPEC_FILE_MAX)
        return NULL;
    return json_loadb(text, n, 0, &je);
}

static int all_strings(const json_t *a)
{
    size_t i;
    json_t *v;

    json_array_foreach(a, i, v)
    {
        if (!json_is_string(v))
            return 0;
    }
    return 1;
}

/* Clients rely on every key; a value of the wrong kind counts as absent. An
 * environment with values that are no strings loses those. */
static int complete(json_t *spec, const char *name)
{
    static const char *const texts[][2] = { { "display_name", NULL },
                                            { "language", "" },
                                            { "interrupt_mode", "signal" } };
    json_t *argv = json_object_get(spec, "argv");
    const char *key;
    json_t *value;
    void *next;

    if (!json_is_object(spec) || !json_is_array(argv) || json_array_size(argv) == 0 ||
        !all_strings(argv))
        return 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!json_is_string(json_object_get(spec, texts[i][0])))
            json_object_set_new(spec, texts[i][0],
                                json_string(texts[i][1] != NULL ? texts[i][1] : name));
    }
    if (!json_is_object(json_object_get(spec, "env")))
        json_object_set_new(spec, "env", json_object());
    if (!json_is_object(json_object_get(spec, "metadata")))
        json_object_set_new(spec, "metadata", json_object());
    json_object_foreach_safe(json_object_get(spec, "env"), next, key, value)
    {
        if (!json_is_string(value))
            json_object_del(json_object_get(spec, "env"), key);
    }
    return 1;
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

/* The spec in directory `name` below kernels_fd, or NULL when it is none. */
static struct kernelspec *load(const struct kernelspecs *k, unsigned dir, int kernels_fd,
                               const char *name)
{
    autoclose int fd = openat(kernels_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    json_t *spec = fd >= 0 ? load_json(fd) : NULL;

    if (spec == NULL || !complete(spec, name)) {
        json_decref(spec);
        return NULL;
    }
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

/* What is there and may not be read: by its mode, or since it is a link out of the directory,
 * which the guard does not let us follow (guard.h). */
static void warn_of_specs(const struct kernelspecs *k, unsigned dir)
{
    autoclose int kernels_fd = open_kernels(k, dir);
    autofree char **names = kernels_fd >= 0 ? xcalloc(SPECS_MAX, sizeof *names) : NULL;
    size_t count = kernels_fd >= 0 ? list_names(kernels_fd, names) : 0;
    char text[512], path[NAME_MAX_BYTES + 16];

    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/kernel.json", names[i]);
        autoclose int fd = openat(kernels_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 && errno == EACCES)
            log_warn("kernelspec_unreadable",
                     "dir=%s name=%s hint=\"its kernel.json must be readable for everybody and lie "
                     "below that directory, also when it is a link\"",
                     log_escape(k->dirs[dir], strlen(k->dirs[dir]), text, sizeof text), names[i]);
        free(names[i]);
    }
}

void kernelspecs_warn(const struct kernelspecs *k)
{
    char text[512];

    for (unsigned i = 0; i < k->count; i++) {
        int code = unreadable(k, i);
        if (code != 0)
            log_warn("kernel_path_unreadable",
                     "dir=%s error=\"%s\" hint=\"the gateway's user must be able to list its "
                     "kernels folder\"",
                     log_escape(k->dirs[i], strlen(k->dirs[i]), text, sizeof text), strerror(code));
        else
            warn_of_specs(k, i);
    }
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
            s = load(k, dir, fd, names[i]);
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

int kernelspecs_find(const struct kernelspecs *k, const char *name, struct kernelspec **ret,
                     struct err *e)
{
    struct found f = { 0 };

    for (unsigned i = 0; is_name(name) && i < k->count && f.count == 0; i++)
        scan(k, i, name, &f);
    if (f.count == 0)
        return err_set(e, ENOENT, "Kernel spec %.128s not found%s", name, not_read(k));
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
