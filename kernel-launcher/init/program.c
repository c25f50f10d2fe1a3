#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "request.h"

static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

static const char *path_of(char *const *env)
{
    for (; *env != NULL; env++) {
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    }
    return default_path;
}

/* As execvp(3) searches, but in the PATH of the new environment, not of ours. */
static int search_and_exec(char *const *argv, char *const *env)
{
    char file[INIT_PATH_MAX + 1];
    int code = ENOENT;

    for (const char *dir = path_of(env), *end; dir != NULL; dir = *end == ':' ? end + 1 : NULL) {
        int n;

        end = dir + strcspn(dir, ":");
        n = snprintf(file, sizeof file, "%.*s%s%s", (int)(end - dir), dir, end == dir ? "" : "/",
                     argv[0]);
        if (n < 0 || n >= (int)sizeof file)
            continue;
        execve(file, argv, env);
        if (errno == EACCES)
            code = EACCES; /* kept: found, but not to be run */
        else if (errno != ENOENT && errno != ENOTDIR)
            return errno;
    }
    return code;
}

static int exec_strings(char *const *argv, char *const *env)
{
    if (argv[0][0] == '\0')
        return ENOENT;
    if (strchr(argv[0], '/') == NULL)
        return search_and_exec(argv, env);
    execve(argv[0], argv, env);
    return errno;
}

int program_exec(const struct init_spawn *spawn, struct err *e)
{
    int argc = msg_strings_count(spawn->argv, REQUEST_STRINGS_MAX, e);
    int envc = msg_strings_count(spawn->env, REQUEST_STRINGS_MAX, e);
    autofree char **argv = NULL;
    autofree char **env = NULL;
    char cwd[INIT_PATH_MAX + 1];

    if (argc < 1 || envc < 0)
        return err_set(e, EINVAL, "argv or environment");
    argv = xcalloc((size_t)argc + 1, sizeof *argv);
    env = xcalloc((size_t)envc + 1, sizeof *env);
    msg_strings_split(spawn->argv, argv, (unsigned)argc);
    msg_strings_split(spawn->env, env, (unsigned)envc);
    if (spawn->cwd.n > 0) {
        memcpy(cwd, spawn->cwd.p, spawn->cwd.n);
        cwd[spawn->cwd.n] = '\0';
        if (chdir(cwd) < 0)
            return err_sys(e, errno, "working directory");
    }
    return err_sys(e, exec_strings(argv, env), "exec");
}
