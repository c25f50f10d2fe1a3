#include "kernelenv.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "launchmsg.h"
#include "msgcodec.h"

#define HOME "/home/user"

enum { VARS_MAX = LAUNCH_STRINGS_MAX };

struct vars {
    char *list[VARS_MAX]; /* owned, "NAME=value" */
    unsigned count;
};

static size_t name_length(const char *var)
{
    return strcspn(var, "=");
}

static char **find(struct vars *v, const char *name, size_t n)
{
    for (unsigned i = 0; i < v->count; i++) {
        if (strncmp(v->list[i], name, n) == 0 && v->list[i][n] == '=')
            return &v->list[i];
    }
    return NULL;
}

static int put(struct vars *v, const char *name, size_t n, struct view value, struct err *e)
{
    char *text = xcalloc(1, n + 1 + value.n + 1);

    memcpy(text, name, n);
    text[n] = '=';
    if (value.n > 0)
        memcpy(text + n + 1, value.p, value.n);
    char **old = find(v, name, n);
    if (old == NULL && v->count == VARS_MAX) {
        free(text);
        return err_set(e, EMSGSIZE, "more than %d environment variables", VARS_MAX);
    }
    if (old == NULL)
        old = &v->list[v->count++];
    else
        free(*old);
    *old = text;
    return 0;
}

static int set(struct vars *v, const char *name, const char *value, struct err *e)
{
    return put(v, name, strlen(name), view_cstr(value), e);
}

static int in_list(const char *list, const char *name, size_t n)
{
    while (list != NULL && *list != '\0') {
        size_t m = strcspn(list, ",");
        const char *item = list;
        size_t k = m;
        while (k > 0 && *item == ' ') {
            item++;
            k--;
        }
        while (k > 0 && item[k - 1] == ' ')
            k--;
        if (k == n && strncmp(item, name, n) == 0)
            return 1;
        list += m;
        list += *list == ',';
    }
    return 0;
}

static int is_prefix(const char *prefix, const char *name, size_t n)
{
    size_t m = strlen(prefix);

    return n >= m && strncmp(name, prefix, m) == 0;
}

/* What decides which code runs is never a client's to say, allow-list or not. */
static int is_refused(const char *name, size_t n)
{
    return is_prefix("LD_", name, n) || is_prefix("PYTHON", name, n) ||
           (n == 4 && strncmp(name, "PATH", 4) == 0);
}

static int check_var(const char *var, struct err *e)
{
    size_t n = name_length(var);
    char shown[64];

    snprintf(shown, sizeof shown, "%.*s", (int)(n < 60 ? n : 60), var);
    if (n == 0 || var[n] != '=' || isdigit((unsigned char)var[0]))
        return err_set(e, EINVAL, "env: '%s' is no name of a variable", shown);
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)var[i]) && var[i] != '_')
            return err_set(e, EINVAL, "env: '%s' is no name of a variable", shown);
    }
    if (strlen(var + n + 1) > KERNELENV_VALUE_MAX)
        return err_set(e, EINVAL, "env: the value of '%s' is longer than %d bytes", shown,
                       KERNELENV_VALUE_MAX);
    return 0;
}

static int passes(const struct kernelenv *k, const char *var)
{
    size_t n = name_length(var);

    return !is_refused(var, n) && (is_prefix("KERNEL_", var, n) || in_list(k->allow, var, n));
}

static int is_session(const char *var)
{
    return is_prefix(KERNELENV_SESSION "=", var, strlen(var));
}

/* Replaces $NAME and ${NAME} by what is set so far; unknown ones stay as they are. */
static int expand(struct vars *v, const char *value, struct buf *out)
{
    int rc = 0;

    while (rc == 0 && *value != '\0') {
        size_t plain = strcspn(value, "$");
        rc = buf_add(out, value, plain);
        value += plain;
        if (rc < 0 || *value == '\0')
            break;
        const char *name = value + 1 + (value[1] == '{');
        size_t n = 0;
        while (isalnum((unsigned char)name[n]) || name[n] == '_')
            n++;
        size_t whole = (size_t)(name - value) + n + (value[1] == '{');
        char **known = n > 0 && (value[1] != '{' || name[n] == '}') ? find(v, name, n) : NULL;
        if (known != NULL) {
            rc = buf_add_str(out, *known + n + 1);
            value += whole;
        } else {
            rc = buf_add(out, "$", 1);
            value++;
        }
    }
    return rc;
}

static int set_base(const struct kernelenv *k, struct vars *v, struct err *e)
{
    autobuf struct buf path = { 0 };
    char cores[16];

    buf_init(&path, LAUNCH_PATH_MAX);
    int rc = 0;
    if (k->runtime != NULL && *k->runtime != '\0')
        rc = buf_addf(&path, "%s/bin:", k->runtime);
    if (rc == 0)
        rc = buf_add_str(&path, "/usr/local/bin:/usr/bin:/bin");
    if (rc < 0)
        return err_set(e, -rc, "the runtime's path is too long");
    snprintf(cores, sizeof cores, "%u", k->cores > 0 ? k->cores : 1);
    rc = put(v, "PATH", 4, buf_view(&path), e);
    const char *const fixed[][2] = {
        { "HOME", HOME },
        { "USER", "user" },
        { "LOGNAME", "user" },
        { "SHELL", "/bin/sh" },
        { "LANG", "C.UTF-8" },
        { "TMPDIR", "/tmp" },
        { "MPLBACKEND", "module://matplotlib_inline.backend_inline" },
        { "PYTHONDONTWRITEBYTECODE", "1" },
        { "OPENBLAS_NUM_THREADS", cores },
        { "OMP_NUM_THREADS", cores },
        { "MKL_NUM_THREADS", cores },
    };
    for (size_t i = 0; rc == 0 && i < sizeof fixed / sizeof fixed[0]; i++)
        rc = set(v, fixed[i][0], fixed[i][1], e);
    for (size_t i = 0; rc == 0 && k->server != NULL && k->server[i] != NULL; i++) {
        size_t n = name_length(k->server[i]);
        if (k->server[i][n] == '=')
            rc = put(v, k->server[i], n, view_cstr(k->server[i] + n + 1), e);
    }
    return rc;
}

