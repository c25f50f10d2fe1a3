/* Control groups: a session's group is made as always (cgroup.h), with small limits, and each
 * limit is run into. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "birth.h"
#include "cgfile.h"
#include "cgroup_ops.h"
#include "err.h"
#include "probes.h"
#include "proc.h"
#include "sandbox_internal.h"

enum {
    MEMORY_LIMIT = 16 << 20,
    MEMORY_WANTED = 48 << 20,
    PIDS_LIMIT = 8,
    PIDS_WANTED = 32,
    CPU_MILLIS = 100, /* of the trial of that limit; the others are not to wait for it */
    CPU_AMPLE = 4000,
    ENDED = 42, /* exit status of a child that was let through */
    NAPS = 1000,
};

static const char leaf_name[] = "k1-1";

static const struct launch_limits small = {
    .memory_bytes = MEMORY_LIMIT,
    .home_bytes = 1 << 20,
    .tmp_bytes = 1 << 20,
    .shm_bytes = 1 << 20,
    .inodes = 64,
    .pids = PIDS_LIMIT,
    .cpu_millis = CPU_AMPLE,
    .nofile = 64,
};

struct group {
    struct cgroup_base *own, *base;
    struct cgroup *cg;
    int leaf_fd;
};

static int group_open_with(const struct probe_env *env, const struct launch_limits *limits,
                           struct group *g, struct err *e)
{
    *g = (struct group){ .leaf_fd = -1 };
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) /* of what a fork bomb leaves */
        return err_sys(e, errno, "become a subreaper");
    int r = env->host == NULL ? cgroup_base_open(env->slot, env->cgroup_parent, &g->own, e) : 0;
    if (r < 0)
        return r;
    g->base = env->host != NULL ? env->host->cgroups : g->own;
    r = cgroup_new(g->base, USERNS_SESSIONS - 1, limits, &g->cg, e);
    if (r == 0)
        r = cgroup_limit_cpu(g->cg, limits->cpu_millis, e);
    return r < 0 ? r : cgroup_leaf_new(g->cg, leaf_name, &g->leaf_fd, e);
}

static int group_open(const struct probe_env *env, struct group *g, struct err *e)
{
    return group_open_with(env, &small, g, e);
}

/* Ends and removes all, whatever the verdict was. */
static int group_close(struct group *g, int verdict, struct err *e)
{
    struct err later = { 0 };
    int r = 0;

    closep(&g->leaf_fd);
    if (g->cg != NULL) {
        (void)!cgroup_kill(g->cg, NULL, NULL);
        for (int i = 0; i < NAPS && !cgroup_empty(g->cg, NULL); i++)
            cgfile_nap();
        while (waitpid(-1, NULL, __WALL) > 0)
            ;
        for (int i = 0; i < NAPS && (r = cgroup_free(g->cg, &later)) == -EBUSY; i++)
            cgfile_nap();
    }
    g->own = cgroup_base_close(g->own);
    if (verdict == 0 && r < 0)
        return err_set(e, later.code, "%s", later.msg);
    return verdict;
}

typedef int child_fn(const void *arg); /* its result is the exit status */

static int group_child(struct group *g, child_fn *fn, const void *arg, pid_t *ret_pid,
                       struct err *e)
{
    int go[2];

    if (pipe2(go, O_CLOEXEC) < 0)
        return err_sys(e, errno, "pipe");
    pid_t pid = proc_clone(0, g->leaf_fd, NULL);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(birth_wait_go(go[0], go[1]) == 0 ? fn(arg) : 1);
    }
    close(go[0]);
    int r = pid < 0 ? err_sys(e, -pid, "clone into a group") : cgroup_place(g->cg, pid, e);
    if (r == 0 && write(go[1], "g", 1) != 1)
        r = err_sys(e, errno, "let the process go");
    close(go[1]);
    if (r == 0)
        *ret_pid = pid;
    return r;
}

static int wait_forever(const void *arg)
{
    (void)arg;
    while (pause() < 0)
        ;
    return 0;
}

/* ---- place ---- */

static void tell_place(const struct cgroup_base *b, struct probe_result *ret)
{
    char path[PATH_MAX] = "", link[64];

    snprintf(link, sizeof link, "/proc/self/fd/%d", b->place.unified_fd);
    if (readlink(link, path, sizeof path - 1) < 0)
        path[0] = '\0';
    if (b->ops->is_v2)
        probe_say(ret, HOSTWALL_PRESENT, "cgroup v2, below %.160s", path);
    else
        probe_say(ret, HOSTWALL_PRESENT, "controllers of cgroup v1, the unified tree for the rest");
}

int probe_cgroups(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct group g;
    int r = group_open(env, &g, e);

    if (r == 0)
        tell_place(g.base, ret);
    return group_close(&g, r, e);
}

static int tell_groups(const void *arg)
{
    char text[4096];
    const char *want = arg, *unified;
    autoclose int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (proc < 0 || cgfile_read(proc, "cgroup", text, sizeof text) < 0)
        return 1;
    unified = strstr(text, "0::");
    return unified != NULL && strstr(unified, want) != NULL ? ENDED : 1;
}

