/*
 * program - the exec of a command that the gateway asked for.
 */
#ifndef HC_PROGRAM_H
#define HC_PROGRAM_H

#include "initmsg.h"

struct err;

/* Changes to the working directory and execs with exactly the given environment;
 * a name without a slash is looked for in that environment's PATH. Runs after the
 * drop, with descriptors 0, 1, 2 in place. Returns only when it failed. */
int program_exec(const struct init_spawn *spawn, struct err *e) MUST_CHECK;

#endif
