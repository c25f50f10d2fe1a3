/*
 * birth - the life of a sandbox's pid 1 from its clone to the exec of
 * holdcell-init: ids, mounts, network, capabilities, descriptors.
 */
#ifndef HC_BIRTH_H
#define HC_BIRTH_H

#include "init_start.h"
#include "mounts.h"

struct err;

/* Descriptors are borrowed from the launcher whose memory the child still has. */
struct birth {
    const struct mounts *mounts;
    struct init_start start;
    int init_fd;       /* the image */
    int groups_fd;     /* with start.groups */
    int request_fd;    /* init's end of the request socket */
    int ready_fd;      /* write end; also tells of failures before the exec */
    int ready_read_fd; /* the launcher's end: closed here, or the launcher's death would not show */
    int go_fd;         /* one byte when the process is in all its groups; end of file: give up */
    int go_write_fd;   /* closed here, for the same reason */
};

/* Runs in the new process (userns_clone_init returned 0). */
_Noreturn void birth_run(const struct birth *b);

/* Waits for the launcher's word; closes both ends. 0, or a negative errno (-ECHILD: it is gone).
 * Also for kernels that join. */
int birth_wait_go(int go_fd, int go_write_fd) MUST_CHECK;

/* Steps of it, for the probes of doctor: as root of the new namespaces. */
int birth_loopback_up(struct err *e) MUST_CHECK;
int birth_name_host(struct err *e) MUST_CHECK;

#endif
