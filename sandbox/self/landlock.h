/*
 * landlock - the session's rules on files, a second wall behind the mount
 * namespace: read and execute everywhere, write only where a session may write.
 *
 * What it does not do, on purpose:
 * - TCP: the network namespace is the session's own and empty but for lo, and
 *   servers and clients on lo must work.
 * - Scopes (ABI 6) for signals and abstract sockets: the pid and the network
 *   namespace already end both at the session's edge, while every kernel of a
 *   session enters a layer of its own, so that a scope would only keep a terminal
 *   from signalling the kernel beside it.
 */
#ifndef HC_LANDLOCK_H
#define HC_LANDLOCK_H

#include "cleanup.h"

struct err;

/* The kernel's ABI, 1 and up; 0 when Landlock is not built in or not enabled; a
 * negative errno when the kernel would not say. */
int landlock_abi(void);

struct landlock_rule {
    const char
        *path; /* one that does not exist is skipped: it gets no right; "": the directory fd */
    enum {
        LANDLOCK_READ,      /* read, list and execute */
        LANDLOCK_DEVICE,    /* read, write and ioctl of nodes that exist */
        LANDLOCK_WRITE,     /* everything but devices and ioctl on them */
        LANDLOCK_LOOK,      /* read and list */
        LANDLOCK_KEEP,      /* WRITE without execution */
        LANDLOCK_NO_SOCKET, /* WRITE without new sockets */
    } kind;
    int fd;
};

/* The rules of a session, ended by a NULL path; with_workspace: its home holds a folder that other sessions have too. */
const struct landlock_rule *landlock_session_rules(int with_workspace);

/* Puts the calling thread into a new layer with these rules, using every right that
 * this ABI knows: that of landlock_abi(), or a lower one for the layer of an older
 * kernel. Needs no_new_privs. Returns 0, -ENOSYS for ABI 0, the ABI's own errno when it
 * is one, or another negative errno. */
int landlock_enter(int abi, const struct landlock_rule *rules, struct err *e) MUST_CHECK;

/* The same, and no TCP of its own (ABI 4), no abstract socket and no signal of who is
 * outside of the layer (ABI 6). */
int landlock_enter_alone(int abi, const struct landlock_rule *rules, struct err *e) MUST_CHECK;

#endif
