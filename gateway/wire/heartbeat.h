/*
 * heartbeat - the liveness of one kernel process over its sockets: a DEALER of its
 * own on the heartbeat channel, questions through the link's control socket, one
 * timer. Lives from the kernel's first answer until it is asked to end.
 */
#ifndef HC_HEARTBEAT_H
#define HC_HEARTBEAT_H

#include "liveness.h"

struct heartbeat;
struct link;
struct loop;

struct heartbeat_config {
    struct loop *loop;      /* borrowed, as all below */
    struct link *link;      /* outlives the heartbeat */
    const char *kernel;     /* its id, for the log */
    int owes_heartbeat;     /* see liveness.h */
    int (*busy)(void *arg); /* whether the kernel works on something it was asked */
    void *arg;
};

/* Never fails: without a socket the kernel is simply not judged (logged). */
struct heartbeat *heartbeat_start(const struct heartbeat_config *c);
struct heartbeat *heartbeat_stop(struct heartbeat *h); /* NULL-safe, returns NULL */

void heartbeat_answer(struct heartbeat *h); /* on the control channel; NULL-safe */
/* LIVENESS_WELL for NULL: a kernel that starts or ends is not judged. */
enum liveness_loss heartbeat_loss(const struct heartbeat *h);

#endif
