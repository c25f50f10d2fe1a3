/*
 * launchmsg - the protocol between the gateway (asks) and the launcher
 * (answers, and tells events) over one SOCK_SEQPACKET socketpair.
 *
 * The launcher parses nothing but this. A malformed or out-of-state message
 * ends that gateway, never the launcher. Host paths, uids, mounts and maxima
 * never travel: they come from the launcher's own start-up. Each request has
 * exactly one answer with the same verb and request number; answers may come in
 * another order than their requests (STOP waits for processes to be gone). A
 * request that failed is answered by LAUNCH_ERROR.
 *
 * What ends the gateway, because no race can explain it: an unknown verb, a
 * broken field, wrong descriptors, request number 0, kernel or generation 0, a
 * signal outside the list, START_KERNEL of a kernel that runs or with a generation
 * that does not rise, SEAL of a kernel without a run folder; and not reading.
 * Errors that a sane gateway meets: HC_EGONE (sandbox or kernel has just ended),
 * HC_ELIMIT (names the limit), HC_EFULL (CREATE: the host has no room for now), ECANCELED (the server stops: nothing new starts),
 * ETIMEDOUT (killed, but not gone in time: of a session SANDBOX_GONE follows when it is), or the errno of the step that failed.
 *
 * Descriptors received belong to the receiver.
 */
#ifndef HC_LAUNCHMSG_H
#define HC_LAUNCHMSG_H

#include "msgcodec.h"

enum launch_verb {
    LAUNCH_CREATE = 1,   /* build a sandbox that holds only init */
    LAUNCH_START_KERNEL, /* first start, restart, further kernel: always this verb */
    LAUNCH_SEAL,         /* take a run folder away from the kernel: its five sockets exist */
    LAUNCH_SIGNAL,
    LAUNCH_STOP,     /* end one kernel, or the whole session; answered when it is gone */
    LAUNCH_STATUS,   /* resource use now and peak */
    LAUNCH_LIST,     /* sandboxes that live, one per answer, for adoption */
    LAUNCH_NOTE,     /* bytes and descriptors that the launcher keeps with a sandbox */
    LAUNCH_DEADLINE, /* ends the session at a time even when no gateway lives */
    LAUNCH_ROOM,     /* what is left of the host for further sessions */
    LAUNCH_AUDIT,    /* open the audit file: at the gateway's start, and when it was rotated */
    LAUNCH_VERBS_END,

    LAUNCH_ERROR = 64, /* answer to any request that failed */

    LAUNCH_KERNEL_EXITED = 128, /* events: request 0 */
    LAUNCH_OUT_OF_MEMORY,
    LAUNCH_SANDBOX_GONE,
    LAUNCH_TASKS_REFUSED,
};

enum {
    LAUNCH_NAME_MAX = 128,       /* kernelspec and profile names */
    LAUNCH_PATH_MAX = 1024,      /* a path inside the sandbox */
    LAUNCH_ARGV_MAX = 32 * 1024, /* bytes of all arguments with their NULs */
    LAUNCH_ENV_MAX = 96 * 1024,
    LAUNCH_STRINGS_MAX = 1024, /* arguments, or environment entries */
    LAUNCH_NOTE_MAX = 64 * 1024,
    LAUNCH_TEXT_MAX = 1024,
    LAUNCH_KERNELS_MAX = 16, /* kernels of one session */
    LAUNCH_PRINCIPAL_MAX = 63,
    LAUNCH_DATA_MAX = 32 * 33, /* bytes of all names of data directories with their NULs */
};

/* Limits of one session. In a request 0 means the profile's default, and a value above the
 * profile's maximum or below the least of its row (limit.h) is refused (-HC_ELIMIT names it). */
struct launch_limits {
    uint64_t memory_bytes;
    uint64_t home_bytes, tmp_bytes, shm_bytes; /* each file system's size */
    uint64_t output_bytes; /* of one run; the gateway counts, the launcher only keeps it */
    uint32_t inodes;       /* of home and of tmp, each */
    uint32_t pids;
    uint32_t cpu_millis; /* 1000 = one core */
    uint32_t nofile;     /* hard limit of open descriptors of one process */
};

