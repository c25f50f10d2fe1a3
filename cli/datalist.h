/* datalist - the directories of all --data: resolved, as the launcher takes them, and their names. */
#ifndef HC_DATALIST_H
#define HC_DATALIST_H

#include "cleanup.h"

struct err;
struct option_list;

/* *ret_paths: NAME=/PATH:... (namedpath.h), *ret_names: NAME,...; owned by the caller, NULL when there is
 * none. The error names option and entry: no NAME=/PATH, no such directory, a name that is there twice. */
int datalist_read(const struct option_list *list, char **ret_paths, char **ret_names,
                  struct err *e) MUST_CHECK;
/* The names alone: the directories may be those of another host, and are not looked for. */
int datalist_names(const struct option_list *list, char **ret_names, struct err *e) MUST_CHECK;

#endif
