#include "serve_token.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "err.h"
#include "options.h"
#include "serve_options.h"
#include "token.h"

/* To the end, or until the room is full: a pipe gives what was written in pieces in pieces. */
static ssize_t read_all(int fd, char *out, size_t room)
{
    size_t at = 0;

    while (at < room) {
        ssize_t n = read(fd, out + at, room - at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        at += (size_t)n;
    }
    return (ssize_t)at;
}

/* A pipe gives its token once: that one stays for good. */
static int read_token_file(const char *path, char **ret, struct err *e)
{
    char text[TOKEN_MAX + 3];
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "option --token-file: open '%s'", path);
    ssize_t n = read_all(fd, text, sizeof text - 1);
    if (n < 0) {
        explicit_bzero(text, sizeof text);
        return err_sys(e, (int)-n, "option --token-file: read '%s'", path);
    }
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    text[n] = '\0';
    int rc = token_check("the token in --token-file", text, e);
    if (rc == 0)
        *ret = xstrdup(text);
    explicit_bzero(text, sizeof text);
    return rc;
}

/* A copy of the variable's value, or NULL; the environment forgets it. The bytes
 * are wiped in place: /proc/PID/environ shows the original block. */
static char *take_variable(const char *name)
{
    char *value = getenv(name);

    if (value == NULL)
        return NULL;
    char *copy = xstrdup(value);
    explicit_bzero(value, strlen(value));
    unsetenv(name);
    return copy;
}

/* What was said on the command line about tokens silences all that variables say. */
static int weigh_tokens(const struct option_reader *r, struct serve_options *o, char **ours,
                        char **jupyters, struct err *e)
{
    const struct option_mark *token = options_mark(r, "token");
    const struct option_mark *file = options_mark(r, "token-file");
    const struct option_mark *none = options_mark(r, "no-auth");
    int said = token->rank == OPTION_BY_USER || file->rank == OPTION_BY_USER ||
               none->rank == OPTION_BY_USER;

    if (said && file->rank == OPTION_BY_ENVIRONMENT)
        o->token_file = NULL;
    if (said && none->rank == OPTION_BY_ENVIRONMENT)
        o->no_auth = 0;
    if (said) {
        token_forget(ours);
        token_forget(jupyters);
        return 0;
    }
    if (*ours != NULL && *jupyters != NULL && strcmp(*ours, *jupyters) != 0)
        return err_set(e, EINVAL, "HOLDCELL_TOKEN contradicts KG_AUTH_TOKEN");
    const char *name = *ours != NULL ? "HOLDCELL_TOKEN" : "KG_AUTH_TOKEN";
    if ((*ours != NULL || *jupyters != NULL) && (o->token_file != NULL || o->no_auth))
        return err_set(e, EINVAL, "%s contradicts %s", name,
                       o->no_auth ? "HOLDCELL_NO_AUTH" : "HOLDCELL_TOKEN_FILE");
    return 0;
}

static int take_token(struct serve_options *o, char **ours, char **jupyters, struct err *e)
{
    if (o->no_auth) {
        if (o->token != NULL || o->token_file != NULL || o->principals != NULL)
            return err_set(e, EINVAL,
                           "option --no-auth contradicts --token, --token-file and --principals");
        return 0;
    }
    if (o->token != NULL && o->token_file != NULL)
        return err_set(e, EINVAL, "option --token contradicts --token-file");
    if (o->token != NULL) {
        int rc = token_check("option --token: the token", o->token, e);
        if (rc == 0)
            o->token_text = xstrdup(o->token);
        return rc;
    }
    if (o->token_file != NULL) {
        struct stat st;

        o->token_live = stat(o->token_file, &st) == 0 && S_ISREG(st.st_mode);
        return o->token_live ? 0 : read_token_file(o->token_file, &o->token_text, e);
    }
    if (*ours != NULL || *jupyters != NULL) {
        const char *name = *ours != NULL ? "HOLDCELL_TOKEN" : "KG_AUTH_TOKEN";
        int rc = token_check(name, *ours != NULL ? *ours : *jupyters, e);

        if (rc == 0)
            o->token_text = *ours != NULL ? take_ptr(*ours) : take_ptr(*jupyters);
        return rc;
    }
    if (o->principals != NULL)
        return 0;
    o->token_made = 1;
    return token_random(&o->token_text, e);
}

int serve_token_choose(const struct option_reader *r, struct serve_options *o, struct err *e)
{
    char *ours = take_variable("HOLDCELL_TOKEN");
    char *jupyters = take_variable("KG_AUTH_TOKEN");
    int rc = weigh_tokens(r, o, &ours, &jupyters, e);

    if (rc == 0)
        rc = take_token(o, &ours, &jupyters, e);
    token_forget(&ours);
    token_forget(&jupyters);
    return rc;
}

void serve_token_wipe(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i] + strspn(argv[i], "-");
        size_t n = strcspn(name, "=");
        char *value = argv[i] + (name - argv[i]) + n;

        if (!((n == 5 && strncmp(name, "token", n) == 0) ||
              (n == 27 && strncmp(name, "KernelGatewayApp.auth_token", n) == 0)))
            continue;
        value = *value == '=' ? value + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (value != NULL)
            memset(value, 'x', strlen(value));
    }
}
