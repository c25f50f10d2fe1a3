/* `holdcell stop`: ends the kernels that a server with --on-exit keep left, and their keeper. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "command.h"
#include "err.h"
#include "hostids.h"
#include "lockfile.h"
#include "options.h"
#include "takeover.h"

enum {
    END_MS = 30000,
    GONE_TRIES = 300, /* of 10 ms: what was killed goes its last way */
};

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

/* 1: a living process with a host id of the slot's sessions. */
static int is_left(const char *pid, unsigned slot)
{
    const uint32_t base = hostids_base(slot);
    char path[64], line[128], state = 'X';
    unsigned uid = 0;

    snprintf(path, sizeof path, "/proc/%.20s/status", pid);
    FILE *f = fopen(path, "re");
    while (f != NULL && uid == 0 && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "State: %c", &state) != 1)
            (void)!sscanf(line, "Uid: %u", &uid);
    if (f != NULL)
        fclose(f);
    return state != 'Z' && state != 'X' && uid >= base && uid < base + HOSTIDS_BLOCK;
}

static unsigned count_left(unsigned slot)
{
    DIR *dir = opendir("/proc");
    struct dirent *d;
    unsigned count = 0;

    while (dir != NULL && (d = readdir(dir)) != NULL)
        count += d->d_name[0] >= '1' && d->d_name[0] <= '9' && is_left(d->d_name, slot);
    if (dir != NULL)
        closedir(dir);
    return count;
}

/* The slot that the keeper has written; HOSTIDS_SLOTS: none. */
static unsigned kept_slot(int state_dir)
{
    autoclose int fd = openat(state_dir, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    unsigned slot = HOSTIDS_SLOTS;
    char text[64];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    text[n > 0 ? n : 0] = '\0';
    return sscanf(text, "pid %*d\nslot %u\n", &slot) == 1 && slot < HOSTIDS_SLOTS ? slot
                                                                                  : HOSTIDS_SLOTS;
}

/* The keeper ends before what it kept does, when that is not gone in its time. */
static int check_nothing_left(int state_dir, unsigned slot, struct err *e)
{
    char holder[LOCKFILE_HOLDER];
    unsigned count = 0;

    if (slot == HOSTIDS_SLOTS)
        return 0;
    for (int i = 0; i < GONE_TRIES; i++) {
        int rc = lockfile_held(state_dir, "lock", holder, e);
        if (rc != 0) /* the next server has come, and what there is is its own */
            return rc < 0 ? rc : 0;
        count = count_left(slot);
        if (count == 0)
            return 0;
        poll(NULL, 0, 10);
    }
    return err_set(e, EBUSY,
                   "the keeper has ended, but %u killed processes of its sessions are not gone "
                   "(user ids %u to %u); the next server in this directory waits for them",
                   count, hostids_base(slot), hostids_base(slot) + HOSTIDS_BLOCK - 1);
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
    if (rc == 1) {
        const unsigned slot = kept_slot(dir);

        rc = stop_keeper(pidfd, e);
        return rc < 0 ? rc : check_nothing_left(dir, slot, e);
    }
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
