/*
 * caps - capabilities, securebits and ids of the calling process, by direct
 * system calls: libc's set*id() signal all threads and libcap allocates, and
 * both are wrong in a child of a fork.
 */
#ifndef HC_CAPS_H
#define HC_CAPS_H

#include <stdint.h>
#include <sys/types.h>

#include "cleanup.h"

struct err;

/* What holdcell-init keeps: SETUID SETGID SETPCAP KILL, and SYS_CHROOT to leave its empty root. */
uint64_t caps_of_init(void);
/* What root's daemons keep on the host. */
uint64_t caps_of_daemons(void);

/* Takes everything else out of the bounding set and, where it was there, out of the other
 * sets. Needs CAP_SETPCAP. */
int caps_keep(uint64_t keep, struct err *e) MUST_CHECK;

/* Each returns 0 or a negative errno. The first three need CAP_SETPCAP, the
 * fourth CAP_SETUID and CAP_SETGID, in the caller's user namespace. */
int caps_empty_bounding_set(struct err *e) MUST_CHECK;
int caps_clear_ambient(struct err *e) MUST_CHECK;
/* uid 0 gives nothing at exec, a uid change from 0 still takes all away, nothing
 * can be kept or made ambient; locked. */
int caps_lock_securebits(struct err *e) MUST_CHECK;
int caps_become(uid_t uid, gid_t gid,
                struct err *e) MUST_CHECK; /* real, effective, saved; no groups */
int caps_set(uint64_t keep,
             struct err *e) MUST_CHECK; /* permitted and effective; inheritable none */

/* -EPERM when ids, groups, capability sets or bounding set are not
 * exactly what the calls above leave behind. */
int caps_verify(uid_t uid, gid_t gid, uint64_t keep, struct err *e) MUST_CHECK;

#endif
