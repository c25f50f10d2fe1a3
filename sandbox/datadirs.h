/*
 * datadirs - the operator's directories that sessions see, read-only, as /data/NAME. Each
 * session sees one through an overlay of its own, whose inodes no other session has: locks
 * and watches on the same file do not meet.
 */
#ifndef HC_DATADIRS_H
#define HC_DATADIRS_H

#include <stdint.h>

#include "cleanup.h"
#include "namedpath.h"

struct err;
struct layers;
struct view;

struct datadirs {
    unsigned count;
    struct {
        int fd;                                       /* owned */
        char target[sizeof "data/" + NAMEDPATH_NAME]; /* relative to a session's root */
    } dir[NAMEDPATH_MAX];
};

/* list: NAME=/PATH:... Opens each and tries an overlay over it. The error names the entry: it does
 * not exist, is no directory, its file system cannot be seen through an overlay, or something is mounted
 * below it, which sessions would not see. On failure *d is as it was. */
int datadirs_open(const char *list, const struct layers *layers, struct datadirs *d,
                  struct err *e) MUST_CHECK;
void datadirs_close(struct datadirs *d);

/* The directories' names as bits, in the order of the list. -ENOENT: there is none of that name. */
int datadirs_bit(const struct datadirs *d, struct view name, uint32_t *ret) MUST_CHECK;
uint32_t datadirs_all(const struct datadirs *d);

/* A detached mount, for one session. */
int datadirs_mount(const struct datadirs *d, unsigned i, const struct layers *layers, int *ret_fd,
                   struct err *e) MUST_CHECK;

#endif
