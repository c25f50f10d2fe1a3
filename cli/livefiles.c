#include "livefiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "settings.h"
#include "token.h"

/* Links on the way are kept: Kubernetes changes a mounted secret by changing one. */
static char *absolute(const char *path)
{
    autofree char *here = path[0] == '/' ? NULL : get_current_dir_name();
    char *whole = NULL;

    if (here == NULL || asprintf(&whole, "%s/%s", here, path) < 0)
        return xstrdup(path);
    return whole;
}

void livefiles_add(struct livefiles *l, const char *key, const char *option, const char *path,
                   unsigned flags)
{
    check(l->count < LIVEFILES_MAX);
    struct livefile *f = &l->at[l->count++];

    *f = (struct livefile){ .key = key, .option = option, .path = absolute(path), .flags = flags };
    if (option != NULL)
        snprintf(f->label, sizeof f->label, "option --%s: ", option);
}

void livefiles_free(struct livefiles *l)
{
    for (unsigned i = 0; i < l->count; i++)
        free(l->at[i].path);
    *l = (struct livefiles){ 0 };
}

static size_t most(const struct livefile *f)
{
    return f->flags & LIVEFILE_LARGE ? LIVEFILE_LARGE_BYTES : LIVEFILE_BYTES;
}

/* A secret that others could read is none, and one that others could write is theirs. */
static int check_guarded(const struct livefile *f, const struct stat *st, struct err *e)
{
    if (st->st_uid != 0)
        return err_set(e, EINVAL, "%s'%s' belongs to user %u, not to root", f->label, f->path,
                       (unsigned)st->st_uid);
    if (f->flags & LIVEFILE_POLICY && (st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return err_set(e, EINVAL, "%s'%s' has mode %04o: others may change it; chmod 644 it",
                       f->label, f->path, (unsigned)(st->st_mode & 07777));
    if (f->flags & LIVEFILE_SECRET && (st->st_mode & (S_IWGRP | S_IRWXO)) != 0)
        return err_set(e, EINVAL,
                       "%s'%s' has mode %04o: others may read or change it; "
                       "chmod 600 it",
                       f->label, f->path, (unsigned)(st->st_mode & 07777));
    return 0;
}

/* O_NONBLOCK: a fifo must not stop the supervisor. */
static int open_file(const struct livefile *f, int *ret, struct err *e)
{
    struct stat st;
    autoclose int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(e, EINVAL, "%sopen '%s': %s", f->label, f->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(e, EINVAL, "%s'%s' is no regular file", f->label, f->path);
    if (st.st_size > (off_t)most(f))
        return err_set(e, EINVAL, "%s'%s' has more than %zu bytes", f->label, f->path, most(f));
    if (f->flags & (LIVEFILE_SECRET | LIVEFILE_POLICY)) {
        int rc = check_guarded(f, &st, e);

        if (rc < 0)
            return rc;
    }
    *ret = take_fd(&fd);
    return 0;
}

/* text has room for most() + 1. */
static int read_text(const struct livefile *f, char *text, struct err *e)
{
    autoclose int fd = -1;
    size_t at = 0;
    ssize_t n = 1;
    int rc = open_file(f, &fd, e);

    if (rc < 0)
        return rc;
    while (n > 0 && at < most(f)) {
        n = read(fd, text + at, most(f) - at);
        if (n < 0)
            return err_set(e, EINVAL, "%sread '%s': %s", f->label, f->path, strerror(errno));
        at += (size_t)n;
    }
    text[at] = '\0';
    if (strlen(text) != at)
        return err_set(e, EINVAL, "%s'%s' has a NUL byte", f->label, f->path);
    if ((f->flags & LIVEFILE_TOKEN) == 0)
        return 0;
    while (at > 0 && (text[at - 1] == '\n' || text[at - 1] == '\r'))
        text[--at] = '\0';
    return token_check("the token in --token-file", text, e);
}

int livefiles_read(const struct livefiles *l, struct buf *out, struct err *e)
{
    int rc = 0;

    for (unsigned i = 0; i < l->count && rc == 0; i++) {
        autofree char *text = xcalloc(1, most(&l->at[i]) + 1);

        rc = read_text(&l->at[i], text, e);
        if (rc == 0 && settings_add(out, l->at[i].key, text, e) < 0)
            rc = err_set(e, EINVAL, "%s'%s' is too large beside the other settings", l->at[i].label,
                         l->at[i].path);
        explicit_bzero(text, most(&l->at[i]));
    }
    return rc;
}
