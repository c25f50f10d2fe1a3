/*
 * policy - what the sessions of a profile may have: the launcher decides, by the options for "default" and by
 * the table of --profiles (sessionprofile.h) for all others. A gateway names a profile and what it would like of it; it
 * cannot get more than that profile has.
 */
#ifndef HC_POLICY_H
#define HC_POLICY_H

#include "cleanup.h"
#include "homechoice.h"
#include "hostwalls.h"
#include "launchmsg.h"
#include "sessionprofile.h"

struct err;
struct launcher;
struct launcher_config;
struct sandbox_host;

struct policy_terms {
    const struct profile *profile; /* borrowed until the next table; NULL: "default" */
    const struct launch_limits *defaults, *maxima;
    struct home_policy home;
    uint32_t data; /* the bits of those directories that it may have (sandbox.h) */
};

/* Reads a table and looks whether this host has what its profiles demand: the text names profile and field.
 * *ret is owned; NULL: there are no named ones. */
int policy_read(struct view table, const struct launcher_config *c, struct sandbox_host *host,
                hostwall_set missing, struct profiles **ret, struct err *e) MUST_CHECK;
/* The same, and it counts from now on. What lives keeps what it has. */
int policy_take(struct launcher *l, struct view table, struct err *e) MUST_CHECK;

/* -ENOENT: there is no profile of this name. */
int policy_terms_of(const struct launcher *l, struct view name, struct policy_terms *ret,
                    struct err *e) MUST_CHECK;

/* When a session of the profile ends at the latest, whatever its gateway says; 0: never. */
uint64_t policy_life_end(const struct policy_terms *t, uint64_t now_ms);

#endif
