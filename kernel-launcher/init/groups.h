/*
 * groups - the process groups that INIT_SPAWN made: who may be killed by number,
 * and whose end is still to be told. A program that leaves its process group (setsid)
 * stays in the group's leaf (leaves.h), which SIGKILL is for; without leaves it is out of
 * reach and ends with the session.
 */
#ifndef HC_GROUPS_H
#define HC_GROUPS_H

#include <stdint.h>
#include <sys/types.h>

#include "initmsg.h"

enum { GROUPS_MAX = 256 };

struct group {
    pid_t pid;     /* leader and number of the group; 0: none, or nobody may name it any more */
    uint64_t leaf; /* 0: none, or it is gone; a slot with neither is free */
    int alone;     /* the process group is empty: its number may be another's by now */
    int announced; /* the asker knows the number */
    int ended;     /* the leader was reaped; others of the group may live on */
    int told;      /* ... and the asker knows that too */
    int status;    /* wait status of the leader */
    uint64_t age;  /* order of making */
};

struct groups {
    struct group slots[GROUPS_MAX];
    uint64_t made;
    uint64_t leaves; /* numbers given out */
};

/* 0 when all slots hold leaders that live, or an end not told yet. */
int groups_has_room(struct groups *g);
/* Needs room. leaf: 0, or that of groups_next_leaf(). */
void groups_add(struct groups *g, pid_t pid, uint64_t leaf);
uint64_t groups_next_leaf(struct groups *g);
struct group *groups_find(struct groups *g, pid_t pid);
/* Nobody names it; its slot is free when its leaf is gone. */
void groups_remove(struct group *one);
/* 0 or a negative errno. */
int groups_signal(const struct group *one, int signo) MUST_CHECK;

/* The leader was reaped. */
void groups_ended(struct groups *g, pid_t pid, int status);
/* Frees the slots of groups that were told and have no process left. A number is
 * free for others then, so this runs after every reaping. Returns how many still wait for
 * their leaf to be empty: rmdir lags behind the last exit by milliseconds. */
unsigned groups_forget_empty(struct groups *g);

/* The oldest whose end is to be told, or NULL. */
struct group *groups_next_event(struct groups *g);
struct init_exited groups_event(const struct group *one);

#endif
