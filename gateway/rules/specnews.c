#include "specnews.h"

#include <errno.h>
#include <string.h>

#include "err.h"
#include "log.h"

enum { TOLD_MAX = 256 }; /* what is beyond it is told as a whole */

struct told {
    char *dir, *name; /* owned */
    struct err why;
};

struct specnews {
    struct told *at; /* owned; TOLD_MAX */
    unsigned count;
    int full; /* it was told that there is more */
};

struct specnews *specnews_new(void)
{
    struct specnews *n = xcalloc(1, sizeof *n);

    n->at = xcalloc(TOLD_MAX, sizeof *n->at);
    return n;
}

static void told_free(struct told *t)
{
    free(t->dir);
    free(t->name);
}

struct specnews *specnews_free(struct specnews *n)
{
    if (n == NULL)
        return NULL;
    for (unsigned i = 0; i < n->count; i++)
        told_free(&n->at[i]);
    free(n->at);
    free(n);
    return NULL;
}

static struct told *find(const struct specnews *n, const char *dir, const char *name)
{
    for (unsigned i = 0; i < n->count; i++) {
        if (strcmp(n->at[i].name, name) == 0 && strcmp(n->at[i].dir, dir) == 0)
            return &n->at[i];
    }
    return NULL;
}

/* Not allowed: by its mode, or since it is a link out of the directory, which the guard does
 * not let us follow (guard.h). */
static void tell(const char *dir, const char *name, const struct err *e)
{
    char where[512], what[300]; /* of names that are no kernel's, too */

    log_escape(dir, strlen(dir), where, sizeof where);
    log_escape(name, strlen(name), what, sizeof what);
    if (e->code == EACCES)
        log_warn("kernelspec_unreadable",
                 "dir=%s name=%s hint=\"its kernel.json must be readable for everybody and lie "
                 "below that directory, also when it is a link\"",
                 where, what);
    else
        log_warn("kernelspec_unusable", "path=%s/kernels/%s/kernel.json error=%s", where, what,
                 LOG_QUOTED(e->msg));
}

void specnews_bad(struct specnews *n, const char *dir, const char *name, const struct err *e)
{
    struct told *t = n != NULL ? find(n, dir, name) : NULL;

    if (n == NULL || (t != NULL && t->why.code == e->code && strcmp(t->why.msg, e->msg) == 0))
        return;
    if (t == NULL && n->count == TOLD_MAX) {
        if (!n->full)
            log_warn("kernelspecs_unusable", "note=\"more than %d: the others are not named\"",
                     TOLD_MAX);
        n->full = 1;
        return;
    }
    if (t == NULL) {
        t = &n->at[n->count++];
        *t = (struct told){ .dir = xstrdup(dir), .name = xstrdup(name) };
    }
    t->why = *e;
    tell(dir, name, e);
}

void specnews_good(struct specnews *n, const char *dir, const char *name)
{
    struct told *t = n != NULL ? find(n, dir, name) : NULL;

    if (t == NULL)
        return;
    told_free(t);
    *t = n->at[--n->count];
}
