/* START_KERNEL: a process in a living sandbox, its parent the launcher. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "cgfile.h"
#include "connfd.h"
#include "err.h"
#include "joining.h"
#include "kernelargs.h"
#include "proc.h"
#include "report.h"
#include "runfolder.h"

enum {
    KERNEL_OOM_SCORE = 500,
    LEAF_NAME_SIZE = RUNFOLDER_NAME_SIZE + 1,
    UNDO_TRIES = 100, /* of 10 ms; the session's end removes the leaf in any case */
};

/* What one start holds until the exec. */
struct attempt {
    struct joining j;
    char name[LEAF_NAME_SIZE]; /* of the leaf; without its k of the run folder */
    int leaf_fd, run_fd, pidfd;
    int status[2], go[2];
    char **argv; /* owned */
    pid_t pid;
};

static void attempt_close(struct attempt *a)
{
    closep(&a->j.spec_fd);
    closep(&a->j.connection_fd);
    closep(&a->leaf_fd);
    closep(&a->run_fd);
    closep(&a->pidfd);
    for (unsigned i = 0; i < 2; i++) {
        closep(&a->status[i]);
        closep(&a->go[i]);
    }
    a->argv = kernelargs_free(a->argv);
}

/* The place of a kernelspec's folder: the one that its name has, else the first free one. Until a child
 * has said that it is mounted each start brings a mount along: two in a row lie over each other. */
static int find_spec(struct sandbox *s, const struct sandbox_start *start, struct joining *j,
                     struct err *e)
{
    unsigned i = 0;

    if (start->spec_fd < 0)
        return 0;
    while (i < MOUNTS_SPECS && s->specs[i].name != NULL &&
           strcmp(s->specs[i].name, start->spec_name) != 0)
        i++;
    if (i == MOUNTS_SPECS)
        return err_set(e, HC_ELIMIT, "a session can use %d kernelspecs", MOUNTS_SPECS);
    if (s->specs[i].name == NULL)
        s->specs[i].name = xstrdup(start->spec_name);
    j->spec_index = i;
    return s->specs[i].mounted ? 0 : mounts_spec(&s->host->layers, start->spec_fd, &j->spec_fd, e);
}

static int prepare_connection(const struct sandbox *s, const struct sandbox_start *start,
                              struct attempt *a, struct err *e)
{
    const uid_t uid = sandbox_user_id(s);
    char bytes[CONNFD_MAX];
    size_t size = 0;
    int r = connfd_read(start->connection_fd, bytes, &size, e);

    if (r < 0)
        return r;
    if (start->flags & LAUNCH_SOCKETS_FD)
        return connfd_new(bytes, size, uid, &a->j.connection_fd, e);
    return runfolder_new(s->run_fd, a->name + 1, uid, s->host->gateway_uid, bytes, size, &a->run_fd,
                         e);
}

static int prepare_arguments(const struct sandbox_start *start, struct attempt *a, struct err *e)
{
    char connection[64], resource[32];

    if (start->flags & LAUNCH_SOCKETS_FD)
        snprintf(connection, sizeof connection, "/proc/self/fd/3");
    else
        snprintf(connection, sizeof connection, "%s/%s/connection.json", RUNFOLDER_PATH,
                 a->name + 1);
    snprintf(resource, sizeof resource, "%s/%u", MOUNTS_SPEC_PATH, a->j.spec_index);
    return kernelargs_fill(start->argv, connection, resource, &a->argv, e);
}

static int prepare(struct sandbox *s, const struct sandbox_start *start, struct attempt *a,
                   struct err *e)
{
    int r = cgroup_leaf_new(s->cgroup, a->name, &a->leaf_fd, e);

    if (r == 0)
        r = find_spec(s, start, &a->j, e);
    if (r == 0)
        r = prepare_connection(s, start, a, e);
    if (r == 0)
        r = prepare_arguments(start, a, e);
    if (r == 0 && (pipe2(a->status, O_CLOEXEC) < 0 || pipe2(a->go, O_CLOEXEC) < 0))
        r = err_sys(e, errno, "make pipes to the kernel");
    a->j.argv = a->argv;
    a->j.status_fd = a->status[1];
    a->j.status_read_fd = a->status[0];
    a->j.go_fd = a->go[0];
    a->j.go_write_fd = a->go[1];
    return r;
}

/* Our children are born into the session's pid namespace between the two setns(). -ENOMEM of clone3
 * means that the session's pid 1 is dead. */
