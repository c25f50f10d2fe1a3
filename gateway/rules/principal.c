#include "principal.h"

#include <string.h>

static int is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

int principal_name_valid(const char *name, size_t n)
{
    if (n == 0 || n >= PRINCIPAL_NAME || !is_alnum(name[0]))
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_alnum(name[i]) && memchr("._-@+", name[i], 5) == NULL)
            return 0;
    }
    return 1;
}

int principal_sees(const struct principal *p, const char *owner)
{
    if (p->role == ROLE_FULL)
        return strcmp(p->name, owner) == 0;
    return p->role == ROLE_OBSERVER &&
           (strcmp(p->observes, "*") == 0 || strcmp(p->observes, owner) == 0);
}

int principal_sees_all(const struct principal *p)
{
    if (p->role == ROLE_FULL)
        return strcmp(p->name, PRINCIPAL_DEFAULT) == 0;
    return p->role == ROLE_OBSERVER && strcmp(p->observes, "*") == 0;
}
