/*
 * auditfetch - fetches the audit file from the launcher, which opens it, for audit.h.
 * Without the file the gateway serves all the same, not ready, or refuses what must be
 * audited.
 */
#ifndef HC_AUDITFETCH_H
#define HC_AUDITFETCH_H

#include "cleanup.h"

struct err;
struct launchclient;

struct auditfetch {
    struct launchclient *launcher; /* borrowed */
    void (*answered)(void *arg);   /* with a file or without one */
    void *arg;
};

/* At the start, and again when the file was rotated. f must live as long as the launcher
 * is asked. */
int auditfetch_start(struct auditfetch *f, struct err *e) MUST_CHECK;

#endif
