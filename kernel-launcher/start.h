/* start - turns a START_KERNEL message into a start of the sandbox. */
#ifndef HC_START_H
#define HC_START_H

#include "launchmsg.h"

struct err;
struct launcher;
struct link_packet;
struct session;

/* m was decoded from the packet, whose descriptors are borrowed. On success the
 * kernel is on its way and the request will be answered. -HC_EPARSE and -HC_ESTATE
 * are faults of the asker. */
int start_from_message(struct launcher *l, struct session *s, const struct launch_start *m,
                       const struct link_packet *packet, struct err *e) MUST_CHECK;

#endif
