/*
 * checkup - the launcher's part of `holdcell doctor`, and what it makes sure of before
 * it serves: the probes of sandbox/probes, tried by the very program that builds the
 * sandboxes. Whoever lets a program make namespaces by its path lets this one.
 */
#ifndef HC_CHECKUP_H
#define HC_CHECKUP_H

#include "launcher_options.h"

struct err;
struct sandbox_host;

/* Tries all and writes a line for each wall: name, state, microseconds, detail. */
int checkup_all(const struct launcher_options *o, struct err *e) MUST_CHECK;

/* Tries what is cheap on the host that was opened, and says in the log what is not there.
 * Fails when something is missing that the operator demands; else host does without the walls in
 * *ret_missing. */
int checkup_start(const struct launcher_options *o, struct sandbox_host *host,
                  hostwall_set *ret_missing, struct err *e) MUST_CHECK;

/* The host could not be opened: names the walls that are the reason, if any, in the log. */
void checkup_explain(const struct launcher_options *o);

#endif
