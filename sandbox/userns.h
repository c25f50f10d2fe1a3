/*
 * userns - the outer user namespace of an instance, the ids of its sessions, and
 * the builder that makes a session's namespaces below it.
 *
 * Host id BASE + 0x100 is 0 in the outer namespace. Session i has there the ids
 * 2i+16 (its pid 1; 0 inside the session) and 2i+17 (its user; 1000 inside). Host
 * 0 is mapped nowhere.
 *
 * Some hosts refuse namespaces that are made without power in the initial one
 * (kernel.unprivileged_userns_clone=0, Ubuntu's AppArmor rule). There the sessions'
 * namespaces are children of the initial one, with the same host ids: the launcher
 * makes them itself, and a later unprivileged template cannot join them.
 */
#ifndef HC_USERNS_H
#define HC_USERNS_H

#include <stdint.h>
#include <sys/types.h>

#include "cleanup.h"

struct err;

enum {
    USERNS_OUTER_FIRST = 0x100,
    USERNS_OUTER_COUNT = 0xff00,
    USERNS_SESSIONS = 16384,
    USERNS_USER_ID = 1000, /* the session's user inside */
};

static inline uint32_t userns_outer_init(unsigned index)
{
    return 2 * index + 16;
}

static inline uint32_t userns_outer_user(unsigned index)
{
    return 2 * index + 17;
}

static inline uint32_t userns_host_id(uint32_t id_base, uint32_t outer_id)
{
    return id_base + USERNS_OUTER_FIRST + outer_id;
}

/* Limits that the kernel sums up over all sessions of a namespace's maker: they go as high as the
 * launcher may set them, before the first namespace is made; open files too, 15 per session. */
void userns_raise_limits(void);

/* A user namespace without processes, with these lines of uid_map and gid_map. */
int userns_make(const char *map, int *ret_fd, struct err *e) MUST_CHECK;

struct userns {
    uint32_t id_base;
    int outer_fd; /* keeps the outer namespace: no process lives in it; -1: one level */
};

/* one_level 1: without an outer namespace; 0: with one, if a trial below it works. */
int userns_open(uint32_t id_base, int one_level, struct userns *ret, struct err *e) MUST_CHECK;
void userns_close(struct userns *u);

/* Clones pid 1 of a session: into leaf_fd's group (-1: the caller's), in its own user, mount, pid, net,
 * ipc and uts namespaces with the ids mapped; its parent is the caller. Returns twice, like fork(): 0 in
 * that new process, which still has the caller's memory, descriptors, root directory and unmapped ids;
 * the pid in the caller; or a negative errno. The new process must wait for the caller's word (the maps
 * may not be there yet), then call userns_become_root().
 *
 * The cgroup namespace is left to the new process (unshare): it should be made when the process is
 * in all its groups, and v1 groups are entered only now. */
pid_t userns_clone_init(const struct userns *u, unsigned index, int leaf_fd,
                        struct err *e) MUST_CHECK;
/* In the new process. */
int userns_become_root(struct err *e) MUST_CHECK;

#endif
