/*
 * gateway - the unprivileged server: one loop, all fronts. Started by the
 * launcher with the descriptors below and no other power.
 */
#ifndef HC_GATEWAY_H
#define HC_GATEWAY_H

#include "settings.h"

struct gateway_args {
    int launcher_fd;                     /* SEQPACKET to the launcher (launchmsg.h) */
    int listen_fds[1 + LISTEN_MORE_MAX]; /* bound and listening; they outlive this process */
    unsigned listen_count;
    int settings_fd; /* memfd, read again at SIGHUP (settingspage.h) */
    int ready_fd; /* one byte is written when requests are served, then it is closed; -1: nobody waits */
    int first;              /* 1: no gateway of this launcher has served before */
    unsigned restarts;      /* gateways that this launcher had before */
    unsigned walls_missing; /* that this host lacks and the operator accepts (walls.h) */
    int dir_fd; /* private directory for sockets and spool, reached as /proc/self/fd/N/NAME */
};

/* Takes over the descriptors; returns the exit status: 0 after SIGTERM and an
 * orderly end, 1 when it could not start or lost the launcher. */
int gateway_main(const struct gateway_args *args);

struct err;
struct view;

/* Reads the settings as a gateway would and keeps nothing of them: for who is about to
 * publish them. The text names the file or option that is wrong, and no secret. What --profiles
 * says goes to table (sessionprofile.h), which stays empty without it. */
int gateway_try_settings(struct view blob, int starting, struct buf *table, struct err *e)
    __attribute__((warn_unused_result));

#endif
