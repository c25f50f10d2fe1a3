/*
 * peer - a gateway's end of the socket to the launcher, without scruples: sends what
 * it is told to, and checks every packet that comes back against launchmsg.h.
 */
#ifndef HC_HOSTILE_PEER_H
#define HC_HOSTILE_PEER_H

#include "launchmsg.h"
#include "page.h"

enum { PEER_KNOWN = 12, PEER_OPEN = 1024, PEER_PATIENCE_MS = 60000 };

struct known {   /* a sandbox, as far as this life has heard of it */
    uint64_t id; /* 0: free */
    uint32_t generation[LAUNCH_KERNELS_MAX + 1];
    uint8_t running[LAUNCH_KERNELS_MAX + 1];
    int init_fd, run_fd; /* owned; -1 */
};

struct answer {
    struct msg_head head;
    struct view bytes; /* of the peer's own buffer, until the next packet */
    union {
        struct launch_created created;
        struct launch_started started;
        struct launch_status_answer status;
        struct launch_listed listed;
        struct launch_done done;
        struct launch_error error;
        struct launch_room_answer room;
        struct launch_audit audit;
        struct launch_kernel_exited exited;
        struct launch_out_of_memory memory;
        struct launch_sandbox_gone gone;
    } body;
    int fds[MSG_FDS_MAX]; /* owned; -1 */
};

struct peer {
    int fd;
    int nested; /* the link itself was sent as a descriptor: its end is not seen when we close ours */
    int dead;   /* the link is closed: the launcher is about to kill us */
    uint64_t seed, life;
    uint64_t request; /* last number used */
    struct {
        uint64_t request, since_ms;
        unsigned verb;
    } open[PEER_OPEN];
    unsigned open_count;
    struct known known[PEER_KNOWN];
    struct answer last; /* the packet received last */
    struct page *page;
    uint8_t in[MSG_MAX];
};

uint64_t peer_clock_ms(void);
uint64_t peer_random(struct peer *p);
unsigned peer_any(struct peer *p, unsigned below); /* 0..below-1 */
int peer_one_in(struct peer *p, unsigned n);

/* Tells the conductor, and ends this life: the launcher did what it must not. */
_Noreturn void peer_fail(struct peer *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* 1 sent, 0 the socket is full, -1 the link is dead (p->dead). */
int peer_send(struct peer *p, const void *bytes, size_t n, const int *fds, unsigned fd_count);
/* Encodes and sends, reads meanwhile; the request's number, or 0 when it was not sent. */
uint64_t peer_ask(struct peer *p, unsigned verb, const void *body, const int *fds, unsigned n);
/* What the launcher owes for a packet that was sent raw: an answer, when it is a valid request. */
void peer_owes(struct peer *p, struct view packet, unsigned fds);

/* Receives one packet and checks it: 1 in p->last, 0 none came in time, -1 dead. */
int peer_receive(struct peer *p, int timeout_ms);
/* Until the request is answered: 1 yes, 0 by an error, -1 dead. Fails when nothing comes. */
int peer_wait(struct peer *p, uint64_t request);
void peer_settle(struct peer *p); /* until everything is answered, or the link is dead */

struct known *peer_known(struct peer *p, uint64_t id);
void peer_forget(struct known *k);
void peer_adopt(struct peer *p); /* asks which sandboxes there are */

#endif
