/*
 * zroom - the room that messages of several connections have together: numbers alone. One message may
 * go beyond it, until it has been read: that of `over`.
 *
 * `who` names a connection and is only compared. `number` counts its messages. `share` is its part of
 * `held`, so that whatever is taken from that was put there by it, however the numbers are.
 */
#ifndef HC_ZROOM_H
#define HC_ZROOM_H

#include <stddef.h>
#include <stdint.h>

struct zroom {
    size_t held, max; /* bytes; without the message beyond */
    size_t beyond;
    const void *over;
    uint64_t over_number; /* of its message */
};

/* 1: the next part of that message, of so many bytes, may be held. */
int zroom_fits(const struct zroom *r, const void *who, uint64_t number, size_t cost);
/* Holds it. `begun`: bytes of the message that are held already, which go beyond together with it. */
void zroom_hold(struct zroom *r, const void *who, size_t *share, uint64_t number, size_t begun,
                size_t cost);
/* The message has been read; a number behind the one beyond says that that one has gone, too. 1: who
 * waits for room may look again. */
int zroom_let_go(struct zroom *r, const void *who, size_t *share, uint64_t number, size_t cost);
/* All that it has. 1: that was something. */
int zroom_leave(struct zroom *r, const void *who, size_t *share);

#endif
