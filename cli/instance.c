#include "instance.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "err.h"
#include "hostids.h"
#include "keepermsg.h"
#include "lockfile.h"
#include "rmtree.h"

#define SLOT_TABLE "/run/holdcell/instances"

enum {
    SETTLE_MS = 15000, /* of what a dead server left, or of a keeper that ends: its sandboxes go */
    NAP_MS = 50,
};

/* Makes path and its missing parents; mode is that of the last one. */
static int make_directories(const char *path, mode_t mode, struct err *e)
{
    char part[PATH_MAX];
    size_t n = strlen(path);

    if (n == 0 || n >= sizeof part)
        return err_set(e, ENAMETOOLONG, "directory '%.64s'", path);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        part[i] = '\0';
        if (mkdir(part, i == n ? mode : 0755) < 0 && errno != EEXIST)
            return err_sys(e, errno, "make directory '%s'", part);
        part[i] = path[i];
    }
    return 0;
}

/* The state directory decides who runs: nobody else may be able to swap it. */
static int open_state_dir(const char *path, int *ret, struct err *e)
{
    struct stat st;
    int rc = make_directories(path, 0711, e);

    if (rc < 0)
        return rc;
    autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, errno, "open state directory '%s'", path);
    if (st.st_uid != 0 || (st.st_mode & 022) != 0)
        return err_set(e, EPERM,
                       "state directory '%s' must belong to root and be writable by root only",
                       path);
    *ret = take_fd(&fd);
    return 0;
}

/* Opens name below dir and locks it. Returns 1 when it is ours, 0 when another
 * process holds it (its text is in ret_holder then), negative on failure. */
static int lock_file(int dir, const char *name, int *ret_fd, char ret_holder[LOCKFILE_HOLDER],
                     struct err *e)
{
    autoclose int fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_sys(e, errno, "open lock '%s'", name);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return err_sys(e, errno, "lock '%s'", name);
        (void)lockfile_holder(fd, ret_holder); /* empty where it tells nothing */
        return 0;
    }
    *ret_fd = take_fd(&fd);
    return 1;
}

/* The slot that the last run on this state directory had; HOSTIDS_SLOTS when none
 * is told. */
static unsigned last_slot(int state_fd)
{
    char text[64];
    unsigned slot = HOSTIDS_SLOTS;
    int pid;
    ssize_t n = pread(state_fd, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "pid %d\nslot %u\n", &pid, &slot) != 2 || slot > HOSTIDS_SLOTS)
        return HOSTIDS_SLOTS;
    return slot;
}

/* The last run's slot is tried first: if that run was killed, its cgroups are still
 * there, and the launcher of the slot sweeps them. */