static int set_request(const struct kernelenv *k, struct vars *v, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && k->request != NULL && k->request[i] != NULL; i++) {
        const char *var = k->request[i];
        rc = check_var(var, e);
        size_t n = name_length(var);
        if (rc == 0 && (passes(k, var) || is_session(var)))
            rc = put(v, var, n, view_cstr(var + n + 1), e);
    }
    return rc;
}

static int set_spec(const struct kernelenv *k, struct vars *v, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && k->spec != NULL && k->spec[i] != NULL; i++) {
        autobuf struct buf value = { 0 };
        size_t n = name_length(k->spec[i]);
        if (k->spec[i][n] != '=')
            continue;
        buf_init(&value, LAUNCH_ENV_MAX);
        if (expand(v, k->spec[i] + n + 1, &value) < 0)
            return err_set(e, EMSGSIZE, "the kernelspec's environment is too large");
        rc = put(v, k->spec[i], n, buf_view(&value), e);
    }
    return rc;
}

int kernelenv_build(const struct kernelenv *k, struct buf *out, struct err *e)
{
    struct vars *v = xcalloc(1, sizeof *v);
    int rc = set_base(k, v, e);

    if (rc == 0)
        rc = set_request(k, v, e);
    /* After the request: a client cannot pretend to be elsewhere. */
    if (rc == 0)
        rc = set(v, "KERNEL_GATEWAY", "1", e);
    if (rc == 0)
        rc = set_spec(k, v, e);
    for (unsigned i = 0; rc == 0 && i < v->count; i++) {
        if (msg_strings_add(out, v->list[i]) < 0)
            rc = err_set(e, EMSGSIZE, "the environment is larger than %d bytes", LAUNCH_ENV_MAX);
    }
    for (unsigned i = 0; i < v->count; i++)
        free(v->list[i]);
    free(v);
    return rc;
}

int kernelenv_filter(const struct kernelenv *k, struct buf *out, struct err *e)
{
    for (size_t i = 0; k->request != NULL && k->request[i] != NULL; i++) {
        int rc = check_var(k->request[i], e);
        if (rc < 0)
            return rc;
        if (passes(k, k->request[i]) && msg_strings_add(out, k->request[i]) < 0)
            return err_set(e, EINVAL, "env: larger than %d bytes in all", LAUNCH_ENV_MAX);
    }
    return 0;
}

int kernelenv_set_session(struct buf *strings, const char *name, struct err *e)
{
    autobuf struct buf out = { 0 };
    autofree char *var = NULL;
    size_t at = 0;

    if (asprintf(&var, "%s=%s", KERNELENV_SESSION, name) < 0)
        return err_set(e, ENOMEM, "no memory for the environment");
    buf_init(&out, LAUNCH_ENV_MAX);
    int rc = 0;
    for (struct view all = buf_view(strings); rc == 0 && at < all.n;) {
        const char *old = (const char *)all.p + at;
        at += strlen(old) + 1;
        if (!is_session(old))
            rc = msg_strings_add(&out, old);
    }
    if (rc == 0)
        rc = msg_strings_add(&out, var);
    if (rc < 0)
        return err_set(e, EINVAL, "env: larger than %d bytes in all", LAUNCH_ENV_MAX);
    buf_free(strings);
    *strings = out;
    buf_init(&out, 0);
    return 0;
}

/* A path below the home, resolved by its text alone: `..` never leaves it. The
 * gateway cannot see whether the last component is a file, so a name with a dot
 * counts as one; the launcher takes /home/user when the directory is not there. */
char *kernelenv_cwd(const char *path)
{
    char *out = xcalloc(1, sizeof HOME + (path != NULL ? strlen(path) : 0) + 1);
    size_t base = sizeof HOME - 1, at = base;

    memcpy(out, HOME, base);
    while (path != NULL && *path != '\0') {
        size_t n = strcspn(path, "/");
        int last = path[n] == '\0';
        if (n == 2 && strncmp(path, "..", 2) == 0) {
            while (at > base && out[--at] != '/')
                ;
        } else if (n > 0 && !(n == 1 && *path == '.') && !(last && memchr(path, '.', n) != NULL)) {
            out[at++] = '/';
            memcpy(out + at, path, n);
            at += n;
        }
        path += n + (path[n] == '/');
    }
    out[at] = '\0';
    if (at >= LAUNCH_PATH_MAX)
        out[base] = '\0';
    return out;
}

char *kernelenv_working_dir(char *const *env)
{
    static const char name[] = "KERNEL_WORKING_DIR=" HOME;
    size_t n = sizeof name - 1;

    for (; env != NULL && *env != NULL; env++) {
        autofree char *path = NULL;
        if (strncmp(*env, name, n) != 0 || ((*env)[n] != '/' && (*env)[n] != '\0'))
            continue;
        if (asprintf(&path, "%s/", *env + n) < 0) /* a directory, dot or not */
            path = NULL;
        return kernelenv_cwd(path);
    }
    return kernelenv_cwd(NULL);
}
