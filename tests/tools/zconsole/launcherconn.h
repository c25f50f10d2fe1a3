/*
 * launcherconn - asks the launcher as the gateway does, one request at a time.
 */
#ifndef HC_LAUNCHERCONN_H
#define HC_LAUNCHERCONN_H

#include "launchmsg.h"

struct launcherconn {
    int fd;           /* borrowed */
    uint64_t request; /* last number used */
    struct buf in;    /* the packet of the last answer; views point into it */
    int fds[MSG_FDS_MAX];
    unsigned
        fd_count; /* of the last answer; the caller takes them or they are closed by the next call */
};

void launcherconn_init(struct launcherconn *c, int fd);
void launcherconn_free(struct launcherconn *c);

/* Sends the request and waits for its answer, printing events that come first.
 * ret_body is the answer's struct. -ETIMEDOUT after a minute; the launcher's own
 * refusal comes as its code and text. */
int launcherconn_ask(struct launcherconn *c, unsigned verb, const void *body, const int *fds,
                     unsigned nfds, void *ret_body, struct err *e) MUST_CHECK;

/* Sends the request alone; a later launcherconn_ask() prints its answer when it comes by. */
int launcherconn_send(struct launcherconn *c, unsigned verb, const void *body, const int *fds,
                      unsigned nfds, struct err *e) MUST_CHECK;

/* One packet of either protocol, undecoded: c->in and c->fds hold it. */
int launcherconn_packet(struct launcherconn *c, int timeout_ms, struct err *e) MUST_CHECK;

/* Waits for an event of that kind, printing each event on the way: 0 or -ETIMEDOUT. */
int launcherconn_event(struct launcherconn *c, unsigned verb, int timeout_ms,
                       struct err *e) MUST_CHECK;

#endif
