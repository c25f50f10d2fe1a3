/* `holdcell stop`: ends the kernels that a server with --on-exit keep left, and their keeper. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "command.h"
#include "err.h"
#include "lockfile.h"
#include "options.h"
#include "takeover.h"

enum { END_MS = 30000 };

struct stop_options {
    int help;
    const char *state_dir;
};

static const struct option_spec specs[] = {
    { "help", NULL, OPTION_FLAG, offsetof(struct stop_options, help), 0, 0, "show this list" },
    { "state-dir", "DIR", OPTION_STRING, offsetof(struct stop_options, state_dir), 0, 0,
      "state of the instance, as of `holdcell serve`" },
};
enum { SPEC_COUNT = sizeof specs / sizeof specs[0] };

static void usage(void)
{
    printf(
        "usage: holdcell stop --state-dir DIR\n\n"
        "Ends the kernels that `holdcell serve --on-exit keep` left in this state directory, and\n"
        "their keeper; returns when all is gone. A server that runs is ended by SIGTERM "
        "instead.\n\n");
    options_help(specs, SPEC_COUNT, stdout);
}

static int stop_keeper(int pidfd, struct err *e)
{
    struct pollfd p = { .fd = pidfd, .events = POLLIN };

    if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0 && errno != ESRCH)
        return err_sys(e, errno, "signal the keeper");
    int n = poll(&p, 1, END_MS);
    if (n < 0)
        return err_sys(e, errno, "wait for the keeper");
    return n == 0 ? err_set(e, ETIMEDOUT, "the keeper does not end") : 0;
}

static int stop(const struct stop_options *o, struct err *e)
{
    autoclose int dir = open(o->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int pidfd = -1;
    char holder[LOCKFILE_HOLDER];

    if (dir < 0)
        return err_sys(e, errno, "state directory '%s'", o->state_dir);
    int rc = takeover_find(dir, &pidfd, e);
    if (rc == 1)
        return stop_keeper(pidfd, e);
    if (rc == 0)
        rc = lockfile_held(dir, "lock", holder, e);
    if (rc == 1)
        return err_set(e, EBUSY, "a server runs in '%s' (%s): SIGTERM ends it", o->state_dir,
                       holder);
    if (rc == 0)
        printf("no kernels are kept in '%s'\n", o->state_dir);
    return rc;
}

int command_stop(int argc, char **argv)
{
    struct stop_options o = { 0 };
    struct err e = { 0 };
    int rc = options_parse(specs, SPEC_COUNT, argc, argv, &o, NULL, &e);

    if (rc == 0 && o.help) {
        usage();
        return 0;
    }
    if (rc == 0 && o.state_dir == NULL)
        rc = err_set(&e, EINVAL, "option --state-dir is needed");
    if (rc == 0)
        rc = stop(&o, &e);
    if (rc == 0)
        return 0;
    fprintf(stderr, "holdcell stop: %s\n", e.msg);
    return e.code == EINVAL ? EXIT_USAGE : 1;
}
