/*
 * environment - each option of `holdcell serve` as a variable: --max-kernels is
 * HOLDCELL_MAX_KERNELS.
 */
#ifndef HC_ENVIRONMENT_H
#define HC_ENVIRONMENT_H

#include "cleanup.h"

struct err;
struct option_reader;

/* Sets what is there; an empty variable counts as not there. Not the token: a secret
 * is taken and wiped by who uses it. */
int environment_read(const struct option_reader *r, struct err *e) MUST_CHECK;

/* A warning for each variable that looks as if it were meant for us and is not. */
void environment_warn(const struct option_reader *r);

#endif
