/*
 * sandbox_internal - the two structs behind sandbox.h. Only for host.c, create.c,
 * join.c and sandbox.c.
 */
#ifndef HC_SANDBOX_INTERNAL_H
#define HC_SANDBOX_INTERNAL_H

#include "cgroup.h"
#include "datadirs.h"
#include "homes.h"
#include "layers.h"
#include "mounts.h"
#include "sandbox.h"
#include "userns.h"
#include "workspaces.h"

struct sandbox_host {
    struct userns userns;
    uid_t gateway_uid;
    struct cgroup_base *cgroups; /* owned */
    struct layers layers;
    struct homes homes;
    struct datadirs data;
    struct workspaces workspaces;
    unsigned without; /* SANDBOX_WITHOUT_* */
    int pid_ns_fd;    /* the launcher's own pid namespace: what setns() goes back to */
    int init_fd;      /* holdcell-init, a sealed memfd */
};

/* The namespaces of a session that a kernel joins in its own process, in this order: the user
 * namespace first, for the right to join the others. The pid namespace is the launcher's to set. */
enum sandbox_ns {
    SANDBOX_NS_USER,
    SANDBOX_NS_MNT,
    SANDBOX_NS_NET,
    SANDBOX_NS_IPC,
    SANDBOX_NS_UTS,
    SANDBOX_NS_CGROUP,
    SANDBOX_NS_PID,
    SANDBOX_NS_COUNT
};

struct sandbox {
    struct sandbox_host *host; /* borrowed */
    unsigned index;
    struct launch_limits limits;
    struct cgroup *cgroup; /* owned */
    pid_t init_pid;
    int init_pidfd;
    int request_fd; /* init's socket, the gateway's end; -1 when taken */
    int run_fd;
    struct workspace *workspace; /* of the host's list, counted; NULL: none */
    uint64_t workspace_bytes;
    int home_fd; /* the root of a home on disk, for extimage_drop(); -1 */
    int ns_fd[SANDBOX_NS_COUNT];
    struct {
        char *name;  /* owned; reserves /kernelspecs/<i> */
        int mounted; /* a child said that it is there */
    } specs[MOUNTS_SPECS];
};

/* The host id of the session's user (also its group id). */
uid_t sandbox_user_id(const struct sandbox *s);

/* RLIMIT_FSIZE of every process of a session: more than the largest of its file systems holds, so that a
 * full one is ENOSPC and not SIGXFSZ; it bounds sparse files and memfds. */
uint64_t sandbox_file_size(const struct sandbox *s);

/* In the launcher, about a child that waits: 0..1000 for a process of a session. The launcher may
 * have protected itself from the OOM killer, and what is inherited could be taken up again. */
int sandbox_set_oom_score(pid_t pid, int score, struct err *e) MUST_CHECK;

#endif
