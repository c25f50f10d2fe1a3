/*
 * launchclient - the gateway's end of the launcher's socket (launchmsg.h): asks
 * without waiting, calls back with the answer, tells events. When the launcher
 * goes, or says something malformed, `lost` is called once: the gateway then
 * ends, because without a launcher no kernel lives.
 */
#ifndef HC_LAUNCHCLIENT_H
#define HC_LAUNCHCLIENT_H

#include <stdint.h>

#include "cleanup.h"

struct err;
struct launchclient;
struct loop;

/* Borrowed for the call. Descriptors that the callee keeps are taken out with
 * take_fd(&a->fds[i]); the others are closed after the call. */
struct launch_answer {
    unsigned verb;
    int error;        /* 0, or the positive code of a failure */
    const char *text; /* of the failure; "" else */
    const void *body; /* the verb's answer struct; NULL on failure */
    int *fds;
    unsigned fd_count;
};

/* token is what the asker gave: it finds its object by it, which may be gone. */
typedef void launch_answer_fn(void *arg, uint64_t token, struct launch_answer *a);
typedef void launch_event_fn(void *arg, unsigned verb, const void *body);
typedef void launch_lost_fn(void *arg);

/* Takes over fd and makes it non-blocking. */
struct launchclient *launchclient_new(struct loop *l, int fd);
/* Open requests are dropped without a call. */
struct launchclient *launchclient_free(struct launchclient *c);

void launchclient_on_event(struct launchclient *c, launch_event_fn *fn, void *arg);
int launchclient_is_lost(const struct launchclient *c);
void launchclient_on_lost(struct launchclient *c, launch_lost_fn *fn, void *arg);

/* fds stay the caller's (they are duplicated by the kernel, or here when the
 * packet has to wait). done is called exactly once unless this fails: -EAGAIN
 * when too many requests are open, -EINVAL for a body out of its bounds, -HC_EGONE. */
int launchclient_ask(struct launchclient *c, unsigned verb, const void *body, const int *fds,
                     unsigned fd_count, launch_answer_fn *done, void *arg, uint64_t token,
                     struct err *e) MUST_CHECK;

#endif
