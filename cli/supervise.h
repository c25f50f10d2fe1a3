/*
 * supervise - stays as root above the launcher: starts it, reaps what it leaves
 * behind, starts it again, publishes new settings at SIGHUP (reload.h), and ends
 * everything at SIGTERM. Nothing else: what
 * runs here has all power and no rival, so it must have nothing to get wrong.
 */
#ifndef HC_SUPERVISE_H
#define HC_SUPERVISE_H

enum { SUPERVISE_FIRST_FD = 3, SUPERVISE_FDS_MAX = 12 };

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
};

/* Returns the exit status of `holdcell serve`: 0 after SIGTERM or SIGINT, 1 when
 * the first start failed. */
int supervise(const struct supervise_plan *plan);

#endif
