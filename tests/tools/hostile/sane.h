/*
 * sane - what a gateway may count on, asked after the hostile ones: all that they left can be ended, and a
 * session works from its creation to its end, with right answers.
 */
#ifndef HC_HOSTILE_SANE_H
#define HC_HOSTILE_SANE_H

#include "peer.h"

void sane_clear(struct peer *p); /* ends every session */
void sane_session(struct peer *p);

#endif
