#include "siblings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "err.h"

static int find_program(const char *dir, const char *name, char out[PATH_MAX], struct err *e)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);

    if (n >= PATH_MAX)
        return err_set(e, ENAMETOOLONG, "directory of the programs");
    if (access(out, X_OK) < 0)
        return err_sys(e, errno, "program '%s' of this build is missing", out);
    return 0;
}

/* A runtime has an interpreter and kernelspecs. */
static int is_runtime(const char *path)
{
    char part[PATH_MAX + 32];
    struct stat st;

    snprintf(part, sizeof part, "%s/bin/python3", path);
    if (stat(part, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    snprintf(part, sizeof part, "%s/share/jupyter/kernels", path);
    return stat(part, &st) == 0 && S_ISDIR(st.st_mode);
}

static int find_runtime(const char *option, const char *bin, char out[PATH_MAX], struct err *e)
{
    char beside[PATH_MAX];
    int n = snprintf(beside, sizeof beside, "%s/../runtime", bin);
    const char *places[] = { n < PATH_MAX ? beside : bin, "/opt/holdcell/runtime/current" };

    if (option != NULL && *option != '\0') {
        if (!is_runtime(option))
            return err_set(e, ENOENT,
                           "option --runtime: no runtime at '%.120s' (bin/python3, "
                           "share/jupyter/kernels)",
                           option);
        return realpath(option, out) != NULL ? 0 : err_sys(e, errno, "runtime '%.120s'", option);
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (is_runtime(places[i]) && realpath(places[i], out) != NULL)
            return 0;
    }
    return err_set(e, ENOENT,
                   "no Python runtime for kernels: run ./quickstart.sh or runtime/build.sh, or "
                   "name one by --runtime");
}

static int find_directory(char bin[PATH_MAX], struct err *e)
{
    ssize_t n = readlink("/proc/self/exe", bin, PATH_MAX - 1);

    if (n < 0)
        return err_sys(e, errno, "read /proc/self/exe");
    bin[n] = '\0';
    return 0;
}

static int cut_name(char bin[PATH_MAX], struct err *e)
{
    char *slash = strrchr(bin, '/');

    if (slash == NULL || slash == bin)
        return err_set(e, ENOENT, "cannot tell the directory of '%.120s'", bin);
    *slash = '\0';
    return 0;
}

int siblings_programs(struct siblings *ret, struct err *e)
{
    char bin[PATH_MAX];
    const char *stand_in = getenv("HOLDCELL_GATEWAY");
    int rc = find_directory(bin, e);

    if (rc < 0)
        return rc;
    snprintf(ret->gateway, sizeof ret->gateway, "%s", stand_in != NULL ? stand_in : bin);
    rc = cut_name(bin, e);
    if (rc == 0)
        rc = find_program(bin, "holdcell-launcher", ret->launcher, e);
    return rc < 0 ? rc : find_program(bin, "holdcell-init", ret->init, e);
}

int siblings_runtime(const char *option, struct siblings *ret, struct err *e)
{
    char bin[PATH_MAX];
    int rc = find_directory(bin, e);

    if (rc == 0)
        rc = cut_name(bin, e);
    return rc < 0 ? rc : find_runtime(option, bin, ret->runtime, e);
}

int siblings_find(const char *runtime, struct siblings *ret, struct err *e)
{
    int rc = siblings_programs(ret, e);

    return rc < 0 ? rc : siblings_runtime(runtime, ret, e);
}