/* The profile's, where neither the server's options nor the principal say anything else. File systems
 * that are made of memory stay together below half of it: ENOSPC, not OOM. A home on disk is none of them. */
#define LAUNCH_LIMITS_DEFAULT              \
    ((struct launch_limits){               \
        .memory_bytes = UINT64_C(2) << 30, \
        .home_bytes = UINT64_C(1) << 30,   \
        .tmp_bytes = 256 << 20,            \
        .shm_bytes = 128 << 20,            \
        .output_bytes = 1 << 30,           \
        .inodes = 32768,                   \
        .pids = 256,                       \
        .cpu_millis = 1000,                \
        .nofile = 4096,                    \
    })

enum { LAUNCH_WORKSPACE_MB = 1024 }; /* of a workspace, without options */

/* Of a home in memory. */
#define LAUNCH_HOME_MEMORY_DEFAULT (UINT64_C(512) << 20)

struct launch_create {
    struct view profile; /* its name: "default", or one of sessionprofile.h */
    struct launch_limits limits;
    uint32_t data_all; /* 1: every directory that the operator gives (/data/NAME) */
    struct view data;  /* strings: else those of these names; ENOENT when there is none of one */
    /* Whose workspace it gets, where the launcher has them; "": nobody's. A name as those of
     * principals are. The quota counts when the workspace is made: 0 is the launcher's own, and its most. */
    struct view principal;
    uint64_t workspace_bytes;
};
/* Descriptors of the answer: O_PATH of the session's run folder, init's socket (initmsg.h). */
struct launch_created {
    uint64_t sandbox;            /* random, of the launcher's choice, never 0 */
    struct launch_limits limits; /* those in force */
};

enum {
    LAUNCH_SOCKETS_FD = 1, /* the five listening sockets come as descriptors */
};

/* Descriptors: sealed memfd with the connection data (JSON, at most 4 KiB); write
 * end for fds 1 and 2; with LAUNCH_SOCKETS_FD the listening sockets in the order
 * shell, control, stdin, iopub, hb.
 *
 * In argv the launcher replaces `{connection_file}` and `{resource_dir}`. The
 * kernel finds, with LAUNCH_SOCKETS_FD: fd 3 the memfd, fds 4..8 the sockets, and
 * `{connection_file}` is /proc/self/fd/3. Without: a file of its own in its run
 * folder /run/kernel/<kernel>-<generation>/connection.json; it binds its sockets
 * there as `s-1` .. `s-5`, and umask is 007. fd 0 is at end of file. */
struct launch_start {
    uint64_t sandbox;
    uint32_t kernel;     /* 1..LAUNCH_KERNELS_MAX, of the gateway's choice */
    uint32_t generation; /* rises with every start of that kernel; 1 is the first; a start that
                          * failed did not use it up, one that was stopped or took too long did */
    uint32_t flags;
    uint32_t
        spec_dir; /* index of the kernel path directory, in the order of --kernel-path, the runtime's own last */
    struct view spec_name; /* directory name in <dir>/kernels/ */
    struct view cwd;       /* inside; "/home/user" when it cannot be entered */
    struct view argv;      /* strings; argv[0] is looked up in PATH inside the sandbox */
    struct view env;       /* strings NAME=value: the whole environment */
};
/* Answered when exec succeeded; else LAUNCH_ERROR with the errno and the step.
 * Descriptors of the answer: without LAUNCH_SOCKETS_FD, O_PATH of the kernel's run folder. */
struct launch_started {
    uint64_t sandbox;
    uint32_t kernel, generation;
};

/* SEAL, and the answers that only say "done" for one kernel, have this body. */
struct launch_kernel_ref {
    uint64_t sandbox;
    uint32_t kernel, generation;
};

struct launch_signal {
    uint64_t sandbox;
    uint32_t kernel, generation;
    uint32_t signo; /* SIGINT, SIGTERM, SIGQUIT, SIGKILL, SIGUSR1, SIGUSR2 */
    uint32_t group; /* 1: the kernel's process group, 0: its process alone */
};

/* kernel 0: the whole session: every process, cgroup, mount and id of it is gone
 * when the answer comes. Else: that kernel's leaf is killed and reaped. */
struct launch_stop {
    uint64_t sandbox;
    uint32_t kernel, generation;
};

