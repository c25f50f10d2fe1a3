/* CREATE: from limits to a sandbox that holds init alone. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "birth.h"
#include "cgfile.h"
#include "err.h"
#include "proc.h"
#include "procmask.h"
#include "report.h"
#include "sandbox_internal.h"
#include "userns.h"

enum {
    READY_TIMEOUT_MS = 20000,
    GIVE_UP_TRIES = 500,  /* of 10 ms; then the next start of this slot sweeps what is left */
    INIT_OOM_SCORE = 400, /* less than a kernel's: pid 1 is the last to go */
    INIT_GROUPS = 512,    /* programs that it starts, and those it may leave behind */
};

static const char init_leaf[] = "init";

/* What init's birth needs from us and we from it; gone when it is ready. */
struct delivery {
    struct mounts mounts;
    int request[2], ready[2], go[2]; /* socketpair; pipes */
};

static void delivery_close(struct delivery *d)
{
    mounts_close(&d->mounts);
    for (unsigned i = 0; i < 2; i++) {
        closep(&d->request[i]);
        closep(&d->ready[i]);
        closep(&d->go[i]);
    }
}

static int take_workspace(struct sandbox *s, const struct sandbox_files *files, int *ret_fd,
                          struct err *e)
{
    if (files->workspace == NULL)
        return 0;
    int r = workspaces_take(&s->host->workspaces, files->workspace, files->workspace_bytes,
                            sandbox_user_id(s), &s->workspace, ret_fd, e);
    if (r == 0) /* an image that is there may be larger than what is asked for now */
        s->workspace_bytes = workspace_bytes(s->workspace);
    return r;
}

static int delivery_open(struct sandbox *s, const struct sandbox_files *files, struct delivery *d,
                         struct err *e)
{
    struct sandbox_host *h = s->host;
    autoclose int workspace_fd = -1;
    int r = take_workspace(s, files, &workspace_fd, e);
    const struct mounts_plan plan = {
        .layers = &h->layers,
        .homes = &h->homes,
        .data = &h->data,
        .limits = &s->limits,
        .files = files,
        .init_id = userns_host_id(h->userns.id_base, userns_outer_init(s->index)),
        .user_id = sandbox_user_id(s),
        .workspace_fd = &workspace_fd,
    };
    if (r == 0)
        r = mounts_new(&plan, &d->mounts, e);

    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, d->request) < 0 ||
        pipe2(d->ready, O_CLOEXEC) < 0 || pipe2(d->go, O_CLOEXEC) < 0)
        return err_sys(e, errno, "make pipes to init");
    return 0;
}

static int open_namespaces(struct sandbox *s, struct err *e)
{
    static const char *const names[SANDBOX_NS_COUNT] = { "user", "mnt",    "net", "ipc",
                                                         "uts",  "cgroup", "pid" };

    for (unsigned i = 0; i < SANDBOX_NS_COUNT; i++) {
        char path[64];

        snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)s->init_pid, names[i]);
        s->ns_fd[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (s->ns_fd[i] < 0)
            return err_sys(e, errno, "open %s", path);
    }
    return 0;
}

/* The child waits: put it under the limits, let it go, hear that init is ready. */
static int deliver(struct sandbox *s, struct delivery *d, struct err *e)
{
    int r = sandbox_set_oom_score(s->init_pid, INIT_OOM_SCORE, e);

    if (r == 0)
        r = cgroup_place(s->cgroup, s->init_pid, e);
    if (r == 0)
        r = procmask_net(s->init_pid, e);
    if (r < 0)
        return r;
    closep(&d->ready[1]);
    closep(&d->request[1]);
    if (write(d->go[1], "g", 1) != 1)
        return err_sys(e, errno, "let init go");
    r = report_wait(d->ready[0], READY_TIMEOUT_MS, e);
    if (r == REPORT_END)
        return err_set(e, ECHILD, "init died before it was ready");
    return r < 0 ? err_wrap(e, "init") : open_namespaces(s, e);
}

