/*
 * layers - the directory trees that all sessions of an instance are laid over:
 * the host's /usr without what is the host's own business, a synthetic /etc, and
 * the runtime. They live in a mount namespace of the launcher's own.
 */
#ifndef HC_LAYERS_H
#define HC_LAYERS_H

#include "cleanup.h"

struct err;

struct layers {
    int empty_fd;    /* an empty directory: an overlay without upper needs two layers */
    int cover_fd[4]; /* empty ones that others may neither list nor enter, enter, list, both */
    int usr_fd;      /* the host's /usr */
    int usr_hide_fd; /* whiteouts over it */
    int etc_fd;      /* synthetic */
    int runtime_fd;  /* -1: lies below /usr */
    int mounted;
    char *runtime_dir; /* owned; resolved path, the same inside and outside */
};

#define LAYERS_NONE                                   \
    ((struct layers){ .empty_fd = -1,                 \
                      .cover_fd = { -1, -1, -1, -1 }, \
                      .usr_fd = -1,                   \
                      .usr_hide_fd = -1,              \
                      .etc_fd = -1,                   \
                      .runtime_fd = -1 })

/* Moves the calling process into a mount namespace of its own (it still sees later
 * mounts of the host): overlays and detached copies are made of what lies in the caller's
 * namespace (Linux < 6.15), and nothing of this is left behind when the process dies.
 * Descriptors of directories that serve as layers must be opened after this. */
int layers_own_namespace(struct err *e) MUST_CHECK;

/* In a mount namespace of our own. */
int layers_open(const char *runtime_dir, struct layers *ret, struct err *e) MUST_CHECK;
void layers_close(struct layers *l);

/* For a session: a directory of the host (borrowed), read-only, in an overlay of its own, below an empty
 * folder of the same rights. statfs() tells of the topmost layer's file system: else a session would see
 * the free space of the host's disk move, which others make move. */
int layers_cover(const struct layers *l, const char *source, int dir_fd, unsigned more_attributes,
                 int *ret_fd, struct err *e) MUST_CHECK;

#endif
