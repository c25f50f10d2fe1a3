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

#include "err.h"
#include "launchmsg.h"

struct sandbox_host; /* what all sessions of an instance share */
struct sandbox;      /* one session */

/* Root-owned policy, fixed before the first gateway starts. Strings are borrowed
 * for the life of the host. */
struct sandbox_config {
    unsigned slot;           /* instance number: names the cgroup base `holdcell-<slot>` */
    uint32_t id_base;        /* first host id of the instance's block of 65536 */
    uid_t gateway_uid;       /* may connect to sockets in run folders */
    const char *init_path;   /* holdcell-init; copied into a sealed memfd */
    const char *runtime_dir; /* mounted at its own path inside */
    /* v2: the directory of a cgroup that is ours to divide. NULL: chosen at run time (our own
     * delegated group, else the root). v1 uses the root of each hierarchy and refuses a parent. */
    const char *cgroup_parent;
    int one_level; /* 1: no outer user namespace (userns.h); 0: one where the host lets us */
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
/* NULL-safe; removes the cgroup base. Its sandboxes are freed before. */
struct sandbox_host *sandbox_host_close(struct sandbox_host *h);

/* Walls that sessions of a host do without, because it lacks them and the operator accepts that.
 * For sandboxes that are made later; none is the default. */
enum { SANDBOX_WITHOUT_LANDLOCK = 1, SANDBOX_WITHOUT_SECCOMP = 2 };
void sandbox_host_without(struct sandbox_host *h, unsigned walls);

/* 2: sessions live below the outer user namespace; 1: the host refuses that, or one_level was asked for. */
int sandbox_host_levels(const struct sandbox_host *h);

/* What the host, or what holds us of it, has left. UINT64_MAX: unknown. */
struct sandbox_room {
    uint64_t memory_total, memory; /* bytes */
    uint64_t tasks_total, tasks;   /* processes and threads */
    uint64_t files;            /* open files of the whole host, and descriptors of this process */
    uint64_t disk_total, disk; /* bytes, where homes on disk lie */
};
void sandbox_host_room(const struct sandbox_host *h, struct sandbox_room *ret);

/* What all sessions of the host may have together; UINT64_MAX: no limit. *ret is what is in force then:
 * memory is never limited to less than what sessions already use. */
struct sandbox_share {
    uint64_t memory, tasks;
};
int sandbox_host_share(struct sandbox_host *h, const struct sandbox_share *wanted,
                       struct sandbox_share *ret, struct err *e) MUST_CHECK;

/* Where /home/user is. */
enum sandbox_home {
    SANDBOX_HOME_MEMORY, /* tmpfs: part of the session's memory */
    SANDBOX_HOME_DISK,   /* ext4 in an image file whose blocks are taken from the disk at once */
};

/* Lets homes lie on the disk of this directory (borrowed), after a trial; usual: the limits of most. On
 * failure, whose text says what this host lacks for it, all is as it was. Called again, it is for the
 * sessions that come. */
int sandbox_host_disk(struct sandbox_host *h, int dir_fd, const struct launch_limits *usual,
                      struct err *e) MUST_CHECK;
/* Bytes of disk that such a home takes. */
uint64_t sandbox_home_size(const struct launch_limits *limits);

/* The operator's directories, NAME=/PATH:..., of which sessions may see some, read-only, as /data/NAME. On
 * failure, which names the entry, all is as it was. Called again, it is for the sessions that come. */
int sandbox_host_data(struct sandbox_host *h, const char *list, struct err *e) MUST_CHECK;
/* -ENOENT: there is none of that name. */
int sandbox_data_bit(const struct sandbox_host *h, struct view name, uint32_t *ret) MUST_CHECK;
uint32_t sandbox_data_all(const struct sandbox_host *h);

/* Where workspaces lie (path is borrowed for the call), after a trial; reserve: bytes of that disk that stay
 * free. On failure all is as it was. */
int sandbox_host_workspaces(struct sandbox_host *h, const char *path, uint64_t reserve,
                            struct err *e) MUST_CHECK;
/* Bytes of disk that one with this quota takes. */
uint64_t sandbox_workspace_size(uint64_t bytes);

/* The caller has reaped a child that is neither an init nor a kernel: one of those that wait for a disk. */
void sandbox_host_reaped(struct sandbox_host *h, pid_t pid);

/* Bytes of memory that the session uses now; 0 when that cannot be read. */
uint64_t sandbox_memory(const struct sandbox *s);

/* Profile `default` (architecture.md §10). */
void sandbox_limits_default(struct launch_limits *ret);

/* What a session sees beside its own. */
struct sandbox_files {
    enum sandbox_home home;
    uint32_t data; /* directories of sandbox_host_data(): sandbox_data_bit() */
    const char
        *workspace; /* a principal's name, shorter than 64, no path: /home/user/work; NULL: none */
    uint64_t workspace_bytes;
};

/* Builds a sandbox that holds only init; returns when init said it is ready.
 * index: 0..16383, free for another session only after sandbox_free(). files NULL: a home in memory.
 * -ENOSPC: the disk has no room for its home; -HC_EFULL: for its workspace, or another server has that. */
int sandbox_create(struct sandbox_host *h, unsigned index, const struct launch_limits *limits,
                   const struct sandbox_files *files, struct sandbox **ret,
                   struct err *e) MUST_CHECK;

int sandbox_run_fd(const struct sandbox *s); /* O_PATH of the run folder; borrowed */
/* Init's request socket, the gateway's end; owned by the caller; -1 when it was taken. */
int sandbox_take_init_fd(struct sandbox *s);
int sandbox_init_pidfd(const struct sandbox *s); /* borrowed; readable when init ended */
pid_t sandbox_init_pid(const struct sandbox *s); /* host pid; the launcher's child */
/* 1: init was killed or ended. Its own exit is seen last, when the other processes of the session have been
 * reaped. */
int sandbox_is_ending(const struct sandbox *s);
/* Borrowed. When it polls with sandbox_oom_events() (POLLIN with v1, POLLPRI with v2), ask
 * sandbox_status(): that tells the number of kills and re-arms it. With v1 the event comes when
 * memory runs out, a moment before the kill is counted: ask again when a kernel ends. */
int sandbox_oom_fd(const struct sandbox *s);
short sandbox_oom_events(const struct sandbox *s);
/* Borrowed; -1: this host does not count. Polls with sandbox_tasks_events() when the limit of tasks
 * refused one, and once at the beginning; events 0 (v1): it does not tell, look now and then.
 * sandbox_tasks_refused() says how many since CREATE, and re-arms it. A fork bomb makes that happen
 * without end. */
int sandbox_tasks_fd(const struct sandbox *s);
short sandbox_tasks_events(const struct sandbox *s);
int sandbox_tasks_refused(const struct sandbox *s, uint64_t *ret) MUST_CHECK;

struct sandbox_start {
    uint32_t kernel, generation;
    uint32_t flags; /* LAUNCH_SOCKETS_FD */
    /* The kernelspec's directory, opened after sandbox_host_open() (borrowed): mounted read-only at
     * /kernelspecs/<n>, which is {resource_dir}, once per sandbox and name. -1: none. */
    int spec_fd;
    const char *spec_name; /* unique among all that the launcher offers; 16 per sandbox */
    /* NULL-terminated; {connection_file} and {resource_dir} are replaced here. */
    char *const *argv;
    char *const *env;      /* NULL-terminated: the whole environment */
    const char *cwd;       /* inside; /home/user when it cannot be entered */
    int connection_fd;     /* memfd with the connection data (borrowed) */
    int log_fd;            /* fds 1 and 2 (borrowed) */
    const int *socket_fds; /* five, with LAUNCH_SOCKETS_FD (borrowed) */
};

struct sandbox_kernel {
    pid_t pid;           /* host pid; the launcher is parent and reaper */
    int pidfd;           /* owned by the caller */
    int run_fd;          /* O_PATH of the kernel's run folder, or -1; owned by the caller */
    int status_fd;       /* of sandbox_start_begin() until sandbox_start_end(); else -1 */
    unsigned spec_index; /* for sandbox_start_end() */
    struct err failure;  /* likewise: what the child said; code 0: nothing bad yet */
};

/* A fresh cgroup leaf k<kernel>-<generation>, a child that joins, drops and execs, in two steps: what
 * the child does in between it does under the session's limits, and a session that burns its share of
 * the processor or thrashes at its memory limit can make that slow. begin() returns when the child is
 * under way. When status_fd polls readable, call end(): -EAGAIN, call again when it polls again; 0, it
 * exec'ed (or was killed: then its pidfd is readable); else the errno and the step that failed, and the
 * leaf is gone, the child reaped, every descriptor of *kernel closed. A child that has failed and does not end yet,
 * for its end takes its share of the processor, too, is -EAGAIN with status_fd -1: call again when pidfd polls readable.
 * To give up before: kill its leaf; status_fd polls readable then. -HC_EGONE: the session's init is dead. */
int sandbox_start_begin(struct sandbox *s, const struct sandbox_start *start,
                        struct sandbox_kernel *ret, struct err *e) MUST_CHECK;
int sandbox_start_end(struct sandbox *s, uint32_t kernel, uint32_t generation,
                      struct sandbox_kernel *started, struct err *e) MUST_CHECK;

/* Takes the kernel's run folder away from its user (owner root, 0755). */
int sandbox_seal(struct sandbox *s, uint32_t kernel, uint32_t generation, struct err *e) MUST_CHECK;

/* Kills every process of one kernel's leaf (its orphans included) or of the session; does not wait.
 * A session that was killed starts no kernel any more. */
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
 * exit by milliseconds); after this and any other failure s is good for sandbox_kill(), sandbox_empty()
 * and this call. On 0 s is freed and its index may be used again. */
int sandbox_free(struct sandbox *s, struct err *e) MUST_CHECK;

#endif
