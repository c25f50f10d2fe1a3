#include "kernelpath.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "buf.h"
#include "err.h"

enum { PATH_LIST_MAX = 64 * 1024, DIRS_MAX = 255 }; /* launch_start.spec_dir */

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
