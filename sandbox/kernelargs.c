#include "kernelargs.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "buf.h"
#include "err.h"

enum {
    ARGUMENT_MAX = 64 * 1024, /* of one argument: it may name a placeholder more than once */
    ARGUMENTS_MAX = 1024,
};

struct placeholder {
    const char *name, *value;
};

/* The value for the placeholder that starts at p, and the length of its name; NULL for none. */
static const char *find_value(const char *p, const struct placeholder *all, size_t *ret_length)
{
    for (; all->name != NULL; all++) {
        size_t n = strlen(all->name);

        if (strncmp(p, all->name, n) == 0) {
            *ret_length = n;
            return all->value;
        }
    }
    return NULL;
}

static int fill_one(const char *arg, const struct placeholder *all, char **ret, struct err *e)
{
    autobuf struct buf b;
    int r = 0;

    buf_init(&b, ARGUMENT_MAX);
    while (r == 0 && *arg != '\0') {
        size_t n = 1;
        const char *value = find_value(arg, all, &n);

        r = value != NULL ? buf_add_str(&b, value) : buf_add(&b, arg, 1);
        arg += n;
    }
    if (r < 0)
        return err_set(e, E2BIG, "an argument of the kernel is too long");
    *ret = view_dup(buf_view(&b));
    return 0;
}

int kernelargs_fill(char *const *argv, const char *connection_file, const char *resource_dir,
                    char ***ret, struct err *e)
{
    const struct placeholder all[] = { { "{connection_file}", connection_file },
                                       { "{resource_dir}", resource_dir },
                                       { NULL, NULL } };
    size_t count = 0;

    while (argv[count] != NULL)
        count++;
    if (count == 0 || count > ARGUMENTS_MAX)
        return err_set(e, EINVAL, "a kernel with %zu arguments", count);
    char **filled = xcalloc(count + 1, sizeof *filled);
    for (size_t i = 0; i < count; i++) {
        int r = fill_one(argv[i], all, &filled[i], e);

        if (r < 0) {
            kernelargs_free(filled);
            return r;
        }
    }
    *ret = filled;
    return 0;
}

char **kernelargs_free(char **argv)
{
    for (char **p = argv; p != NULL && *p != NULL; p++)
        free(*p);
    free(argv);
    return NULL;
}

static const char *path_of(char *const *env)
{
    for (; *env != NULL; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return "/usr/bin:/bin";
}

/* execvp's rules: what is missing or forbidden in one folder may be right in the next, and EACCES is
 * told in the end when nothing better was found. */
static int try_folder(const char *folder, size_t n, char *const *argv, char *const *env)
{
    char path[PATH_MAX];
    size_t name = strlen(argv[0]);

    if (n == 0) { /* an empty element means the working directory */
        folder = ".";
        n = 1;
    }
    if (n + 1 + name >= sizeof path)
        return -ENAMETOOLONG;
    memcpy(path, folder, n);
    path[n] = '/';
    memcpy(path + n + 1, argv[0], name + 1);
    execve(path, argv, env);
    return -errno;
}

int kernelargs_exec(char *const *argv, char *const *env, struct err *e)
{
    const char *p = path_of(env);
    int r = -ENOENT;

    if (strchr(argv[0], '/') != NULL) {
        execve(argv[0], argv, env);
        /* It may well be there on the host, where who wrote the kernelspec sees it. */
        if (errno == ENOENT)
            return err_set(e, ENOENT,
                           "exec '%s': it, or what interprets it, is not in the sandbox, which has "
                           "/usr, the runtime and {resource_dir}, the kernelspec's directory",
                           argv[0]);
        return err_sys(e, errno, "exec '%s'", argv[0]);
    }
    for (;;) {
        size_t n = strcspn(p, ":");
        int one = try_folder(p, n, argv, env);

        if (one == -EACCES)
            r = one;
        else if (one != -ENOENT && one != -ENOTDIR && one != -ENAMETOOLONG)
            return err_sys(e, -one, "exec '%s'", argv[0]);
        if (p[n] == '\0')
            return err_sys(e, -r, "find '%s' in PATH", argv[0]);
        p += n + 1;
    }
}
