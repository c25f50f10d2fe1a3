/* ends - how a hostile life ends. */
#ifndef HC_HOSTILE_ENDS_H
#define HC_HOSTILE_ENDS_H

#include "peer.h"

void end_life(struct peer *p); /* returns, at the latest when the launcher had the time to end us */

#endif
