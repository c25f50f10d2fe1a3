/*
 * jail - init's own root is an empty folder: it opens no path, and whoever makes it open or
 * exec one all the same finds nothing there. Its children go back to the session's root
 * before they become the session's user, by a descriptor that none of them keeps.
 */
#ifndef HC_JAIL_H
#define HC_JAIL_H

#include "cleanup.h"
#include "init_start.h"

struct err;

enum {
    JAIL_ROOT_FD = INIT_GROUPS_FD + 1, /* O_PATH: the session's root */
    JAIL_SCORE_FD,                     /* oomscore.h */
};

/* A descriptor of the present root, to be placed as JAIL_ROOT_FD. */
int jail_open_root(int *ret_fd, struct err *e) MUST_CHECK;
/* Needs CAP_SYS_CHROOT, as does the way back. */
int jail_enter(struct err *e) MUST_CHECK;
int jail_leave(struct err *e) MUST_CHECK;

#endif
