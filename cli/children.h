/* children - of this process, whoever made them: a subreaper inherits strangers. */
#ifndef HC_CHILDREN_H
#define HC_CHILDREN_H

#include <sys/types.h>

/* Sends SIGKILL to every child but spared (0: none); returns how many those are, zombies
 * included. */
int children_kill_all(pid_t spared);

#endif
