#include "datalist.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "buf.h"
#include "err.h"
#include "namedpath.h"
#include "options.h"

enum { TEXT_MAX = NAMEDPATH_MAX * (NAMEDPATH_NAME + PATH_MAX) };

struct entries {
    struct namedpath *at; /* owned; NAMEDPATH_MAX */
    unsigned count;
    int names_only; /* the paths are of no interest */
};

static int add(struct entries *all, const struct namedpath *entry, struct err *e)
{
    struct stat st;

    for (unsigned i = 0; i < all->count; i++)
        if (strcmp(all->at[i].name, entry->name) == 0)
            return err_set(e, EINVAL, "there are two of this name");
    if (all->count == NAMEDPATH_MAX)
        return err_set(e, EINVAL, "there are more than %d directories", NAMEDPATH_MAX);
    struct namedpath *to = &all->at[all->count];
    memcpy(to->name, entry->name, sizeof to->name);
    if (all->names_only) {
        all->count++;
        return 0;
    }
    if (realpath(entry->path, to->path) == NULL || stat(to->path, &st) < 0)
        return err_sys(e, errno, "'%.120s'", entry->path);
    if (!S_ISDIR(st.st_mode))
        return err_set(e, ENOTDIR, "'%.120s' is no directory", entry->path);
    if (strchr(to->path, ':') != NULL)
        return err_set(e, EINVAL, "a path with ':' in it cannot be given: %.120s", to->path);
    all->count++;
    return 0;
}

/* A value of the environment has several. */
static int add_list(struct entries *all, const char *list, struct err *e)
{
    struct namedpath entry;
    int rc;

    if (*list == '\0')
        return err_set(e, EINVAL, "the value is empty");
    while ((rc = namedpath_next(&list, &entry, e)) > 0) {
        rc = add(all, &entry, e);
        if (rc < 0)
            return err_wrap(e, "%s", entry.name);
    }
    return rc;
}

static char *join(const struct entries *all, int with_paths)
{
    autobuf struct buf text;
    int rc = 0;

    buf_init(&text, TEXT_MAX);
    for (unsigned i = 0; i < all->count && rc == 0; i++)
        rc = with_paths
                 ? buf_addf(&text, "%s%s=%s", i == 0 ? "" : ":", all->at[i].name, all->at[i].path)
                 : buf_addf(&text, "%s%s", i == 0 ? "" : ",", all->at[i].name);
    check(rc == 0);
    return all->count > 0 ? view_dup(buf_view(&text)) : NULL;
}

/* ret_paths NULL: none are looked for. */
static int read_list(const struct option_list *list, char **ret_paths, char **ret_names,
                     struct err *e)
{
    struct entries all = { .at = xcalloc(NAMEDPATH_MAX, sizeof *all.at),
                           .names_only = ret_paths == NULL };
    int rc = 0;

    for (unsigned i = 0; i < list->count && rc == 0; i++)
        rc = add_list(&all, list->item[i], e);
    if (rc == 0) {
        if (ret_paths != NULL)
            *ret_paths = join(&all, 1);
        *ret_names = join(&all, 0);
    }
    free(all.at);
    return rc < 0 ? (err_wrap(e, "option --data"), -EINVAL) : 0;
}

int datalist_read(const struct option_list *list, char **ret_paths, char **ret_names, struct err *e)
{
    return read_list(list, ret_paths, ret_names, e);
}

int datalist_names(const struct option_list *list, char **ret_names, struct err *e)
{
    return read_list(list, NULL, ret_names, e);
}
