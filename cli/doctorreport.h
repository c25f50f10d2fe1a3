/*
 * doctorreport - what `holdcell doctor` says of what was found, as a table for people or as
 * JSON for programs. Pure: results in, text out.
 */
#ifndef HC_DOCTORREPORT_H
#define HC_DOCTORREPORT_H

#include <stdint.h>
#include <stdio.h>

#include "hostwalls.h"

struct buf;
struct err;

struct finding {
    int known; /* 0: nothing was said about it */
    enum hostwall_state state;
    uint32_t us;
    char detail[240];
};

struct doctorreport {
    struct hostwall_policy policy;
    struct finding findings[HOSTWALL_COUNT];
};

/* One line of the launcher, "name state microseconds detail", without its newline. -EPROTO for
 * anything else. */
int doctorreport_line(struct doctorreport *d, const char *line, struct err *e) MUST_CHECK;

/* What nothing was said about counts as missing: the launcher died on the way. */
void doctorreport_finish(struct doctorreport *d);

/* Demanded, missing and not accepted. */
hostwall_set doctorreport_refused(const struct doctorreport *d);

/* Lines are broken at width columns. */
void doctorreport_table(const struct doctorreport *d, unsigned width, FILE *to);
int doctorreport_json(const struct doctorreport *d, struct buf *to, struct err *e) MUST_CHECK;

#endif
