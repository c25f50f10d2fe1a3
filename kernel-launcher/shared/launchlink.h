/*
 * launchlink - the launcher's end of the SEQPACKET socket to one gateway: whole packets
 * with descriptors, and a bounded queue for a reader that is slow. Never blocks.
 *
 * A link that broke (the gateway is gone, sent nonsense, or does not read) stays
 * broken: the owner asks link_broken() once per turn and ends that gateway. What a
 * gateway sent before it died is received first.
 */
#ifndef HC_LAUNCHLINK_H
#define HC_LAUNCHLINK_H

#include "launchmsg.h"

struct err;
struct link;

enum {
    LINK_QUEUE_PACKETS = 4096,
    LINK_QUEUE_BYTES = 4 * 1024 * 1024,
    LINK_QUEUE_FDS = 1024,
    LINK_PATIENCE_MS = 10000, /* the oldest waiting packet may be so old */
    LINK_SILENCE_MS =
        30000, /* so long something may lie unread in the socket while nothing comes */
};

struct link *link_new(int fd); /* takes a non-blocking SEQPACKET socket */
struct link *link_free(struct link *l);

int link_fd(const struct link *l);       /* borrowed */
short link_events(const struct link *l); /* what to poll for */

/* (The gateway has a link_send() of its own, in a program that holds both.)
 * Sends or queues one message. Descriptors are borrowed (duplicated when the
 * packet has to wait). After a failure the link is broken; later calls do nothing. */
void link_post(struct link *l, const struct msg_spec *spec, uint64_t request, int error,
               const void *body, const int *fds, unsigned fd_count);
/* Sends what waits, as far as the gateway reads. */
void link_flush(struct link *l);

struct link_packet {
    struct msg_head head;
    struct view bytes;    /* borrowed until the next link_receive() */
    int fds[MSG_FDS_MAX]; /* owned; a taken one is set to -1 */
};
void link_packet_close(struct link_packet *p); /* closes the descriptors that nobody took */

/* 1: a packet with a valid head; 0: nothing there now, or the link is broken. */
int link_receive(struct link *l, struct link_packet *ret);

/* The reason when the link is of no use any more, else NULL. */
const char *link_broken(const struct link *l);
int link_closed(const struct link *l); /* 1: it broke because the gateway closed its end */
void link_break(struct link *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A gateway that hangs does not read. The monotonic time in ms at which to call
 * link_check_patience(), which breaks the link when the oldest waiting packet is
 * too old, or when what was sent lies unread too long; 0 when nothing is due. */
uint64_t link_patience_ends(const struct link *l);
void link_check_patience(struct link *l, uint64_t now_ms);
/* So long nobody could read or write here. */
void link_give_time(struct link *l, uint64_t ms);

#endif
