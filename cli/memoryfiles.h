/*
 * memoryfiles - the options for file systems that are made of a session's memory: together they have to
 * leave some of it (limit.h).
 */
#ifndef HC_MEMORYFILES_H
#define HC_MEMORYFILES_H

#include "cleanup.h"

struct err;
struct serve_options;

/* What is not given and does not fit gets a smaller value; what is given and does not is an error that names
 * the option. */
int memoryfiles_fit(struct serve_options *o, struct err *e) MUST_CHECK;

#endif
