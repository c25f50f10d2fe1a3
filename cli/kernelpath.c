#include "kernelpath.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "log.h"

enum { PATH_LIST_MAX = 64 * 1024, DIRS_MAX = 64 /* gateway/rules/kernelspec.c reads so many */ };

static int add_directory(struct buf *out, const char *cwd, struct view dir, struct err *e)
{
    int rc = 0;

    if (dir.n == 0)
        return err_set(e, EINVAL, "option --kernel-path: a directory name is empty");
    if (dir.p[0] != '/')
        rc = buf_addf(out, "%s/", cwd);
    if (rc == 0)
        rc = buf_add_view(out, dir);
    if (rc == 0)
        rc = buf_add_str(out, ":");
    return rc < 0 ? err_set(e, EINVAL, "option --kernel-path: the list is too long") : 0;
}

int kernelpath_complete(const char *given, const char *runtime, char **ret, struct err *e)
{
    autobuf struct buf out;
    char cwd[PATH_MAX];
    unsigned count = 0;
    int rc = 0;

    buf_init(&out, PATH_LIST_MAX);
    if (getcwd(cwd, sizeof cwd) == NULL)
        return err_sys(e, errno, "current directory");
    for (const char *p = given; p != NULL && rc == 0 && *p != '\0';) {
        size_t n = strcspn(p, ":");

        rc = add_directory(&out, cwd, (struct view){ (const uint8_t *)p, n }, e);
        p += n;
        p += *p == ':';
        count++;
    }
    if (rc < 0)
        return rc;
    if (count >= DIRS_MAX)
        return err_set(e, EINVAL, "option --kernel-path: more than %d directories", DIRS_MAX - 1);
    if (strchr(runtime, ':') != NULL)
        return err_set(e, EINVAL, "the runtime's path holds a ':'");
    if (buf_addf(&out, "%s/share/jupyter", runtime) < 0)
        return err_set(e, EINVAL, "option --kernel-path: the list is too long");
    *ret = view_dup(buf_view(&out));
    return 0;
}

/* 1 when a directory of the list has the kernelspec. */
static int has_kernel(const char *list, const char *name, size_t n)
{
    for (const char *p = list; *p != '\0'; p += *p == ':') {
        char path[PATH_MAX];
        size_t dir = strcspn(p, ":");
        int length =
            snprintf(path, sizeof path, "%.*s/kernels/%.*s/kernel.json", (int)dir, p, (int)n, name);

        p += dir;
        if (length < PATH_MAX && access(path, F_OK) == 0)
            return 1;
    }
    return 0;
}

void kernelpath_warn(const char *list, const char *option, const char *names)
{
    for (const char *p = names; p != NULL && *p != '\0'; p += *p == ',') {
        size_t n = strcspn(p, ",");

        if (!has_kernel(list, p, n))
            log_warn("no_kernelspec", "option=--%s name=%.*s", option, (int)n, p);
        p += n;
    }
}

static int has_directory(const char *list, const char *dir, size_t n)
{
    for (const char *p = list; *p != '\0'; p += *p == ':') {
        size_t m = strcspn(p, ":");

        if (m == n && memcmp(p, dir, n) == 0)
            return 1;
        p += m;
    }
    return 0;
}

void kernelpath_warn_of_jupyter(const char *list)
{
    static const char *const names[] = { "JUPYTER_PATH", "JUPYTER_DATA_DIR" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int missed = 0;

        for (const char *p = getenv(names[i]); p != NULL && *p != '\0'; p += *p == ':') {
            size_t n = strcspn(p, ":");

            missed |= n > 0 && !has_directory(list, p, n);
            p += n;
        }
        if (missed)
            log_warn("variable_not_read",
                     "name=%s note=\"kernelspecs are looked for in the runtime and in the "
                     "directories of --kernel-path alone\"",
                     names[i]);
    }
}
