/*
 * groups - the process groups that INIT_SPAWN made: who may be killed by number,
 * and whose end is still to be told. A program that leaves its group (setsid) is
 * out of their reach and ends with the session: a cgroup leaf for each group is the
 * launcher's to make, and is not made yet.
 */
#ifndef HC_GROUPS_H
#define HC_GROUPS_H

#include <stdint.h>
#include <sys/types.h>

#include "initmsg.h"

enum { GROUPS_MAX = 256 };

struct group {
    pid_t pid;     /* leader and number of the group; 0: free slot */
    int announced; /* the asker knows the number */
    int ended;     /* the leader was reaped; others of the group may live on */
    int told;      /* ... and the asker knows that too */
    int status;    /* wait status of the leader */
    uint64_t age;  /* order of making */
};

struct groups {
    struct group slots[GROUPS_MAX];
    uint64_t made;
};

/* 0 when all slots hold leaders that live, or an end not told yet. */
int groups_has_room(struct groups *g);
/* Needs room. */
void groups_add(struct groups *g, pid_t pid);
struct group *groups_find(struct groups *g, pid_t pid);
void groups_remove(struct group *one);

/* The leader was reaped. */
void groups_ended(struct groups *g, pid_t pid, int status);
/* Frees the slots of groups that were told and have no process left. A number is
 * free for others then, so this runs after every reaping. */
void groups_forget_empty(struct groups *g);

/* The oldest whose end is to be told, or NULL. */
struct group *groups_next_event(struct groups *g);
struct init_exited groups_event(const struct group *one);

#endif
