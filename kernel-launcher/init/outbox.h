/*
 * outbox - the one packet of init that is on its way to the controller. While that
 * does not take it nothing else is read, neither requests nor answers, so nothing
 * piles up here.
 */
#ifndef HC_OUTBOX_H
#define HC_OUTBOX_H

#include "buf.h"
#include "msgcodec.h"

struct err;

struct outbox {
    struct buf bytes; /* empty: nothing on its way */
    int fd;           /* goes along; owned; -1: none */
};

void outbox_init(struct outbox *o);
int outbox_full(const struct outbox *o);
void outbox_clear(struct outbox *o);

/* All into an empty outbox: 0 or a negative code (no memory). */
int outbox_put(struct outbox *o, const struct msg_spec *spec, uint64_t request, int code,
               const void *body) MUST_CHECK;
int outbox_put_error(struct outbox *o, uint64_t request, unsigned verb,
                     const struct err *why) MUST_CHECK;
/* A packet as a worker wrote it; *fd (or -1) is taken on success. */
int outbox_pass(struct outbox *o, struct view packet, int *fd) MUST_CHECK;

/* 0, also when the packet has to wait; -HC_EGONE: the other side is closed; else
 * neither the packet nor an error in its place can be sent, and it is dropped. */
int outbox_flush(struct outbox *o, int socket_fd) MUST_CHECK;

#endif
