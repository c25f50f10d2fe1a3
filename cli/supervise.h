/*
 * supervise - stays as root above the launcher: starts it, reaps what it leaves
 * behind, starts it again, publishes new settings at SIGHUP (reload.h), and ends
 * everything at SIGTERM. Nothing else: what
 * runs here has all power and no rival, so it must have nothing to get wrong.
 */
#ifndef HC_SUPERVISE_H
#define HC_SUPERVISE_H

enum { SUPERVISE_FIRST_FD = 3, SUPERVISE_FDS_MAX = 12 };

/* Places in supervise_plan.fds; listening sockets beside the first come behind them. */
enum supervise_fd {
    SUPERVISE_LISTEN,
    SUPERVISE_SETTINGS,
    SUPERVISE_READY,
    SUPERVISE_DIR,
    SUPERVISE_SLOT,
    SUPERVISE_STATE,
    SUPERVISE_STATE_DIR,
    SUPERVISE_CONTROL, /* filled in: the launcher's end of the socket between the two */
    SUPERVISE_MORE
};

struct instance;
struct reload;

struct supervise_plan {
    char *const *argv;          /* argv[0] is the launcher's path; NULL-terminated (borrowed) */
    char *const *sweep_argv;    /* a launcher that only sweeps what others left (borrowed) */
    int fds[SUPERVISE_FDS_MAX]; /* become 3, 4, 5 ... in the launcher (borrowed) */
    unsigned fd_count;
    int ready_fd;          /* read end: the gateway writes a byte when it serves (borrowed) */
    const char *announce;  /* printed on stdout then, once */
    int pass_hangup;       /* 1: SIGHUP goes on to the launcher, whatever the reload says */
    struct reload *reload; /* what SIGHUP brings (borrowed) */
    /* (borrowed) Its keeper, if any, becomes the first launcher. */
    struct instance *instance;
    int keep; /* 1: SIGTERM leaves the kernels to a keeper */
};

/* Returns the exit status of `holdcell serve`: 0 after SIGTERM or SIGINT, 1 when
 * the first start failed. A start that fails on top of kept kernels leaves them kept. */
int supervise(const struct supervise_plan *plan);

#endif
