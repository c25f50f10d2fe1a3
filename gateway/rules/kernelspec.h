/*
 * kernelspec - the kernelspecs that this gateway offers, read afresh from the
 * kernel path directories (jupyter-wire.md 3.12): first directory wins, names
 * are compared without case, unreadable ones are left out and told in the log, the allow-list hides.
 */
#ifndef HC_KERNELSPEC_H
#define HC_KERNELSPEC_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"

struct err;

struct kernelspec {
    char *name;   /* directory name as it is on disk */
    unsigned dir; /* index of the kernel path directory (launchmsg.h) */
    char *path;   /* host path of the spec's directory */
    json_t *
        spec; /* kernel.json with every key that clients rely on filled in: argv, env, display_name, language, interrupt_mode, metadata */
    int sockets_fd; /* 1: metadata.holdcell.sockets is "fds" */
    int interrupt_by_message;
    uint64_t cull_ms; /* metadata.cull_idle_timeout; CULL_UNSET when it is not given */
    char **resources; /* file names served under /kernelspecs/NAME/, NULL-terminated */
};
struct kernelspec *kernelspec_free(struct kernelspec *s);

struct kernelspecs; /* the path list, allow-list and default name */
/* dirs: ':'-separated data directories, each with kernels/NAME/kernel.json; allowed: comma list or NULL. */
struct kernelspecs *kernelspecs_new(const char *dirs, const char *allowed,
                                    const char *default_name);
struct kernelspecs *kernelspecs_free(struct kernelspecs *k);

const char *kernelspecs_default(const struct kernelspecs *k); /* borrowed */
/* A warning in the log for each directory that is not there or cannot be read and for each kernelspec that
 * cannot be used; from now on also for those that get so. */
void kernelspecs_warn(struct kernelspecs *k);
/* One spec, read now. -ENOENT "Kernel spec NAME not found", and whether a directory
 * could not be read, or one of that name not used. Caller frees *ret. */
int kernelspecs_find(const struct kernelspecs *k, const char *name, struct kernelspec **ret,
                     struct err *e) MUST_CHECK;
/* All of them in order of their names; returns the count; the caller frees each and the array. */
int kernelspecs_list(const struct kernelspecs *k, struct kernelspec ***ret,
                     struct err *e) MUST_CHECK;

#endif
