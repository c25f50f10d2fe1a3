/*
 * proc - cloning and ending the launcher's short-lived and sandboxed children.
 */
#ifndef HC_PROC_H
#define HC_PROC_H

#include <stdint.h>
#include <sys/types.h>

#include "cleanup.h"

struct err;

/* As fork() with clone3's flags; signal handlers are cleared. cgroup_fd -1 for the
 * caller's own group; ret_pidfd NULL for none. Returns 0 in the child, the pid, or a
 * negative errno (then *ret_pidfd is untouched). exit_signal SIGCHLD, or 0 with CLONE_PARENT. */
pid_t proc_clone(uint64_t flags, int cgroup_fd, int *ret_pidfd) MUST_CHECK;

/* In a fresh child: every signal at its default (clone3 leaves ignored ones ignored), none blocked. */
void proc_reset_signals(void);

/* In a child whose parent may have died before this call took effect: SIGKILL when it dies. A change
 * of credentials takes it away again. */
int proc_die_with_parent(struct err *e) MUST_CHECK;
/* pipe_fd: the child's write end of a pipe that only the parent reads. -ECHILD when the parent is gone
 * (getppid() is always 0 in a pid namespace of one's own). */
int proc_check_parent(int pipe_fd, struct err *e) MUST_CHECK;

/* Waits for the end of a child that is about to end; status as waitpid() gives it. */
int proc_reap(pid_t pid, int *ret_status) MUST_CHECK;

#endif
