/*
 * packet - one message of a SEQPACKET socket with the descriptors beside it.
 */
#ifndef HC_PACKET_H
#define HC_PACKET_H

#include <stddef.h>

#include "buf.h"
#include "cleanup.h"
#include "msgcodec.h"

struct err;

/* A received packet. Descriptors are close-on-exec and owned by the struct. */
struct packet {
    uint8_t bytes[MSG_MAX];
    size_t n;
    int fds[MSG_FDS_MAX];
    unsigned fd_count;
};

/* Never blocks. 1: a packet is there; 0: end of file; -EAGAIN: nothing there;
 * -HC_EPARSE: empty, too long, or with more descriptors than any message has
 * (they are closed); or another negative errno. */
int packet_receive(int fd, struct packet *ret, struct err *e) MUST_CHECK;
void packet_close_fds(struct packet *p); /* those that were not taken (-1) */

/* Never blocks; passed_fd may be -1 and stays the caller's. 0, -EAGAIN, or
 * another negative errno. */
int packet_send(int fd, struct view bytes, int passed_fd) MUST_CHECK;

#endif
