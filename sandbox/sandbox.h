/*
 * sandbox - builds, joins, measures and ends the sandbox of one session. The
 * launcher's only door to namespaces, mounts and cgroups; knows nothing of
 * protocols above.
 *
 * All functions are for the launcher's single thread; they block for
 * milliseconds at most, except where said.
 */
#ifndef HC_SANDBOX_H
#define HC_SANDBOX_H

#include <stdint.h>
#include <sys/types.h>

#include "launchmsg.h"

struct err;
struct
    sandbox_host; /* what all sessions of an instance share: outer user namespace, cgroup base, runtime trees, init's image */
struct sandbox;   /* one session */

/* Root-owned policy, fixed before the first gateway starts. Strings are borrowed
 * for the life of the host. */
struct sandbox_config {
    unsigned slot;           /* instance number: names the cgroup base `holdcell-<slot>` */
    uint32_t id_base;        /* first host id of the instance's block of 65536 */
    uid_t gateway_uid;       /* may connect to sockets in run folders */
    const char *init_path;   /* holdcell-init; copied into a sealed memfd */
    const char *runtime_dir; /* mounted at its own path inside */
    const char *
        cgroup_parent; /* NULL: chosen at run time (v2: delegated group, else root; v1: root of each hierarchy) */
};

/* Raises the limits that add up over sessions, makes the outer user namespace,
 * opens the cgroup base and sweeps what an earlier launcher of this slot left.
 *
 * Moves the calling process into a mount namespace of its own, in which later
 * mounts of the host still appear: descriptors of kernelspec directories must be
 * opened after this call (overlays take layers from the caller's namespace only).
 * With v2 it may move the processes of our delegated cgroup into its leaf
 * `holdcell-main`. Blocks until the sweep is done, 10 s at most. */
int sandbox_host_open(const struct sandbox_config *config, struct sandbox_host **ret,
                      struct err *e) MUST_CHECK;
struct sandbox_host *
sandbox_host_close(struct sandbox_host *h); /* NULL-safe; removes the cgroup base */

/* Profile `default` (architecture.md §10) and its maxima. */
void sandbox_limits_default(struct launch_limits *ret);

/* Builds a sandbox that holds only init; returns when init said it is ready.
 * index: 0..16383, free for another session only after sandbox_free(). */
int sandbox_create(struct sandbox_host *h, unsigned index, const struct launch_limits *limits,
                   struct sandbox **ret, struct err *e) MUST_CHECK;

int sandbox_run_fd(const struct sandbox *s); /* O_PATH of the run folder; borrowed */
int sandbox_take_init_fd(
    struct sandbox
        *s); /* init's request socket, gateway side; owned by the caller; -1 when taken */
int sandbox_init_pidfd(const struct sandbox *s); /* borrowed; readable when init ended */
pid_t sandbox_init_pid(const struct sandbox *s); /* host pid; the launcher's child */
/* When it polls, ask sandbox_status(): that tells the number of kills and re-arms the descriptor. With v1
 * the event comes when memory runs out, a moment before the kill is counted: ask again when a kernel ends. */
int sandbox_oom_fd(
    const struct sandbox *
        s); /* borrowed; polls POLLIN (v1 eventfd) or POLLPRI (v2 memory.events); -1 when there is none */
short sandbox_oom_events(const struct sandbox *s); /* POLLIN or POLLPRI */

struct sandbox_start {
    uint32_t kernel, generation;
    uint32_t flags; /* LAUNCH_SOCKETS_FD */
    /* The kernelspec's directory, opened after sandbox_host_open() (borrowed): mounted read-only inside, once
     * per sandbox and name; -1: none, spec_name is not used. {resource_dir} is its place /kernelspecs/<n>. */
    int spec_fd;
    const char *
        spec_name; /* unique among all kernelspecs that the launcher offers; at most 16 per sandbox */
    char *const *argv; /* NULL-terminated; {connection_file} and {resource_dir} are replaced here */
    char *const *env;  /* NULL-terminated */
    const char *cwd;
    int connection_fd;     /* memfd with the connection data (borrowed) */
    int log_fd;            /* fds 1 and 2 (borrowed) */
    const int *socket_fds; /* five, with LAUNCH_SOCKETS_FD (borrowed) */
};

struct sandbox_kernel {
    pid_t pid;  /* host pid; the launcher is parent and reaper */
    int pidfd;  /* owned by the caller */
    int run_fd; /* O_PATH of the kernel's run folder, or -1; owned by the caller */
};

/* A fresh cgroup leaf k<kernel>-<generation>, a child that joins, drops and
 * execs. Returns when exec succeeded (or the child was killed before: then its
 * pidfd is readable), else the errno and the step that failed; the leaf is gone
 * and the child reaped then. -HC_EGONE: the session's init is dead. */
int sandbox_start_kernel(struct sandbox *s, const struct sandbox_start *start,
                         struct sandbox_kernel *ret, struct err *e) MUST_CHECK;

/* Takes the kernel's run folder away from its user (owner root, 0755). */
int sandbox_seal(struct sandbox *s, uint32_t kernel, uint32_t generation, struct err *e) MUST_CHECK;

/* Kills every process of one kernel's leaf (its orphans included) or of the session; does not wait. */
int sandbox_kill_kernel(struct sandbox *s, uint32_t kernel, uint32_t generation,
                        struct err *e) MUST_CHECK;
int sandbox_kill(struct sandbox *s, struct err *e) MUST_CHECK;

/* 1 when no process is left in the leaf / the session's groups, 0 when some are.
 * The caller reaps its children; a leaf whose kernel was reaped is removed by
 * sandbox_remove_kernel (-EBUSY: call again soon). */
int sandbox_kernel_empty(struct sandbox *s, uint32_t kernel, uint32_t generation);
int sandbox_remove_kernel(struct sandbox *s, uint32_t kernel, uint32_t generation,
                          struct err *e) MUST_CHECK;
int sandbox_empty(struct sandbox *s);

/* ret->sandbox is left alone. Before Linux 6.12 v2 cannot reset a peak: it goes on counting from CREATE. */
int sandbox_status(struct sandbox *s, int reset_peak, struct launch_status_answer *ret,
                   struct err *e) MUST_CHECK;

/* After sandbox_kill(), when the caller has reaped every kernel and then init: closes mounts and
 * namespaces, removes the cgroups. -EBUSY: call again soon (rmdir lags behind the last
 * exit by milliseconds); s stays valid then. On 0 s is freed and its index may be used again. */
int sandbox_free(struct sandbox *s, struct err *e) MUST_CHECK;

#endif
