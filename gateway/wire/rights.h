/*
 * rights - no descriptors come over the unix sockets of this process. The messaging library reads
 * bytes alone, so descriptors that a kernel sends with them are closed in its one I/O thread, and a
 * last close may wait: for bytes that nobody takes, for a disk. Every session would wait with it.
 */
#ifndef HC_RIGHTS_H
#define HC_RIGHTS_H

/* From now on every unix socket that this process makes is without SO_PASSRIGHTS, those of
 * libraries too: who sends a descriptor to one gets EPERM. Pairs, and sockets that were handed to
 * us, are as they were. Before Linux 6.16 it changes nothing. */
void rights_forbid(void);

#endif
