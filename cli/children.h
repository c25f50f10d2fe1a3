/* children - of this process, whoever made them: a subreaper inherits strangers. */
#ifndef HC_CHILDREN_H
#define HC_CHILDREN_H

/* Sends SIGKILL to every child; returns how many there are, zombies included. */
int children_kill_all(void);

#endif
