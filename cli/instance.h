/*
 * instance - what makes one running server distinct from others on the host: its
 * state directory and its slot in the host-wide table, both held by flock for as
 * long as a process of the instance lives.
 */
#ifndef HC_INSTANCE_H
#define HC_INSTANCE_H

#include <limits.h>

#include "cleanup.h"
#include "takeover.h"

struct err;

struct instance {
    int state_fd;           /* owned: <state>/lock, locked */
    int slot_fd;            /* owned: /run/holdcell/instances/<slot>, locked */
    int gateway_dir_fd;     /* owned: <state>/gateway, the gateway's private directory */
    int state_dir_fd;       /* owned: <state> */
    struct takeover keeper; /* of kernels that an earlier server left; link NULL: none */
    unsigned slot;          /* 0..HOSTIDS_SLOTS - 1 */
    char state_dir[PATH_MAX];
};

/* Makes the directories, takes both locks (from a keeper, when there is one: then nothing is
 * emptied), empties the gateway's directory (what
 * an earlier run left there is of no use) and gives it to this slot's gateway id.
 * -EBUSY when another instance has the state directory; the text names it. */
int instance_open(const char *state_dir, struct instance *ret, struct err *e) MUST_CHECK;
/* Only a free slot of the host's table, for a moment: of those that servers take last. */
int instance_borrow_slot(struct instance *ret, struct err *e) MUST_CHECK;
void instance_close(struct instance *i); /* accepts what instance_open() left untouched */

/* Its lock says from now on that this process has it, for whoever comes next. A keeper names
 * itself. */
int instance_name_us(const struct instance *i, struct err *e) MUST_CHECK;

#define INSTANCE_NONE                         \
    ((struct instance){ .state_fd = -1,       \
                        .slot_fd = -1,        \
                        .gateway_dir_fd = -1, \
                        .state_dir_fd = -1,   \
                        .keeper = TAKEOVER_NONE })

#endif
