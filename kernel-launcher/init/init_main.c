/*
 * holdcell-init: pid 1 of a sandbox. Reaps orphans and does, through children that
 * become the session's user, what the gateway asks to be done inside (initmsg.h).
 *
 * It shares the sandbox with hostile code and is guarded from it by another user
 * id, by not being dumpable, and by never looking at anything the session wrote:
 * it opens no path at all. How it is started: init_start.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "drop.h"
#include "err.h"
#include "harden.h"
#include "init_start.h"
#include "jail.h"
#include "landlock.h"
#include "oomscore.h"
#include "sandbox.h"
#include "server.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { RULES_MAX = 16 };

/* The session's rules, and what init needs above them. */
static void make_rules(const struct init_start *start, struct landlock_rule rules[RULES_MAX])
{
    const struct landlock_rule more[] = {
        { start->groups ? "" : NULL, LANDLOCK_KEEP, INIT_GROUPS_FD },
        { NULL, LANDLOCK_READ, -1 },
    };
    unsigned n = 0;

    for (const struct landlock_rule *r = landlock_session_rules(start->workspace != 0);
         r->path != NULL; r++) {
        check(n + COUNT(more) < RULES_MAX);
        rules[n++] = *r;
    }
    memcpy(rules + n, more, sizeof more);
}

static int drop_to_init(const struct init_start *start, struct err *e)
{
    struct landlock_rule rules[RULES_MAX];
    autoclose int root_fd = -1;
    autoclose int score_fd = -1;
    int r = jail_open_root(&root_fd, e);

    if (r == 0)
        r = oomscore_open(&score_fd, e);
    if (r < 0)
        return r;
    /* In their places already, but for the last two. */
    const int fds[] = {
        0,       1,       2, INIT_REQUEST_FD, INIT_READY_FD, start->groups ? INIT_GROUPS_FD : 0,
        root_fd, score_fd
    };
    const struct drop_plan plan = {
        .uid = 0,
        .gid = 0,
        .umask = 022,
        .filter = start->without & SANDBOX_WITHOUT_SECCOMP ? DROP_FILTER_NONE : DROP_FILTER_INIT,
        .keep_capabilities = 1,
        .new_session = 1,
        .fds = fds,
        .fd_count = COUNT(fds),
        .exec_status_fd = -1,
        .nofile = start->nofile,
        .nproc = start->nproc,
        .fsize_bytes = start->fsize_bytes,
        /* Init itself needs no file; it enters the layer so that all of its children
         * are in one and the same. */
        .landlock =
            start->without & SANDBOX_WITHOUT_LANDLOCK ? DROP_LANDLOCK_NONE : DROP_LANDLOCK_DEMANDED,
        .landlock_rules = rules,
    };

    make_rules(start, rules);
    r = drop_run(&plan, e);
    root_fd = score_fd = -1; /* the drop has moved them to their places */
    if (r == 0)
        r = oomscore_init(JAIL_SCORE_FD, e);
    return r < 0 ? r : jail_enter(e);
}

int main(int argc, char **argv)
{
    struct init_start start;
    struct err e = { 0 };
    int r;

    /* First of all: the exec made us dumpable, and the session's other processes may be there. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        r = err_sys(&e, errno, "PR_SET_DUMPABLE");
    else
        r = harden_memory(&e);
    if (r == 0)
        r = init_start_parse(argc, argv, &start, &e);
    if (r == 0)
        r = drop_to_init(&start, &e);
    if (r < 0) {
        init_start_failed(INIT_READY_FD, &e);
        _exit(1);
    }
    if (init_start_ready(INIT_READY_FD) < 0)
        _exit(1); /* the launcher is gone */
    _exit(server_run(INIT_REQUEST_FD, &start, &e) < 0);
}