static int clone_into(const struct sandbox *s, struct attempt *a, struct err *e)
{
    if (s->ns_fd[SANDBOX_NS_PID] < 0)
        return err_set(e, HC_EGONE, "the session was killed");
    if (setns(s->ns_fd[SANDBOX_NS_PID], CLONE_NEWPID) < 0)
        return err_sys(e, errno, "set the session's pid namespace");
    pid_t pid = proc_clone(0, a->leaf_fd, &a->pidfd);
    if (pid == 0)
        joining_run(&a->j);
    /* A launcher that could not go back would bear its next sandbox inside this session. */
    check(setns(s->host->pid_ns_fd, CLONE_NEWPID) == 0);
    if (pid == -ENOMEM)
        return err_set(e, HC_EGONE, "the session's pid 1 is dead");
    if (pid < 0)
        return err_sys(e, -pid, "clone into the session");
    a->pid = pid;
    return 0;
}

static int send_off(struct sandbox *s, struct attempt *a, struct err *e)
{
    int r = sandbox_set_oom_score(a->pid, KERNEL_OOM_SCORE, e);

    if (r == 0)
        r = cgroup_place(s->cgroup, a->pid, e);
    if (r == 0 && write(a->go[1], "g", 1) != 1)
        r = err_sys(e, errno, "let the kernel go");
    return r;
}

static void kill_process(struct sandbox *s, const char *leaf, pid_t pid)
{
    (void)!cgroup_kill(s->cgroup, leaf, NULL);
    (void)kill(pid, SIGKILL); /* our child, not reaped: the number is still its own */
}

/* 1 when it is gone. Its end takes its share of the processor, which may be small: no wait for it. */
static int is_reaped(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG | __WALL) != 0;
}

/* One that goes too slowly is reaped by the launcher, as any child that it does not know. */
static void undo_process(struct sandbox *s, const char *leaf, pid_t pid)
{
    kill_process(s, leaf, pid);
    for (int i = 0; i < UNDO_TRIES && !is_reaped(pid); i++)
        cgfile_nap();
}

static void undo_traces(struct sandbox *s, const char *leaf, int run_fd)
{
    if (run_fd >= 0)
        runfolder_remove(s->run_fd, leaf + 1);
    for (int i = 0; i < UNDO_TRIES && cgroup_leaf_remove(s->cgroup, leaf, NULL) == -EBUSY; i++)
        cgfile_nap();
}

static void leaf_name(uint32_t kernel, uint32_t generation, char ret[LEAF_NAME_SIZE])
{
    ret[0] = 'k';
    runfolder_name(kernel, generation, ret + 1);
}

int sandbox_start_begin(struct sandbox *s, const struct sandbox_start *start,
                        struct sandbox_kernel *ret, struct err *e)
{
    struct attempt a = { .j = { .sandbox = s, .start = start, .spec_fd = -1, .connection_fd = -1 },
                         .leaf_fd = -1,
                         .run_fd = -1,
                         .pidfd = -1,
                         .status = { -1, -1 },
                         .go = { -1, -1 } };

    leaf_name(start->kernel, start->generation, a.name);
    int r = prepare(s, start, &a, e);
    if (r == 0)
        r = clone_into(s, &a, e);
    if (r == 0)
        r = send_off(s, &a, e);
    if (r == 0) {
        *ret = (struct sandbox_kernel){ .pid = a.pid,
                                        .pidfd = take_fd(&a.pidfd),
                                        .run_fd = take_fd(&a.run_fd),
                                        .status_fd = take_fd(&a.status[0]),
                                        .spec_index = a.j.spec_index };
    } else {
        if (a.pid > 0)
            undo_process(s, a.name, a.pid);
        if (a.leaf_fd >= 0)
            undo_traces(s, a.name, a.run_fd);
    }
    attempt_close(&a);
    return r;
}

/* What the child has said: REPORT_END, or a negative code. */
static int hear(struct sandbox *s, struct sandbox_kernel *started, struct err *e)
{
    int r = report_wait(started->status_fd, 0, e);

    if (r == REPORT_OK) {
        s->specs[started->spec_index].mounted = 1;
        r = report_wait(started->status_fd, 0, e);
    }
    if (r == -ETIMEDOUT)
        return err_set(e, EAGAIN, "the kernel is still on its way");
    if (r == REPORT_OK)
        r = err_set(e, EPROTO, "a child of ours reports twice");
    closep(&started->status_fd);
    return r;
}

int sandbox_start_end(struct sandbox *s, uint32_t kernel, uint32_t generation,
                      struct sandbox_kernel *started, struct err *e)
{
    char leaf[LEAF_NAME_SIZE];

    leaf_name(kernel, generation, leaf);
    if (started->failure.code == 0) {
        struct err said = { 0 };
        int r = hear(s, started, &said);

        if (r == -EAGAIN)
            return err_set(e, EAGAIN, "%s", said.msg);
        if (r == REPORT_END)
            return 0;
        started->failure = said;
        kill_process(s, leaf, started->pid);
    }
    if (!is_reaped(started->pid))
        return err_set(e, EAGAIN, "the kernel failed, and has not ended yet");
    undo_traces(s, leaf, started->run_fd);
    closep(&started->pidfd);
    closep(&started->run_fd);
    return err_set(e, started->failure.code, "%s", started->failure.msg);
}