/* -1: by a signal. */
static int exit_status(pid_t pid, int *ret_signal)
{
    int status = 0;

    if (proc_reap(pid, &status) < 0)
        return -1;
    *ret_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int probe_into_cgroup(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct group g;
    char want[128];
    pid_t pid = -1;
    int signo = 0, r = group_open(env, &g, e);

    (void)ret;
    if (r == 0) {
        snprintf(want, sizeof want, "%s/s/%s/%s", g.base->name, g.cg->name, leaf_name);
        r = group_child(&g, tell_groups, want, &pid, e);
    }
    if (r == 0 && exit_status(pid, &signo) != ENDED)
        r = err_set(e, EPROTO, "the process was not born into its group");
    return group_close(&g, r, e);
}

/* ---- memory ---- */

static int take_memory(const void *arg)
{
    volatile char *at =
        mmap(NULL, MEMORY_WANTED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)arg;
    if (at == MAP_FAILED)
        return 1;
    /* The group's first to go, whatever this process inherited. */
    autoclose int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "1000", 4) != 4)
        return 1;
    for (size_t i = 0; i < MEMORY_WANTED; i += 4096)
        at[i] = 1;
    return ENDED;
}

static int check_memory(struct group *g, struct err *e)
{
    struct launch_status_answer before = { 0 }, after = { 0 };
    pid_t pid = -1;
    int signo = 0;
    int r = cgroup_status(g->cg, 0, &before, e);

    if (r == 0 && before.memory_limit_bytes != MEMORY_LIMIT)
        r = err_set(e, EPROTO, "the limit reads as %" PRIu64 ", not as it was written",
                    before.memory_limit_bytes);
    if (r == 0)
        r = group_child(g, take_memory, NULL, &pid, e);
    if (r < 0)
        return r;
    int status = exit_status(pid, &signo);
    r = cgroup_status(g->cg, 0, &after, e);
    if (r < 0)
        return r;
    if (status >= 0 || signo != SIGKILL)
        return err_set(e, EPROTO, "a process took %d MiB in a group that may have %d MiB",
                       MEMORY_WANTED >> 20, MEMORY_LIMIT >> 20);
    if (after.oom_kills == before.oom_kills)
        return err_set(e, EPROTO, "a kill for lack of memory was not counted");
    return 0;
}

int probe_memory_limit(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct group g;
    int r = group_open(env, &g, e);

    (void)ret;
    if (r == 0)
        r = check_memory(&g, e);
    return group_close(&g, r, e);
}

static int host_has_swap(void)
{
    char text[512];
    autoclose int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (proc < 0 || cgfile_read(proc, "swaps", text, sizeof text) < 0)
        return 0;
    char *line = strchr(text, '\n'); /* the first one is a heading */
    return line != NULL && line[1] != '\0';
}

/* As it was written: nothing in the swap with v2, both together with v1. */
static int check_swap_setting(const struct group *g, int *ret_there, struct err *e)
{
    char text[64] = "";
    const int v2 = g->base->ops->is_v2, fd = v2 ? g->cg->fd : g->cg->v1[CGPLACE_MEMORY];
    const char *name = v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes";
    int r = cgfile_read(fd, name, text, sizeof text);

    *ret_there = r != -ENOENT && r != -EOPNOTSUPP;
    if (r < 0)
        return !*ret_there ? 0 : err_sys(e, -r, "read %s", name);
    text[strcspn(text, "\n")] = '\0';
    if (text[0] < '0' || text[0] > '9' ||
        strtoull(text, NULL, 10) != (v2 ? 0 : (unsigned long long)MEMORY_LIMIT))
        return err_set(e, EPROTO, "%s reads as '%s', not as it was written", name, text);
    return 0;
}

/* Where there is swap, what a group wants beyond its memory must not go there. */
static int check_swap(struct group *g, struct probe_result *ret, struct err *e)
{
    int there, r = check_swap_setting(g, &there, e);

    if (r < 0)
        return r;
    if (!host_has_swap()) {
        probe_say(ret, HOSTWALL_PRESENT,
                  there ? "the limit is set; it was not run into, for the host has no swap"
                        : "the host has no swap");
        return 0;
    }
    if (!there) {
        probe_say(ret, HOSTWALL_WEAKER, "the kernel does not account swap, and the host has some");
        return 0;
    }
    return check_memory(g, e);
}

int probe_swap_limit(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct group g;
    int r = group_open(env, &g, e);

    if (r == 0)
        r = check_swap(&g, ret, e);
    return group_close(&g, r, e);
}

/* ---- processes ---- */

/* Those that were let through, at most PIDS_WANTED; itself counts. */
static int fork_many(const void *arg)
{
    int count = 1;

    (void)arg;
    while (count < PIDS_WANTED) {
        pid_t pid = fork();

        if (pid == 0)
            wait_forever(NULL);
        if (pid < 0)
            return errno == EAGAIN ? count : PIDS_WANTED + 1;
        count++;
    }
    return count;
}

