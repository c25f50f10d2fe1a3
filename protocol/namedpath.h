/*
 * namedpath - a list of directories with names, as the option --data has it:
 * NAME=/PATH:NAME=/PATH. What sessions see is the name.
 */
#ifndef HC_NAMEDPATH_H
#define HC_NAMEDPATH_H

#include <limits.h>
#include <stddef.h>

#include "cleanup.h"

struct err;

enum {
    NAMEDPATH_MAX = 32,  /* entries of a list */
    NAMEDPATH_NAME = 33, /* bytes, with the NUL */
};

struct namedpath {
    char name[NAMEDPATH_NAME];
    char path[PATH_MAX];
};

/* 1..32 letters, digits and `._-`, the first one a letter or digit. */
int namedpath_name_valid(const char *name, size_t n);

/* Takes the next entry off *list: 1; 0 at its end; -EINVAL when it is none. */
int namedpath_next(const char **list, struct namedpath *ret, struct err *e) MUST_CHECK;

#endif
