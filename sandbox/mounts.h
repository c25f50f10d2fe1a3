/*
 * mounts - the file tree of a session (sandbox.md §4): every mount is made by the
 * launcher in the initial namespaces, detached; the sandbox's first process moves
 * them into its own mount namespace and makes the root its own.
 */
#ifndef HC_MOUNTS_H
#define HC_MOUNTS_H

#include <stdint.h>
#include <sys/types.h>

#include "cleanup.h"
#include "namedpath.h"
#include "sandbox.h"

struct datadirs;
struct err;
struct homes;
struct layers;

enum { MOUNTS_MAX = 12 + NAMEDPATH_MAX, MOUNTS_SPECS = 16 };

#define MOUNTS_SPEC_PATH "/kernelspecs"

struct mounts {
    int root_fd, proc_fd;
    unsigned count;
    struct {
        int fd;
        const char *target; /* relative to the root; borrowed from us, layers or data */
    } mount[MOUNTS_MAX];    /* in the order in which they are moved in */
    int run_fd;             /* O_PATH of the run folder, stays good after the move */
    int home_fd;            /* of a home on disk (homes.h), else -1 */
};

#define MOUNTS_NONE ((struct mounts){ .root_fd = -1, .proc_fd = -1, .run_fd = -1, .home_fd = -1 })

struct mounts_plan {
    const struct layers *layers; /* borrowed, as all here */
    struct homes *homes;
    const struct datadirs *data; /* NULL: none */
    const struct launch_limits *limits;
    const struct sandbox_files *files;
    uid_t init_id, user_id; /* host ids of the session */
    int *workspace_fd;      /* a detached mount, taken; NULL or -1: none */
};

int mounts_new(const struct mounts_plan *plan, struct mounts *ret, struct err *e) MUST_CHECK;
void mounts_close(struct mounts *m);

/* Init's birth: as root of the new user namespace, in the new mount and pid namespaces.
 * Afterwards nothing of the host's tree is reachable and the cwd is "/". */
int mounts_enter(const struct mounts *m, struct err *e) MUST_CHECK;

/* A detached, read-only view of a directory of the launcher's mount namespace. */
int mounts_spec(const struct layers *layers, int dir_fd, int *ret_fd, struct err *e) MUST_CHECK;

#endif
