/* START_KERNEL: a process in a living sandbox, its parent the launcher. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cgfile.h"
#include "connfd.h"
#include "err.h"
#include "joining.h"
#include "kernelargs.h"
#include "proc.h"
#include "report.h"
#include "runfolder.h"

enum {
    EXEC_TIMEOUT_MS = 20000,
    KERNEL_OOM_SCORE = 500,
    UNDO_TRIES = 100, /* of 10 ms; the session's end removes the leaf in any case */
};

/* What one start holds until the exec. */
struct attempt {
    struct joining j;
    char name[RUNFOLDER_NAME_SIZE + 1]; /* of the leaf; without its k of the run folder */
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

/* The place of a kernelspec's folder: where it is mounted already, else the first free one. */
static int find_spec(const struct sandbox *s, const struct sandbox_start *start, struct joining *j,
                     struct err *e)
{
    unsigned i = 0;

    if (start->spec_fd < 0)
        return 0;
    while (i < MOUNTS_SPECS && s->spec_names[i] != NULL &&
           strcmp(s->spec_names[i], start->spec_name) != 0)
        i++;
    if (i == MOUNTS_SPECS)
        return err_set(e, HC_ELIMIT, "a session can use %d kernelspecs", MOUNTS_SPECS);
    j->spec_index = i;
    if (s->spec_names[i] != NULL)
        return 0;
    return mounts_spec(&s->host->layers, start->spec_fd, &j->spec_fd, e);
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
    if (r < 0)
        return r;
    closep(&a->status[1]);
    closep(&a->go[0]);
    if (write(a->go[1], "g", 1) != 1)
        return err_sys(e, errno, "let the kernel go");
    r = report_wait(a->status[0], EXEC_TIMEOUT_MS, e);
    if (r == REPORT_OK)
        return err_set(e, EPROTO, "a kernel that reports success has not exec'ed");
    return r; /* REPORT_END: it exec'ed, or died, which its pidfd tells */
}

static void undo(struct sandbox *s, struct attempt *a)
{
    if (a->pid > 0) {
        (void)!cgroup_kill(s->cgroup, a->name, NULL);
        (void)kill(a->pid, SIGKILL); /* not reaped: the number is still its own */
        (void)!proc_reap(a->pid, NULL);
    }
    if (a->run_fd >= 0)
        runfolder_remove(s->run_fd, a->name + 1);
    if (a->leaf_fd < 0)
        return;
    for (int i = 0; i < UNDO_TRIES && cgroup_leaf_remove(s->cgroup, a->name, NULL) == -EBUSY; i++)
        cgfile_nap();
}

int sandbox_start_kernel(struct sandbox *s, const struct sandbox_start *start,
                         struct sandbox_kernel *ret, struct err *e)
{
    struct attempt a = { .j = { .sandbox = s, .start = start, .spec_fd = -1, .connection_fd = -1 },
                         .leaf_fd = -1,
                         .run_fd = -1,
                         .pidfd = -1,
                         .status = { -1, -1 },
                         .go = { -1, -1 } };

    a.name[0] = 'k';
    runfolder_name(start->kernel, start->generation, a.name + 1);
    int r = prepare(s, start, &a, e);
    if (r == 0)
        r = clone_into(s, &a, e);
    if (r == 0)
        r = send_off(s, &a, e);
    if (r < 0) {
        undo(s, &a);
    } else {
        if (start->spec_fd >= 0 && s->spec_names[a.j.spec_index] == NULL)
            s->spec_names[a.j.spec_index] = xstrdup(start->spec_name);
        *ret = (struct sandbox_kernel){ a.pid, take_fd(&a.pidfd), take_fd(&a.run_fd) };
    }
    attempt_close(&a);
    return r;
}
