/*
 * prespawn - the kernels that are started with the server. They are ordinary ones
 * of principal "default": listed, and nobody gets one of them for a POST.
 */
#ifndef HC_PRESPAWN_H
#define HC_PRESPAWN_H

#include "sessions.h"

struct prespawn {
    struct sessions *sessions; /* borrowed, as kernel */
    const char *kernel;        /* kernelspec; NULL: the default */
    unsigned count;            /* how many there are to be */
    unsigned asked, done, failed;
};

/* A few at a time. p must live as long as the sessions; what fails is logged as an error. */
void prespawn_start(struct prespawn *p);

#endif
