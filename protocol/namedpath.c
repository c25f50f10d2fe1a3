#include "namedpath.h"

#include <errno.h>
#include <string.h>

#include "err.h"

static int is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

int namedpath_name_valid(const char *name, size_t n)
{
    if (n == 0 || n >= NAMEDPATH_NAME || !is_alnum(name[0]))
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_alnum(name[i]) && memchr("._-", name[i], 3) == NULL)
            return 0;
    }
    return 1;
}

int namedpath_next(const char **list, struct namedpath *ret, struct err *e)
{
    const char *entry = *list;
    size_t n = strcspn(entry, ":");
    const char *equals = memchr(entry, '=', n);

    if (*entry == '\0')
        return 0;
    if (equals == NULL || !namedpath_name_valid(entry, (size_t)(equals - entry)))
        return err_set(e, EINVAL,
                       "'%.*s' is not NAME=/PATH, the name of 1 to %d letters, digits and ._-",
                       n < 80 ? (int)n : 80, entry, NAMEDPATH_NAME - 1);
    size_t name = (size_t)(equals - entry), path = n - name - 1;
    if (path == 0 || path >= sizeof ret->path || equals[1] != '/')
        return err_set(e, EINVAL, "'%.*s' names no absolute path", n < 80 ? (int)n : 80, entry);
    memcpy(ret->name, entry, name);
    ret->name[name] = '\0';
    memcpy(ret->path, equals + 1, path);
    ret->path[path] = '\0';
    *list = entry + n + (entry[n] == ':');
    return 1;
}
