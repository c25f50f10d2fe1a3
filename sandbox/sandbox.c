#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "lastclose.h"
#include "runfolder.h"
#include "sandbox_internal.h"
#include "userns.h"

void sandbox_limits_default(struct launch_limits *ret)
{
    *ret = LAUNCH_LIMITS_DEFAULT;
}

uid_t sandbox_user_id(const struct sandbox *s)
{
    return userns_host_id(s->host->userns.id_base, userns_outer_user(s->index));
}

uint64_t sandbox_file_size(const struct sandbox *s)
{
    const struct launch_limits *limits = &s->limits;
    uint64_t most = limits->home_bytes;

    if (limits->tmp_bytes > most)
        most = limits->tmp_bytes;
    if (limits->shm_bytes > most)
        most = limits->shm_bytes;
    if (s->workspace_bytes > most)
        most = s->workspace_bytes;
    return most + (1 << 20);
}

int sandbox_set_oom_score(pid_t pid, int score, struct err *e)
{
    char path[64], text[16];
    int n = snprintf(text, sizeof text, "%d", score);

    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)pid);
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, (size_t)n) != n)
        return err_sys(e, errno, "write %s", path);
    return 0;
}

uint64_t sandbox_memory(const struct sandbox *s)
{
    uint64_t bytes;

    return cgroup_memory(s->cgroup, &bytes) == 0 ? bytes : 0;
}

int sandbox_run_fd(const struct sandbox *s)
{
    return s->run_fd;
}

int sandbox_take_init_fd(struct sandbox *s)
{
    return take_fd(&s->request_fd);
}

int sandbox_init_pidfd(const struct sandbox *s)
{
    return s->init_pidfd;
}

pid_t sandbox_init_pid(const struct sandbox *s)
{
    return s->init_pid;
}

int sandbox_oom_fd(const struct sandbox *s)
{
    return cgroup_oom_fd(s->cgroup);
}

short sandbox_oom_events(const struct sandbox *s)
{
    return cgroup_oom_events(s->cgroup);
}

/* Init waits in zap_pid_ns_processes() for all others, and is no zombie before: only its flags tell
 * (proc(5): the 9th field of stat; PF_EXITING of include/linux/sched.h). */
int sandbox_is_ending(const struct sandbox *s)
{
    enum { PF_EXITING = 4 };
    char path[32], text[512];
    unsigned flags;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)s->init_pid);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return 1; /* it is gone */
    text[n] = '\0';
    const char *end = strrchr(text, ')'); /* the name before may contain anything */
    return end == NULL || sscanf(end, ") %*c %*d %*d %*d %*d %*d %u", &flags) != 1 ||
           (flags & PF_EXITING) != 0;
}

int sandbox_tasks_fd(const struct sandbox *s)
{
    return cgroup_tasks_fd(s->cgroup);
}

short sandbox_tasks_events(const struct sandbox *s)
{
    return cgroup_tasks_events(s->cgroup);
}

int sandbox_tasks_refused(const struct sandbox *s, uint64_t *ret)
{
    return cgroup_tasks_refused(s->cgroup, ret);
}

/* The name of a kernel's cgroup leaf; that of its run folder is the same without the k. */
static void leaf_name(uint32_t kernel, uint32_t generation, char ret[RUNFOLDER_NAME_SIZE + 1])
{
    ret[0] = 'k';
    runfolder_name(kernel, generation, ret + 1);
}

int sandbox_seal(struct sandbox *s, uint32_t kernel, uint32_t generation, struct err *e)
{
    char name[RUNFOLDER_NAME_SIZE];

    runfolder_name(kernel, generation, name);
    return runfolder_seal(s->run_fd, name, e);
}

int sandbox_kill_kernel(struct sandbox *s, uint32_t kernel, uint32_t generation, struct err *e)
{
    char leaf[RUNFOLDER_NAME_SIZE + 1];

    leaf_name(kernel, generation, leaf);
    return cgroup_kill(s->cgroup, leaf, e);
}

/* The last reference to the mount namespace gives its file systems back, some hundred milliseconds for
 * full ones: let it be the last process of the session, not the launcher, who does that. */
static void let_go_of_namespaces(struct sandbox *s)
{
    for (unsigned i = 0; i < SANDBOX_NS_COUNT; i++)
        closep(&s->ns_fd[i]);
}

static int is_over(const struct sandbox *s)
{
    struct pollfd p = { .fd = s->init_pidfd, .events = POLLIN };

    return s->init_pidfd < 0 || poll(&p, 1, 0) != 0;
}

/* What is not written yet never is: unmounting would wait for it. The session's last process
 * unmounts, or, where there is none any more, somebody who may wait. */
static void drop_home(struct sandbox *s)
{
    int none = -1;

    if (s->home_fd < 0)
        return;
    extimage_drop(s->home_fd);
    if (is_over(s))
        lastclose(&s->home_fd, &none);
    closep(&s->home_fd);
}

int sandbox_kill(struct sandbox *s, struct err *e)
{
    drop_home(s);
    let_go_of_namespaces(s);
    return cgroup_kill(s->cgroup, NULL, e);
}

int sandbox_kernel_empty(struct sandbox *s, uint32_t kernel, uint32_t generation)
{
    char leaf[RUNFOLDER_NAME_SIZE + 1];

    leaf_name(kernel, generation, leaf);
    return cgroup_empty(s->cgroup, leaf);
}

int sandbox_remove_kernel(struct sandbox *s, uint32_t kernel, uint32_t generation, struct err *e)
{
    char leaf[RUNFOLDER_NAME_SIZE + 1];

    leaf_name(kernel, generation, leaf);
    int r = cgroup_leaf_remove(s->cgroup, leaf, e);
    if (r == 0)
        runfolder_remove(s->run_fd, leaf + 1);
    return r;
}

int sandbox_empty(struct sandbox *s)
{
    return cgroup_empty(s->cgroup, NULL);
}

int sandbox_status(struct sandbox *s, int reset_peak, struct launch_status_answer *ret,
                   struct err *e)
{
    return cgroup_status(s->cgroup, reset_peak, ret, e);
}

int sandbox_free(struct sandbox *s, struct err *e)
{
    drop_home(s);
    let_go_of_namespaces(s);
    closep(&s->request_fd);
    closep(&s->run_fd);
    /* Only when the groups are gone is it proven that no process has these ids any more. */
    int r = s->cgroup != NULL ? cgroup_free(s->cgroup, e) : 0;
    if (r < 0)
        return r;
    s->cgroup = NULL;
    closep(&s->init_pidfd);
    if (s->workspace != NULL)
        workspaces_leave(&s->host->workspaces, s->workspace);
    for (unsigned i = 0; i < MOUNTS_SPECS; i++)
        free(s->specs[i].name);
    free(s);
    return 0;
}
