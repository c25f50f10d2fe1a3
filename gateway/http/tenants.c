/* tenants - see tenants.h. */
#include "tenants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "err.h"

struct tenant {
    struct tenants *all; /* borrowed */
    struct tenant *prev, *next;
    unsigned users;
    size_t held[TENANT_GOODS];
    char name[PRINCIPAL_NAME];
};

struct tenant *tenant_hold(struct tenants *t, const char *name)
{
    struct tenant *n = t->first;

    while (n != NULL && strcmp(n->name, name) != 0)
        n = n->next;
    if (n == NULL) {
        n = xcalloc(1, sizeof *n);
        n->all = t;
        snprintf(n->name, sizeof n->name, "%s", name);
        n->next = t->first;
        if (n->next != NULL)
            n->next->prev = n;
        t->first = n;
    }
    return tenant_hold_same(n);
}

struct tenant *tenant_hold_same(struct tenant *n)
{
    n->users++;
    return n;
}

int tenant_named(const struct tenant *n)
{
    return n != NULL && n->name[0] != '\0';
}

struct tenant *tenant_drop(struct tenant *n)
{
    if (n == NULL || --n->users > 0)
        return NULL;
    for (unsigned i = 0; i < TENANT_GOODS; i++)
        check(n->held[i] == 0);
    *(n->prev != NULL ? &n->prev->next : &n->all->first) = n->next;
    if (n->next != NULL)
        n->next->prev = n->prev;
    free(n);
    return NULL;
}

void tenant_take(struct tenant *n, enum tenant_good good, size_t amount)
{
    n->held[good] += amount;
    n->all->all[good] += amount;
}

void tenant_give(struct tenant *n, enum tenant_good good, size_t amount)
{
    check(n->held[good] >= amount);
    n->held[good] -= amount;
    n->all->all[good] -= amount;
}

int tenant_share(int shared, size_t own, size_t all, size_t amount, size_t max)
{
    if (amount > max || all > max - amount)
        return 0;
    return !shared || own + amount <= max - all - amount;
}

int tenant_may(const struct tenant *n, enum tenant_good good, size_t amount, size_t max)
{
    return tenant_share(n->all->shared, n->held[good], n->all->all[good], amount, max);
}
