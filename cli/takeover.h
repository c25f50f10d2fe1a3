/*
 * takeover - finds the keeper (kernel-launcher/keeper.h) that an earlier server left in the
 * state directory, and becomes its supervisor. Waits where it has to: nothing is served yet.
 */
#ifndef HC_TAKEOVER_H
#define HC_TAKEOVER_H

#include <limits.h>
#include <sys/types.h>

#include "cleanup.h"

struct err;
struct link;

struct takeover {
    struct link *link; /* owned; NULL: there is no keeper */
    pid_t pid;         /* a number: signals go by the pidfd */
    int pidfd;         /* owned */
    unsigned slot;
    char runtime[PATH_MAX];        /* of the sandboxes that are kept */
    int state_fd, slot_fd, dir_fd; /* owned: locks of the instance, the gateway's directory */
};

#define TAKEOVER_NONE \
    ((struct takeover){ .pidfd = -1, .state_fd = -1, .slot_fd = -1, .dir_fd = -1 })

/* 1 when a keeper said hello; 0 when there is none, or when it closed its door while we
 * came: ret->pid is its number then. -EBUSY when somebody else takes it over. Until
 * takeover_attach() all stays as it is. */
int takeover_open(int state_dir_fd, struct takeover *ret, struct err *e) MUST_CHECK;
/* argv: as of a launcher; fds in the order of enum keeper_attach_fd. */
int takeover_attach(struct takeover *t, char *const *argv, const int *fds, unsigned fd_count,
                    struct err *e) MUST_CHECK;
void takeover_close(struct takeover *t);

/* A pidfd of the keeper, for `holdcell stop`: 1, or 0 when there is none. */
int takeover_find(int state_dir_fd, int *ret_pidfd, struct err *e) MUST_CHECK;

#endif