static int bear(struct sandbox *s, struct delivery *d, struct err *e)
{
    struct birth b = {
        .mounts = &d->mounts,
        .start = { .nofile = s->limits.nofile,
                   .nproc = s->limits.pids,
                   .fsize_bytes = sandbox_file_size(s),
                   .workspace = s->workspace != NULL,
                   .without = s->host->without },
        .init_fd = s->host->init_fd,
        .request_fd = d->request[1],
        .ready_fd = d->ready[1],
        .ready_read_fd = d->ready[0],
        .go_fd = d->go[0],
        .go_write_fd = d->go[1],
    };
    const uid_t init_id = userns_host_id(s->host->userns.id_base, userns_outer_init(s->index));
    autoclose int leaf_fd = -1;
    autoclose int groups_fd = -1;
    int r = cgroup_leaf_new(s->cgroup, init_leaf, &leaf_fd, e);

    if (r == 0)
        r = cgroup_leaf_share(s->cgroup, init_leaf, leaf_fd, init_id, INIT_GROUPS, &groups_fd, e);
    if (r < 0)
        return r;
    b.groups_fd = groups_fd;
    b.start.groups = groups_fd >= 0;
    pid_t pid = userns_clone_init(&s->host->userns, s->index, leaf_fd, e);
    if (pid == 0)
        birth_run(&b);
    if (pid < 0)
        return pid;
    s->init_pid = pid;
    s->init_pidfd = pidfd_open(pid, 0); /* our child, not reaped: the number is still its own */
    return s->init_pidfd < 0 ? err_sys(e, errno, "open a pidfd of init") : deliver(s, d, e);
}

/* Before anybody knew of it: everything goes, at once. */
static void give_up(struct sandbox *s)
{
    if (s->init_pid > 0) {
        (void)kill(s->init_pid, SIGKILL);
        (void)!proc_reap(s->init_pid, NULL);
    }
    for (int i = 0; i < GIVE_UP_TRIES && sandbox_free(s, NULL) == -EBUSY; i++) {
        (void)!sandbox_kill(s, NULL);
        cgfile_nap();
    }
}

/* Files that are memory: above its limit a full file system would be the end of whoever writes. */
static int check_files(const struct launch_limits *l, const struct sandbox_files *files,
                       struct err *e)
{
    uint64_t left = l->memory_bytes;
    const uint64_t sizes[] = { l->tmp_bytes, l->shm_bytes,
                               files->home == SANDBOX_HOME_MEMORY ? l->home_bytes : 0 };

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i] > left)
            return err_set(e, EINVAL, "file systems in memory are larger than the memory");
        left -= sizes[i];
    }
    return 0;
}

static int check_limits(const struct launch_limits *l, struct err *e)
{
    struct rlimit files;

    if (l->memory_bytes == 0 || l->home_bytes == 0 || l->tmp_bytes == 0 || l->shm_bytes == 0 ||
        l->inodes == 0 || l->pids == 0 || l->cpu_millis < 10 || l->nofile < 16)
        return err_set(e, EINVAL, "a limit is missing or too small");
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_max < l->nofile)
        return err_set(e, EINVAL, "nofile %u is more than the launcher has", l->nofile);
    return 0;
}

int sandbox_create(struct sandbox_host *h, unsigned index, const struct launch_limits *limits,
                   const struct sandbox_files *files, struct sandbox **ret, struct err *e)
{
    struct delivery d = {
        .mounts = MOUNTS_NONE, .request = { -1, -1 }, .ready = { -1, -1 }, .go = { -1, -1 }
    };
    static const struct sandbox_files none = { .home = SANDBOX_HOME_MEMORY };
    int r = check_limits(limits, e);

    if (files == NULL)
        files = &none;
    if (r == 0)
        r = check_files(limits, files, e);
    if (r < 0)
        return r;
    check(index < USERNS_SESSIONS);
    struct sandbox *s = xcalloc(1, sizeof *s);
    s->host = h;
    s->index = index;
    s->limits = *limits;
    s->init_pidfd = s->request_fd = s->run_fd = s->home_fd = -1;
    for (unsigned i = 0; i < SANDBOX_NS_COUNT; i++)
        s->ns_fd[i] = -1;
    r = cgroup_new(h->cgroups, index, limits, &s->cgroup, e);
    if (r == 0)
        r = delivery_open(s, files, &d, e);
    s->home_fd = take_fd(&d.mounts.home_fd);
    if (r == 0)
        r = bear(s, &d, e);
    if (r == 0)
        r = cgroup_limit_cpu(s->cgroup, limits->cpu_millis, e);
    if (r == 0) {
        s->request_fd = take_fd(&d.request[0]);
        s->run_fd = take_fd(&d.mounts.run_fd);
        *ret = s;
    }
    delivery_close(&d);
    if (r < 0) /* now that its descriptors are free: it may be they that were missing */
        give_up(s);
    return r;
}