int probe_pids_limit(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct launch_status_answer s = { 0 };
    struct group g;
    pid_t pid = -1;
    int signo = 0, r = group_open(env, &g, e);

    (void)ret;
    if (r == 0)
        r = cgroup_status(g.cg, 0, &s, e);
    if (r == 0 && s.pids_limit != PIDS_LIMIT)
        r = err_set(e, EPROTO, "the limit reads as %" PRIu64 ", not as it was written",
                    s.pids_limit);
    if (r == 0)
        r = group_child(&g, fork_many, NULL, &pid, e);
    if (r == 0) {
        int count = exit_status(pid, &signo);

        if (count != PIDS_LIMIT)
            r = err_set(e, EPROTO, "%d processes came to life in a group that may have %d", count,
                        PIDS_LIMIT);
    }
    return group_close(&g, r, e);
}

/* ---- processor ---- */

static int burn(const void *arg)
{
    volatile unsigned turns = 1;

    (void)arg;
    while (turns != 0)
        turns |= 1;
    return 0;
}

static int check_quota(const struct group *g, struct err *e)
{
    char text[64] = "";
    const int v2 = g->base->ops->is_v2, fd = v2 ? g->cg->fd : g->cg->v1[CGPLACE_CPU];
    const char *name = v2 ? "cpu.max" : "cpu.cfs_quota_us";
    int r = cgfile_read(fd, name, text, sizeof text);

    if (r < 0)
        return err_sys(e, -r, "read %s", name);
    text[strcspn(text, "\n")] = '\0';
    if (strtoul(text, NULL, 10) != CPU_MILLIS * 100)
        return err_set(e, EPROTO, "%s reads as '%s', not as it was written", name, text);
    return 0;
}

/* Burns until the group has been held back. */
static int check_throttling(struct group *g, struct err *e)
{
    const int fd = g->base->ops->is_v2 ? g->cg->fd : g->cg->v1[CGPLACE_CPU];
    uint64_t throttled = 0;
    pid_t pid = -1;
    int r = group_child(g, burn, NULL, &pid, e);

    for (int i = 0; r == 0 && i < NAPS / 2 && throttled == 0; i++) {
        cgfile_nap();
        r = cgfile_key(fd, "cpu.stat", "nr_throttled", &throttled);
        if (r < 0)
            return err_sys(e, -r, "read cpu.stat");
    }
    return r < 0 || throttled > 0
               ? r
               : err_set(e, EPROTO, "a group with a tenth of a processor was never held back");
}

int probe_cpu_limit(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct launch_limits slow = small;
    struct group g;

    slow.cpu_millis = CPU_MILLIS;
    int r = group_open_with(env, &slow, &g, e);

    (void)ret;
    if (r == 0)
        r = check_quota(&g, e);
    if (r == 0)
        r = check_throttling(&g, e);
    return group_close(&g, r, e);
}

/* ---- kill and freeze ---- */

int probe_cgroup_kill(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct group g;
    pid_t pid = -1;
    int signo = 0, r = group_open(env, &g, e);

    (void)ret;
    if (r == 0)
        r = group_child(&g, wait_forever, NULL, &pid, e);
    if (r == 0)
        r = cgroup_kill(g.cg, leaf_name, e);
    if (r == 0)
        (void)exit_status(pid, &signo);
    if (r == 0 && signo != SIGKILL)
        r = err_set(e, EPROTO, "a process outlived the kill of its group");
    return group_close(&g, r, e);
}

static int await_frozen(int leaf_fd, struct err *e)
{
    for (int i = 0; i < NAPS / 2; i++) {
        uint64_t frozen = 0;
        int r = cgfile_key(leaf_fd, "cgroup.events", "frozen", &frozen);

        if (r < 0)
            return err_sys(e, -r, "read cgroup.events");
        if (frozen)
            return 0;
        cgfile_nap();
    }
    return err_set(e, ETIMEDOUT, "the group does not freeze");
}

/* And what is frozen can be killed: a session that is paused has to end too. */
int probe_cgroup_freeze(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct group g;
    pid_t pid = -1;
    int signo = 0, r = group_open(env, &g, e);

    (void)ret;
    if (r == 0)
        r = group_child(&g, wait_forever, NULL, &pid, e);
    if (r == 0 && (r = cgfile_write(g.leaf_fd, "cgroup.freeze", "1")) < 0)
        r = err_sys(e, -r, "write cgroup.freeze");
    if (r == 0)
        r = await_frozen(g.leaf_fd, e);
    if (r == 0)
        r = cgroup_kill(g.cg, leaf_name, e);
    if (r == 0)
        (void)exit_status(pid, &signo);
    if (r == 0 && signo != SIGKILL)
        r = err_set(e, EPROTO, "a process outlived the kill of its frozen group");
    return group_close(&g, r, e);
}
