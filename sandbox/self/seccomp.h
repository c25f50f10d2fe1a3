/*
 * seccomp - the filters of system calls, compiled at build time from
 * sandbox/profiles and sandbox/gen/profile.c.
 */
#ifndef HC_SECCOMP_H
#define HC_SECCOMP_H

#include <linux/filter.h>
#include <stddef.h>

#include "cleanup.h"

struct err;

enum seccomp_filter {
    SECCOMP_SESSION,       /* every process of a session's user */
    SECCOMP_INIT,          /* pid 1 of a sandbox; holds all of the session's, for filters add up */
    SECCOMP_GATEWAY,       /* the unprivileged server */
    SECCOMP_GATEWAY_START, /* the same, and its exec: until it has loaded the other */
    SECCOMP_LAUNCHER,      /* holds all of the above */
    SECCOMP_SUPERVISOR,    /* holds the launcher's */
};

/* Loads the filter into the calling thread, for good. Needs no_new_privs. */
int seccomp_load(enum seccomp_filter filter, struct err *e) MUST_CHECK;

/* 0 when the kernel has no filters at all. When it has, one that cannot be loaded is an error. */
int seccomp_offered(void);

/* The program itself, for tests and doctor; lives for ever. */
const struct sock_filter *seccomp_program(enum seccomp_filter filter, size_t *ret_count);

#endif
