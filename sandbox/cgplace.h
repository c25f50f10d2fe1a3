/*
 * cgplace - where on this host the cgroups of an instance go: finds the mounted
 * hierarchies and the group that is ours to divide.
 */
#ifndef HC_CGPLACE_H
#define HC_CGPLACE_H

#include "cleanup.h"

struct err;

enum cgplace_controller { CGPLACE_MEMORY, CGPLACE_PIDS, CGPLACE_CPU, CGPLACE_CONTROLLERS };

struct cgplace {
    int is_v2;      /* 1: the three controllers are those of the unified tree */
    int unified_fd; /* owned; where `holdcell-<slot>` goes in the unified tree */
    /* Owned; where it goes in the v1 hierarchy of each controller, -1 with v2. Controllers
     * that are mounted together share a hierarchy: the later ones are -1 then. */
    int v1_fd[CGPLACE_CONTROLLERS];
    /* For each controller the one whose v1_fd serves it (itself when it has one). */
    enum cgplace_controller v1_of[CGPLACE_CONTROLLERS];
};

/* parent: NULL, or the path of a cgroup directory to use in the unified tree, -ENOTSUP with v1. May
 * move the processes of our own delegated group into its leaf `holdcell-main`:
 * a group with processes of its own cannot hand out controllers. */
int cgplace_find(const char *parent, struct cgplace *ret, struct err *e) MUST_CHECK;
void cgplace_close(struct cgplace *p);

#endif
