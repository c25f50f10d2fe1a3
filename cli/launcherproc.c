#include "launcherproc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "err.h"
#include "instance.h"
#include "keepermsg.h"
#include "launchlink.h"
#include "log.h"
#include "reload.h"
#include "spawn.h"
#include "supervise.h"

/* With the table of profiles that is in force; the array and its last string are owned. */
static char **argv_of(const struct supervise_plan *plan, char **ret_text)
{
    struct view table = reload_table(plan->reload);
    size_t n = 0;

    while (plan->argv[n] != NULL)
        n++;
    char **argv = xcalloc(n + 2, sizeof *argv);
    memcpy(argv, plan->argv, n * sizeof *argv);
    if (table.n > 0)
        check(asprintf(ret_text, "--profiles=%.*s", (int)table.n, (const char *)table.p) >= 0);
    argv[n] = *ret_text;
    return argv;
}

int launcherproc_start(struct launcherproc *p, const struct supervise_plan *plan)
{
    autofree char *text = NULL;
    autofree char **argv = argv_of(plan, &text);
    struct err e = { 0 };
    int fds[SUPERVISE_FDS_MAX], sockets[2], pid;

    memcpy(fds, plan->fds, sizeof fds);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) < 0) {
        pid = err_sys(&e, errno, "socketpair");
    } else {
        fds[SUPERVISE_CONTROL] = sockets[1];
        pid = spawn_program(argv, fds, plan->fd_count, &e);
        close(sockets[1]);
    }
    if (pid < 0) {
        if (fds[SUPERVISE_CONTROL] >= 0)
            close(sockets[0]);
        log_error("launcher_not_started", "text=\"%s\"", e.msg);
        return pid;
    }
    p->control = link_new(sockets[0]);
    p->pid = pid;
    p->ended_well = 0;
    log_info("launcher_started", "pid=%d", pid);
    return 0;
}

int launcherproc_adopt(struct launcherproc *p, const struct supervise_plan *plan)
{
    struct takeover *t = &plan->instance->keeper;
    const int *from = plan->fds;
    int fds[SUPERVISE_FDS_MAX] = {
        [KEEPER_LISTEN_FD] = from[SUPERVISE_LISTEN],
        [KEEPER_SETTINGS_FD] = from[SUPERVISE_SETTINGS],
        [KEEPER_READY_FD] = from[SUPERVISE_READY],
        [KEEPER_STDERR_FD] = STDERR_FILENO,
    };
    unsigned more = plan->fd_count - SUPERVISE_MORE;
    autofree char *text = NULL;
    autofree char **argv = argv_of(plan, &text);
    struct err e = { 0 };

    for (unsigned i = 0; i < more; i++)
        fds[KEEPER_MORE_FD + i] = from[SUPERVISE_MORE + i];
    /* Before the keeper closes its door: when we are killed right behind that, who comes next
     * finds a dead holder, and waits for what follows. */
    if (instance_name_us(plan->instance, &e) < 0)
        log_warn("lock_file", "text=\"%s\"", e.msg);
    if (takeover_attach(t, argv, fds, KEEPER_MORE_FD + more, &e) < 0) {
        log_error("not_taken_over", "text=\"%s\"", e.msg);
        return -1;
    }
    p->control = take_ptr(t->link);
    p->pidfd = take_fd(&t->pidfd);
    p->pid = t->pid;
    log_info("launcher_taken_over", "pid=%d", (int)p->pid);
    return 0;
}

/* A child that is not reaped keeps its number; a keeper need not. */
void launcherproc_signal(const struct launcherproc *p, int signo)
{
    if (p->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, p->pidfd, signo, NULL, 0);
    else if (p->pid > 0)
        kill(p->pid, signo);
}

void launcherproc_ended(struct launcherproc *p)
{
    p->pid = 0;
    launcherproc_close(p);
}

void launcherproc_close(struct launcherproc *p)
{
    closep(&p->pidfd);
    p->control = link_free(p->control);
}
