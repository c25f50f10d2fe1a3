/*
 * seat_park - which clients that are away keep their places, and who is remembered
 * of those that did not. Pure: facts in, a choice out.
 */
#ifndef HC_SEAT_PARK_H
#define HC_SEAT_PARK_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct park_place { /* of a client that is away */
    uint64_t since_ms;
    int returns; /* it gave a session_id */
    int sockets; /* it holds sockets open for replies */
    int runs;    /* cells of its are under way, or wait for the kernel */
    int unread;  /* ends of cells that it was not given */
    size_t held; /* bytes of messages that wait for the kernel */
};

struct park_limits {
    size_t places, sockets;
    size_t held;
};
extern const struct park_limits park_limits_default; /* 256, 64, 256 MiB; of one kernel */

enum park_loss {
    PARK_NONE,
    PARK_SOCKETS, /* replies are not waited for any more, and messages not sent */
    PARK_PLACE,   /* all of it */
};
/* Who has to give up what, until all is within the limits: called again after each.
 * *ret_who is an index, unless the result is PARK_NONE. Those that wait for nothing go
 * first, those with cells under way last; the longest away before the others. */
enum park_loss park_choose(const struct park_place *all, size_t n, const struct park_limits *l,
                           size_t *ret_who);

/* ---- those without a place ---- */

enum {
    GRAVES_MAX = 1024,
    GRAVES_BYTES = 1024 * 1024,
    GRAVES_FORGOTTEN = 4096, /* of those that fell out: that they were there is known still */
    GRAVE_HEADER_MAX = 4096, /* a run with a longer header is counted alone */
};

struct grave_run {
    struct grave_run *next;
    size_t n;
    uint8_t header[]; /* of its request */
};

struct grave {
    struct grave *next;
    char *sid;              /* owned; NULL: of one that fell out */
    struct grave_run *runs; /* owned; the oldest first */
    unsigned unnamed;       /* runs that are not among them */
    size_t bytes;
};

struct graves;
struct graves *graves_new(void);
struct graves *graves_free(struct graves *g);
/* Its runs are added before anybody else's grave is. */
void graves_add(struct graves *g, const char *sid);
void graves_add_run(struct graves *g, struct view header); /* of the one added last */
/* Owned by the caller, who ends it by grave_free(); NULL when nothing is known of sid. */
struct grave *graves_take(struct graves *g, const char *sid);
struct grave *grave_free(struct grave *r);
size_t graves_bytes(const struct graves *g);

#endif