struct launch_status {
    uint64_t sandbox;
    uint32_t reset_peak; /* 1: the peak starts anew after this answer */
};
struct launch_status_answer {
    uint64_t sandbox;
    uint64_t memory_bytes, memory_peak_bytes, memory_limit_bytes;
    uint64_t oom_kills; /* since CREATE */
    uint64_t cpu_usec;  /* since CREATE */
    uint64_t pids, pids_limit;
    uint64_t tasks_refused; /* forks and new threads that the limit refused since CREATE */
};

struct launch_list {
    uint64_t after; /* 0 first, then the sandbox of the last answer */
};
struct launch_kernel_info { /* the items of launch_listed.kernels */
    uint32_t kernel, generation;
    uint32_t flags;
    uint32_t running; /* 0: it exited, status below */
    int32_t exit_code, signo;
};
/* sandbox 0 ends the list. Descriptors: those of the last NOTE, in its order. */
struct launch_listed {
    uint64_t sandbox;
    struct launch_limits limits;
    struct view profile; /* as CREATE had it, and the next two */
    uint32_t data_all;
    struct view data;
    struct view kernels; /* packed struct launch_kernel_info */
    struct view note;
};

/* Replaces the whole note. Up to 32 descriptors ride along. */
struct launch_note {
    uint64_t sandbox;
    struct view note;
};

struct launch_deadline {
    uint64_t sandbox;
    uint64_t monotonic_ms; /* CLOCK_MONOTONIC; 0 takes the deadline away */
};

/* Its path is the launcher's own. The answer has its descriptor, open for appending and
 * reading; ENOENT: the server has none. */
struct launch_audit {
    uint64_t reserved; /* 0 */
};

struct launch_room {
    uint64_t reserved; /* 0 */
};
/* UINT64_MAX: unknown. A CREATE at this moment fails with HC_EFULL when lack is not "". */
struct launch_room_answer {
    uint64_t memory_available; /* bytes that the host, or the cgroup that holds us, still has */
    uint64_t memory_reserve;   /* bytes of these that stay free */
    uint64_t memory_promised;  /* bytes of these that sessions which start will take */
    uint32_t sessions, sessions_max;
    struct view lack; /* "memory", "tasks", "files", "sessions", "disk", or "" */
};

/* Answers of SEAL, SIGNAL, STOP, NOTE, DEADLINE. */
struct launch_done {
    uint64_t sandbox;
};

struct launch_error {
    uint32_t verb; /* of the request that failed */
    struct view text;
};

/* ---- events ---- */

struct launch_kernel_exited {
    uint64_t sandbox;
    uint32_t kernel, generation;
    int32_t exit_code;      /* -1 when a signal ended it */
    int32_t signo;          /* 0 when it exited by itself */
    uint32_t out_of_memory; /* 1: the session's memory limit killed it */
    uint32_t requested;     /* 1: STOP or DEADLINE ended it */
    uint32_t sandbox_ends;  /* 1: its init is dying, and took it along: SANDBOX_GONE follows */
    uint64_t memory_limit_bytes, memory_peak_bytes;
};

/* The limit killed some process of the session (perhaps not the kernel). Told again when a kernel
 * was seen to end only at a second look. */
struct launch_out_of_memory {
    uint64_t sandbox;
    uint64_t kills;       /* since CREATE */
    uint32_t kernel_ends; /* 1: a kernel is on its way out, killed: KERNEL_EXITED follows */
    uint64_t memory_limit_bytes, memory_peak_bytes;
};

/* The limit of processes and threads refused some; told once a second at most. */
struct launch_tasks_refused {
    uint64_t sandbox;
    uint64_t refused; /* since CREATE */
    uint64_t pids_limit;
};

/* Not sent for a STOP: its answer says the same. */
struct launch_sandbox_gone {
    uint64_t sandbox;
    struct view reason; /* "init ended", "deadline" */
};

/* The table entry of a request, answer or event; NULL when there is none. One
 * verb has two structs: what is asked and what is answered. */
const struct msg_spec *launch_request_spec(unsigned verb);
const struct msg_spec *launch_answer_spec(unsigned verb);
const struct msg_spec *launch_event_spec(unsigned verb);
const char *launch_verb_name(unsigned verb);

#endif
