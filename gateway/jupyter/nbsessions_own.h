/* nbsessions_own - what nbsessions.c and nbkeep.c share; nobody else includes it. */
#ifndef HC_NBSESSIONS_OWN_H
#define HC_NBSESSIONS_OWN_H

#include "nbsessions.h"

struct nbsessions {
    struct nbsession *first; /* owned, by number */
    size_t count;
    uint64_t last_number;
};

/* At its place by its number. */
void nbsessions_insert(struct nbsessions *n, struct nbsession *s);

#endif
