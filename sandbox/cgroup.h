/*
 * cgroup - the control groups of an instance and of its sessions: limits, use,
 * kill. Layout (sandbox.md §8), in the unified tree:
 *
 *   holdcell-<slot>/s/<index>-<generation>/init      pid 1 and its short-lived children
 *                                         /init/p<n> a program that it started, and what that starts
 *                                         /k<kernel>-<generation>
 *
 * The limits sit on the session's group. With v2 they are files of that very
 * directory; on hosts with v1 controllers there is one group per session, of the
 * same name, in each controller's hierarchy, and the unified tree (no controllers)
 * serves for leaves, kill and CLONE_INTO_CGROUP alone.
 *
 * A group that was killed once is never used again: cgroup.kill poisons later
 * CLONE_INTO_CGROUP into it. So each session and each leaf has a fresh directory.
 */
#ifndef HC_CGROUP_H
#define HC_CGROUP_H

#include <sys/types.h>

#include "launchmsg.h"

struct err;
struct cgroup_base; /* of the instance */
struct cgroup;      /* of one session */

/* Finds the place, kills and removes what an earlier launcher of this slot left,
 * makes the base. Blocks until that is gone, 10 s at most. */
int cgroup_base_open(unsigned slot, const char *parent, struct cgroup_base **ret,
                     struct err *e) MUST_CHECK;
/* Removes the base; its sessions were freed before. */
struct cgroup_base *cgroup_base_close(struct cgroup_base *b);
int cgroup_base_is_v2(const struct cgroup_base *b);

/* What all sessions of the base have together, beside the limits of each. UINT64_MAX: no limit. A limit
 * of memory is not set below what they use at that time: v2 would kill for it, v1 refuses. */
struct cgroup_share {
    uint64_t memory, tasks;
};
int cgroup_base_limit(struct cgroup_base *b, const struct cgroup_share *share,
                      struct err *e) MUST_CHECK;
/* In force, as the kernel tells it. */
void cgroup_base_share(const struct cgroup_base *b, struct cgroup_share *ret);

/* The session's group with its limits in force but for the processor's share, and no leaf. */
int cgroup_new(struct cgroup_base *b, unsigned index, const struct launch_limits *limits,
               struct cgroup **ret, struct err *e) MUST_CHECK;
/* The last one, when init is ready: while a sandbox is built the launcher waits, and on the share of a
 * hundredth of a processor that took it most of a second. */
int cgroup_limit_cpu(struct cgroup *cg, uint32_t millis, struct err *e) MUST_CHECK;
/* Removes the groups, leaves first. On failure (-EBUSY: call again soon) cg stays valid for this call,
 * cgroup_kill() and cgroup_empty(). */
int cgroup_free(struct cgroup *cg, struct err *e) MUST_CHECK;

/* Bytes that the session uses now. Tells nothing of kills, and re-arms nothing. */
int cgroup_memory(const struct cgroup *cg, uint64_t *ret) MUST_CHECK;

/* What the groups above the base still let through, the tightest of each: bytes of memory (a
 * cache that can be dropped is free) and tasks, of these also the share of all sessions; total: the least
 * limits. UINT64_MAX: no limit, as on a host of our own; containers have some. */
struct cgroup_room {
    uint64_t memory_total, memory, tasks_total, tasks;
};
void cgroup_base_room(const struct cgroup_base *b, struct cgroup_room *ret);

/* Makes a leaf; *ret_fd (owned by the caller) is for CLONE_INTO_CGROUP. -EEXIST when there is one. */
int cgroup_leaf_new(struct cgroup *cg, const char *leaf, int *ret_fd, struct err *e) MUST_CHECK;
/* Lets a process of a session divide a leaf among its children: one level of groups, at most
 * `groups` of them, owned by uid. *ret_fd (owned by the caller) is a mount of the leaf alone, so
 * that there is no way up from it; -1 on hosts where it cannot be made (a cgroup tree that is
 * mounted nowhere). */
int cgroup_leaf_share(struct cgroup *cg, const char *leaf, int leaf_fd, uid_t uid, unsigned groups,
                      int *ret_fd, struct err *e) MUST_CHECK;
int cgroup_leaf_remove(struct cgroup *cg, const char *leaf, struct err *e) MUST_CHECK;

/* Puts a process that was cloned into a leaf under the limits, before it runs
 * anything untrusted. Nothing to do with v2; 13-15 ms with v1 after idle (RCU). */
int cgroup_place(struct cgroup *cg, pid_t pid, struct err *e) MUST_CHECK;

/* leaf NULL: the whole session, and its share of the processor is lifted. Kill does not wait. */
int cgroup_kill(struct cgroup *cg, const char *leaf, struct err *e) MUST_CHECK;
/* 1 when no process is left there (or the leaf is gone), else 0. */
int cgroup_empty(struct cgroup *cg, const char *leaf);

/* sandbox is left alone. Re-arms the descriptor of cgroup_oom_fd(). */
int cgroup_status(struct cgroup *cg, int reset_peak, struct launch_status_answer *ret,
                  struct err *e) MUST_CHECK;
int cgroup_oom_fd(const struct cgroup *cg); /* borrowed */
short cgroup_oom_events(const struct cgroup *cg);
/* Borrowed; -1: this host does not count. Polls with cgroup_tasks_events() when the limit of tasks
 * refused one; 0 with v1, whose pids.events wakes nobody (seen with 6.18): to be looked at.
 * cgroup_tasks_refused() tells how many it were since the group was made, and re-arms it. */
int cgroup_tasks_fd(const struct cgroup *cg);
short cgroup_tasks_events(const struct cgroup *cg);
int cgroup_tasks_refused(const struct cgroup *cg, uint64_t *ret) MUST_CHECK;

#endif
