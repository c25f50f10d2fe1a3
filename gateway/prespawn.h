/*
 * prespawn - the kernels that are started with the server. They are ordinary ones
 * of principal "default": listed, and nobody gets one of them for a POST.
 */
#ifndef HC_PRESPAWN_H
#define HC_PRESPAWN_H

#include "sessions.h"

struct loop;
struct loop_timer;

struct prespawn {
    struct loop *loop; /* borrowed, as sessions and kernel */
    struct sessions *sessions;
    const char *kernel; /* kernelspec; NULL: the default */
    unsigned count;     /* how many there are to be */
    unsigned asked, done, failed;
    struct loop_timer *timer; /* while the host has no room for more */
};

/* A few at a time. p must live as long as the sessions; what fails is logged as an error,
 * and what the host has no room for is asked for again. */
void prespawn_start(struct prespawn *p);
void prespawn_stop(struct prespawn *p); /* asks for no more; before the loop ends */

#endif