static int take_slot(struct instance *i, unsigned last, struct err *e)
{
    int rc = make_directories(SLOT_TABLE, 0700, e);

    if (rc < 0)
        return rc;
    autoclose int table = open(SLOT_TABLE, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (table < 0)
        return err_sys(e, errno, "open '%s'", SLOT_TABLE);
    for (unsigned n = last < HOSTIDS_SLOTS ? 0 : 1; n <= HOSTIDS_SLOTS; n++) {
        unsigned slot = n == 0 ? last : n - 1;
        char name[16], holder[LOCKFILE_HOLDER];

        snprintf(name, sizeof name, "%u", slot);
        rc = lock_file(table, name, &i->slot_fd, holder, e);
        if (rc < 0)
            return rc;
        if (rc > 0) {
            i->slot = slot;
            return lockfile_write(i->slot_fd, getpid(), i->state_dir, e);
        }
    }
    return err_set(e, EAGAIN, "all %d instance slots of this host are taken", HOSTIDS_SLOTS);
}

static int make_gateway_dir(int state, struct instance *i, struct err *e)
{
    uid_t id = hostids_gateway(hostids_base(i->slot));
    int rc = rmtree_at(state, "gateway", e);

    if (rc < 0)
        return rc;
    if (mkdirat(state, "gateway", 0700) < 0)
        return err_sys(e, errno, "make directory '%s/gateway'", i->state_dir);
    i->gateway_dir_fd = openat(state, "gateway", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (i->gateway_dir_fd < 0 || fchown(i->gateway_dir_fd, id, id) < 0)
        return err_sys(e, errno, "directory '%s/gateway'", i->state_dir);
    return 0;
}

int instance_name_us(const struct instance *i, struct err *e)
{
    return lockfile_write_slot(i->state_fd, getpid(), i->slot, e);
}

/* The holder is dead, or its number is ours by now, and what it left ends in a moment, with the lock; or it is
 * the keeper that closed its door while we came: it ends, is kept again, or has another server now. */
static int will_change(const char *holder, pid_t left)
{
    int pid = 0;

    if (sscanf(holder, "pid %d", &pid) != 1 || pid <= 0)
        return 0;
    autoclose int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = { .fd = pidfd, .events = POLLIN }; /* readable: dead, but not reaped */
    if (pidfd < 0)
        return errno == ESRCH;
    return pid == left || pid == getpid() || poll(&p, 1, 0) > 0;
}

/* Returns 1 when the lock is ours, 0 when i->keeper is there. */
static int take_state(struct instance *i, struct err *e)
{
    char holder[LOCKFILE_HOLDER];

    for (int waited = 0;; waited += NAP_MS) {
        int rc = lock_file(i->state_dir_fd, "lock", &i->state_fd, holder, e);
        if (rc != 0)
            return rc;
        rc = takeover_open(i->state_dir_fd, &i->keeper, e);
        if (rc == 1)
            return 0;
        if (rc < 0 && rc != -EBUSY) {
            err_wrap(e,
                     "kernels are kept in '%.80s' and cannot be taken over "
                     "(`holdcell stop` ends them)",
                     i->state_dir);
            return rc;
        }
        /* Busy: who takes them over may be dying itself, or fail and leave them to us. */
        if (waited >= SETTLE_MS || (rc == 0 && !will_change(holder, i->keeper.pid)))
            break;
        poll(NULL, 0, NAP_MS);
    }
    return err_set(e, EBUSY, "state directory '%s' is in use by another holdcell (%s)",
                   i->state_dir, holder);
}

static int open_new(struct instance *i, struct err *e)
{
    int rc = take_slot(i, last_slot(i->state_fd), e);

    if (rc == 0 && unlinkat(i->state_dir_fd, KEEPER_SOCKET, 0) < 0 && errno != ENOENT)
        rc = err_sys(e, errno, "remove '%s/%s'", i->state_dir, KEEPER_SOCKET);
    return rc < 0 ? rc : make_gateway_dir(i->state_dir_fd, i, e);
}

static void inherit(struct instance *i)
{
    i->slot = i->keeper.slot;
    i->state_fd = take_fd(&i->keeper.state_fd);
    i->slot_fd = take_fd(&i->keeper.slot_fd);
    i->gateway_dir_fd = take_fd(&i->keeper.dir_fd);
}

int instance_open(const char *state_dir, struct instance *ret, struct err *e)
{
    struct instance i = INSTANCE_NONE;
    int rc = open_state_dir(state_dir, &i.state_dir_fd, e);

    if (rc < 0)
        return err_wrap(e, "state directory (--state-dir)"), rc;
    if (realpath(state_dir, i.state_dir) == NULL)
        rc = err_sys(e, errno, "state directory '%s'", state_dir);
    if (rc == 0)
        rc = take_state(&i, e);
    if (rc > 0)
        rc = open_new(&i, e);
    else if (rc == 0)
        inherit(&i);
    /* A keeper holds it until it has been taken over. */
    if (rc == 0 && i.keeper.link == NULL)
        rc = instance_name_us(&i, e);
    if (rc < 0) {
        instance_close(&i);
        return rc;
    }
    *ret = i;
    return 0;
}

int instance_borrow_slot(struct instance *ret, struct err *e)
{
    struct instance i = INSTANCE_NONE;
    int rc = make_directories(SLOT_TABLE, 0700, e);

    if (rc < 0)
        return rc;
    autoclose int table = open(SLOT_TABLE, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (table < 0)
        return err_sys(e, errno, "open '%s'", SLOT_TABLE);
    for (unsigned slot = HOSTIDS_SLOTS; slot-- > 0;) {
        char name[16], holder[LOCKFILE_HOLDER];

        snprintf(name, sizeof name, "%u", slot);
        rc = lock_file(table, name, &i.slot_fd, holder, e);
        if (rc < 0)
            return rc;
        if (rc > 0) {
            i.slot = slot;
            *ret = i;
            return lockfile_write(ret->slot_fd, getpid(), "doctor", e);
        }
    }
    return err_set(e, EAGAIN, "all %d instance slots of this host are taken", HOSTIDS_SLOTS);
}

void instance_close(struct instance *i)
{
    closep(&i->gateway_dir_fd);
    closep(&i->slot_fd);
    closep(&i->state_fd);
    closep(&i->state_dir_fd);
    takeover_close(&i->keeper);
    *i = INSTANCE_NONE;
}
