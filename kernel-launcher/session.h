/*
 * session - what the launcher knows of one sandbox, and the table of all. State
 * only: what happens to sessions is in kernelproc, ending and request.
 */
#ifndef HC_SESSION_H
#define HC_SESSION_H

#include <sys/types.h>

#include "err.h"
#include "launchmsg.h"
#include "sessionprofile.h"

struct sandbox;

enum {
    SESSION_STOPS_MAX = 16,  /* STOP requests that wait for one end */
    SESSION_LEAVES_MAX = 64, /* kernel generations whose processes or cgroup are not gone yet */
    SESSION_INDEX_MAX = 16384,
};

/* Requests that are answered when something is gone. */
struct stops {
    uint64_t request[SESSION_STOPS_MAX];
    unsigned count;
};

enum kernel_state {
    KERNEL_NONE,     /* never started, or stopped and answered */
    KERNEL_STARTING, /* our child on its way to exec: only kernelstart may have it reaped */
    KERNEL_RUNNING,  /* our child, not reaped */
    KERNEL_EXITED,   /* reaped; LIST tells how it ended */
};

struct kernelproc {
    enum kernel_state state;
    uint32_t generation; /* of the last start; 0: none yet */
    uint32_t flags;      /* LAUNCH_SOCKETS_FD */
    pid_t pid;
    int pidfd;         /* owned; -1 when reaped */
    int requested;     /* 1: STOP, DEADLINE or the end of the session killed it */
    int quiet;         /* 1: its START was answered by an error: its end is told to nobody */
    int out_of_memory; /* 1: it was seen to end when memory had ended */
    int exit_code, signo;

    /* while it starts */
    uint32_t previous;     /* generation before this start */
    int status_fd, run_fd; /* owned; -1 */
    unsigned spec_index;   /* for sandbox_start_end(), as the next one */
    struct err failure;
    uint64_t start_request; /* to answer; 0: the gateway that asked is gone */
    uint64_t start_by_ms;
    int give_up_code; /* positive: it was killed on its way, for this reason */
    const char *give_up_text;
};

/* A generation that ends or has ended: its cgroup leaf is emptied and removed. */
struct leaf {
    uint32_t kernel, generation;
    uint64_t since_ms;
    int alarmed; /* not empty in time: said once, tried on until the session ends */
    struct stops stops;
};

struct note {
    struct view bytes;    /* owned */
    int fds[MSG_FDS_MAX]; /* owned */
    unsigned fd_count;
};

enum session_state {
    SESSION_ALIVE,
    SESSION_ENDING, /* killed; waits until every process, cgroup and mount is gone */
    SESSION_STUCK,  /* not gone in time: its index stays in quarantine, tried on slowly */
};

struct session {
    uint64_t id;             /* random, never 0 */
    unsigned index;          /* of the sandbox; names host ids */
    struct sandbox *sandbox; /* owned; NULL when freed */
    enum session_state state;
    struct launch_limits limits;
    char profile[PROFILE_NAME]; /* as CREATE had it, as the next two: for LIST */
    uint32_t data_all;
    struct view data;     /* owned */
    char *kernelspecs;    /* owned: comma list of the kernelspecs of its profile; NULL: all */
    uint64_t life_end_ms; /* no deadline lies behind it; 0: none */
    int init_alive;       /* not reaped yet */
    /* The asking end of init's socket, so that a gateway which dies before its first
     * NOTE does not end the session by closing it. Owned; -1. */
    int init_fd;
    struct kernelproc kernels[LAUNCH_KERNELS_MAX]; /* number - 1 */
    struct leaf leaves[SESSION_LEAVES_MAX];
    unsigned leaf_count;
    struct note note;
    uint64_t starting_until_ms; /* the memory of what starts counts as promised */
    uint64_t deadline_ms;       /* 0: none */
    uint64_t oom_kills;         /* that were told */
    uint64_t oom_ms;            /* when the last rise was seen; 0: never */
    int oom_unsure;             /* 1: told with no kernel that ends; looked at once more */
    uint64_t memory_again_ms;   /* when to ask the counters again; 0: not needed */
    uint64_t memory_until_ms;   /* when to stop asking */
    uint64_t tasks_refused;     /* that were told */
    uint64_t tasks_again_ms;    /* no look before; 0: a look is due when the descriptor says so */

    const char *reason;   /* why it ends: "stop", "deadline", "init ended" ... */
    uint64_t ending_ms;   /* since */
    uint64_t next_try_ms; /* of a stuck one */
    struct stops stops;
};

/* The table owns its sessions. */
struct sessions {
    struct session **slot; /* by index; NULL: free */
    unsigned max;
    unsigned count;
};

void sessions_init(struct sessions *t, unsigned max); /* max <= SESSION_INDEX_MAX */
void sessions_grow(struct sessions *t, unsigned max);
void sessions_free(struct sessions *t); /* sandboxes must be gone */

/* The lowest free index with an empty session of a fresh random id; NULL when
 * max are there. The session is in the table at once. */
struct session *sessions_add(struct sessions *t);
void sessions_remove(struct sessions *t, struct session *s); /* frees s and its note */

struct session *sessions_find(const struct sessions *t, uint64_t id); /* any state */
/* The living one with the smallest id above after, for LIST. */
struct session *sessions_after(const struct sessions *t, uint64_t after);

/* Descriptors in the notes of all sessions but one. */
unsigned sessions_note_fds(const struct sessions *t, const struct session *except);

/* Takes the descriptors (they become -1 in fds). */
void session_note(struct session *s, struct view bytes, int *fds, unsigned fd_count);

/* 1 when the kernel has a process of ours. */
int kernel_has_process(const struct kernelproc *k);
/* The kernel's entry when this generation is its last one, else NULL. */
struct kernelproc *session_kernel(struct session *s, uint32_t kernel, uint32_t generation);
struct leaf *session_leaf(struct session *s, uint32_t kernel, uint32_t generation);
/* Finds or adds; NULL when SESSION_LEAVES_MAX are there. */
struct leaf *session_leaf_add(struct session *s, uint32_t kernel, uint32_t generation,
                              uint64_t now_ms);
void session_leaf_remove(struct session *s, struct leaf *leaf);

/* 0, or -HC_ELIMIT when too many wait. */
int stops_add(struct stops *s, uint64_t request);

#endif
