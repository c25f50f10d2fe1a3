/*
 * launcher - what the modules of the privileged process share, and its loop: one
 * thread, poll(2). Every module works on this one struct; none keeps pointers to
 * sessions across turns.
 */
#ifndef HC_LAUNCHER_H
#define HC_LAUNCHER_H

#include "admission.h"
#include "gatewayproc.h"
#include "homechoice.h"
#include "keeper.h"
#include "session.h"
#include "sessionprofile.h"

struct err;
struct pollfd;
struct sandbox_host;

/* Fixed at start, until another server takes the sandboxes over (keeper.h); strings are
 * borrowed from the command line. */
struct launcher_config {
    const char *kernel_path; /* ':'-list */
    const char *audit_log;   /* path; NULL: none */
    const char *data;        /* namedpath.h; NULL: none */
    const char *workspaces;  /* path; NULL: none */
    uint64_t workspace_bytes;
    struct launch_limits defaults, maxima;
    uint64_t deadline_max_ms; /* from now */
    uint64_t start_max_ms;    /* from START_KERNEL to exec */
    uint64_t memory_reserve;  /* bytes, or ADMISSION_DEFAULT */
    uint64_t disk_reserve;    /* likewise */
    struct home_policy home;
    int disk_homes;       /* 1: homes can lie on the disk */
    const char *profiles; /* the table at the start (sessionprofile.h); NULL: none */
    uint64_t starting_ms; /* so long after a start its memory counts as promised */
    struct sandbox_share
        share; /* set by launcher_setup_host(): what all sessions may have together */
    unsigned sessions_max;
    unsigned note_fds_max; /* of all notes together: the launcher needs descriptors for itself */
    uint64_t
        gateway_pause_max_ms; /* between a gateway's death and the next start; 0: as gatewayproc.h has it */
    struct gateway_config gateway;
    struct keeper_config keeper;
};

enum launcher_state {
    LAUNCHER_SERVING = 1,
    LAUNCHER_STOPPING = 2, /* SIGTERM came: the gateway winds down, nothing new starts */
    LAUNCHER_CLEARING = 4, /* the gateway is gone: every session ends */
    LAUNCHER_KEEPING = 8,  /* the gateway winds down, the sessions stay */
    LAUNCHER_KEPT = 16,    /* no gateway and no supervisor, until another server comes */
};

struct launcher {
    struct launcher_config *config; /* owned by launcher_main */
    struct sandbox_host *host;      /* owned by launcher_main */
    struct profiles *profiles;      /* owned; those named ones that count now (policy.h) */
    struct sessions sessions;
    struct gatewayproc gateway;
    struct keeper keeper;
    enum launcher_state state;
    enum admission_lack lack; /* that was told last */
    int short_of_disk;        /* likewise: homes that may lie on disk are in memory */
    uint64_t stop_by_ms;      /* of the present state, when it is not SERVING */
    uint64_t expected_ms;     /* when the loop meant to look at the clock again, at the latest */
    int failed;               /* 1: give up, exit status 1 */
    int signal_fd;            /* owned */
    int audit_lock;           /* owned; keeps other servers from the audit file; -1: none */
    struct pollfd *polled;    /* owned; room for everything that can be polled */
    size_t polled_room;
};

void launcher_init(struct launcher *l, struct launcher_config *config, struct sandbox_host *host);
void launcher_free(struct launcher *l);

/* Blocks the signals it serves; 0 or a negative code. */
int launcher_open(struct launcher *l, struct err *e) MUST_CHECK;
/* One turn of the loop: waits at most timeout_ms (-1: as long as nothing is due),
 * then serves what came. Returns 1 while there is something to do, 0 at the end. */
int launcher_turn(struct launcher *l, int timeout_ms);

void launcher_stop(struct launcher *l);                        /* what SIGTERM does */
void launcher_grow(struct launcher *l, unsigned sessions_max); /* it never shrinks */

/* To the gateway that lives; without one events are dropped: the next gateway
 * learns the state by LIST. */
void launcher_event(struct launcher *l, unsigned verb, const void *body);
void launcher_answer(struct launcher *l, unsigned verb, uint64_t request, const void *body,
                     const int *fds, unsigned fd_count);
/* The answer LAUNCH_ERROR; code is positive, text may be NULL. */
void launcher_answer_error(struct launcher *l, unsigned verb, uint64_t request, int code,
                           const char *text);
/* LAUNCH_DONE answers for all that wait, or errors when code != 0; empties the list. */
void launcher_answer_stops(struct launcher *l, struct stops *stops, uint64_t sandbox, int code,
                           const char *text);

#endif
