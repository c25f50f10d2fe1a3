/*
 * leaves - a cgroup for each program that init starts: what the program starts stays in it,
 * whatever it does with process groups and sessions, and one write ends all of that. They
 * lie below init's own group, the only one that it reaches (INIT_GROUPS_FD).
 */
#ifndef HC_LEAVES_H
#define HC_LEAVES_H

#include <stdint.h>

#include "cleanup.h"

struct err;

/* groups_fd: borrowed; -1: there are none, and numbers are 0. */
void leaves_init(int groups_fd);
int leaves_there(void);

/* A fresh one: a group that was killed is never used again. *ret_fd (owned by the caller) is
 * for CLONE_INTO_CGROUP. */
int leaves_make(uint64_t number, int *ret_fd, struct err *e) MUST_CHECK;
/* Every process in it; does not wait. */
int leaves_kill(uint64_t number) MUST_CHECK;
/* 1 when it is gone, 0 while a process is in it. */
int leaves_remove(uint64_t number);

#endif
