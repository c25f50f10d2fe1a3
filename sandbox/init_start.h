/*
 * init_start - how holdcell-init is started: descriptors, arguments, state of
 * the process at its first instruction, and how it says that it is ready. Shared
 * by the launcher, which execs it, and by init itself.
 *
 * State at entry: pid 1 of the session's pid namespace, inside all seven of the
 * session's namespaces and its final root; parent is the launcher (ppid 0
 * inside), PDEATHSIG is SIGKILL; uid and gid 0 inside (a host id of its own, not
 * the session user's), no groups; permitted, effective and bounding set are
 * SETUID SETGID SETPCAP KILL SYS_CHROOT; no_new_privs set; leader of its own session, no
 * terminal; cwd "/", umask 022, every signal at its default and unblocked;
 * empty environment; core size 1, NOFILE hard limit at least start.nofile.
 *
 * What init must still do itself before it says ready: PR_SET_DUMPABLE 0 (the
 * exec set it to 1), lock the securebits NOROOT, load its own filter, leave its root
 * for the empty one.
 */
#ifndef HC_INIT_START_H
#define HC_INIT_START_H

#include <stdint.h>

#include "cleanup.h"

struct err;

enum {
    INIT_REQUEST_FD =
        3,              /* SOCK_SEQPACKET, initmsg.h; its end of file ends init and the sandbox: the
                          * launcher holds a duplicate of the other side as long as it wants both */
    INIT_READY_FD = 4,  /* pipe, written by init_start_ready() or init_start_failed() */
    INIT_GROUPS_FD = 5, /* with start.groups: a mount of init's own cgroup that it may divide */
    /* 0, 1 and 2 are the session's own /dev/null; nothing else is open. */
};

enum { INIT_START_ARGS = 8 }; /* with the NULL */

/* The hard limits that every process of the session's user gets: what init puts
 * into the drop_plan of its children. */
struct init_start {
    uint64_t nofile, nproc, fsize_bytes;
    uint64_t groups;    /* 1: INIT_GROUPS_FD is there */
    uint64_t workspace; /* 1: the home holds a folder that other sessions have too */
    uint64_t without;   /* SANDBOX_WITHOUT_* of sandbox.h: what the host lacks */
};

/* The text of the arguments; lives as long as the struct. */
struct init_start_args {
    char text[INIT_START_ARGS - 1][40];
    char *argv[INIT_START_ARGS];
};
void init_start_format(const struct init_start *start, struct init_start_args *ret);

/* 0, or -EINVAL when the arguments are not those of init_start_format(). */
int init_start_parse(int argc, char *const argv[], struct init_start *ret,
                     struct err *e) MUST_CHECK;

/* Says "ready" (once) and closes the descriptor. Returns 0 or a negative errno. */
int init_start_ready(int fd) MUST_CHECK;
/* Says why init cannot start and closes the descriptor; the caller exits then. */
void init_start_failed(int fd, const struct err *why);

#endif
