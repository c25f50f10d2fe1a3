/*
 * homechoice - whether a session's home lies on the disk or in its memory, and how large it is
 * then. Pure; the numbers come from admission.h.
 */
#ifndef HC_HOMECHOICE_H
#define HC_HOMECHOICE_H

#include "launchmsg.h"
#include "sandbox.h"

struct admission;
struct err;

enum home_mode {
    HOME_AUTO, /* disk where there is one with room, else memory */
    HOME_DISK, /* or not at all */
    HOME_MEMORY,
};

struct home_policy {
    enum home_mode mode; /* AUTO becomes MEMORY where the host lets us have no home on disk */
    int sized;           /* the operator said how large a home is */
};

/* The value of --home; 0 when it is none of them. */
int home_mode_of(const char *name, enum home_mode *ret);

/* limits: chosen, of which the home may be made smaller when nobody asked for its size (asked 0) and it is
 * part of the memory. -HC_EFULL: no room on the disk, and memory will not do. */
int home_choose(const struct home_policy *p, const struct admission *a,
                const struct launch_limits *defaults, int asked, struct launch_limits *limits,
                enum sandbox_home *ret, struct err *e) MUST_CHECK;

#endif
