/*
 * request - what a gateway may ask: one table of verbs with the states in which
 * each is allowed, one handler each.
 */
#ifndef HC_REQUEST_H
#define HC_REQUEST_H

struct launcher;
struct link_packet;

/* Serves one packet; descriptors that a handler keeps are taken out of it. A
 * malformed message, or one that no sane gateway sends in this state, breaks the
 * link (link_broken()); a request that cannot be fulfilled is answered by LAUNCH_ERROR. */
void request_serve(struct launcher *l, struct link_packet *p);

#endif
