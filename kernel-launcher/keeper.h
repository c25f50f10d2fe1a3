/*
 * keeper - sandboxes outlive their server (`--on-exit keep`): at the supervisor's word the
 * gateway ends and the sandboxes stay, the launcher gives back what it got from that
 * server and waits, on a socket in the state directory, for another one that takes them over
 * (keepermsg.h). Their deadlines go on meanwhile; with the last session the launcher ends.
 */
#ifndef HC_KEEPER_H
#define HC_KEEPER_H

#include <poll.h>
#include <stdint.h>

#include "cleanup.h"
#include "hostwalls.h"
#include "sandbox.h"

struct err;
struct launcher;
struct link;

struct keeper_config {
    unsigned slot;
    const char *runtime;       /* what the sandboxes have mounted */
    const char *cgroup_parent; /* NULL: none was named */
    hostwall_set missing;      /* what the sandboxes do without */
    int state_fd, slot_fd;     /* owned: the locks of the instance; -1: none */
    int state_dir_fd;          /* owned; -1: nothing can be kept */
    int control_fd;            /* to the supervisor, taken by keeper_init(); -1: none */
};

struct keeper {
    struct link *supervisor; /* owned; NULL: none, or it came by no socket */
    struct link *candidate;  /* owned: who may become it */
    uint64_t candidate_by_ms;
    int candidate_spoke; /* else it may only want to know who keeps: `holdcell stop` */
    int listen_fd;       /* owned; -1 while a server is there */
    struct sandbox_share share_before; /* while a take-over is a trial */
    char *text; /* owned, with argv: the options of the server that took over */
    char **argv;
};

enum { KEEPER_POLLS = 3 };

void keeper_init(struct keeper *k, struct keeper_config *c);
void keeper_free(struct launcher *l);

/* What KEEP does. -HC_ESTATE in a state that cannot be kept; any error leaves all as it was. */
int keeper_begin(struct launcher *l, uint64_t now_ms, struct err *e) MUST_CHECK;
/* The gateway is gone in state KEEPING. */
void keeper_kept(struct launcher *l, uint64_t now_ms);
/* A take-over failed: the limits of all sessions are again those of before. */
void keeper_share_again(struct launcher *l, const struct sandbox_share *share);
/* The launcher exits: tells the supervisor, who need not be its parent. */
void keeper_ended(struct launcher *l);

void keeper_fill_polls(const struct launcher *l, struct pollfd p[KEEPER_POLLS]);
void keeper_serve(struct launcher *l, const short events[KEEPER_POLLS], uint64_t now_ms);
/* What the clock brings; returns when to look again, 0: no need. */
uint64_t keeper_check(struct launcher *l, uint64_t now_ms);

#endif
