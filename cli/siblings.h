/* siblings - finds the programs and the runtime that belong to this executable. */
#ifndef HC_SIBLINGS_H
#define HC_SIBLINGS_H

#include <limits.h>

#include "cleanup.h"

struct err;

struct siblings {
    char gateway[PATH_MAX];  /* this executable; HOLDCELL_GATEWAY names a stand-in for tests */
    char launcher[PATH_MAX]; /* holdcell-launcher, beside it */
    char init[PATH_MAX];     /* holdcell-init, beside it */
    char runtime[PATH_MAX];  /* resolved: kernels see it at this very path */
};

/* runtime: from the option, else NULL: then HOLDCELL_RUNTIME, <bin>/../runtime,
 * /opt/holdcell/runtime/current in this order. Errors say what to run. */
int siblings_find(const char *runtime, struct siblings *ret, struct err *e) MUST_CHECK;
/* The two halves of it; the first fills all but the runtime. */
int siblings_programs(struct siblings *ret, struct err *e) MUST_CHECK;
int siblings_runtime(const char *option, struct siblings *ret, struct err *e) MUST_CHECK;

#endif
