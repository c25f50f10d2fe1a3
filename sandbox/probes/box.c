#include "box.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

#include "birth.h"
#include "err.h"
#include "proc.h"
#include "report.h"
#include "sandbox_internal.h"

enum { REPORT_MS = 60000 }; /* the probe's own deadline comes first */

struct pipes {
    int channel[2], go[2], status[2];
};

static void pipes_close(struct pipes *p)
{
    for (unsigned i = 0; i < 2; i++) {
        closep(&p->channel[i]);
        closep(&p->go[i]);
        closep(&p->status[i]);
    }
}

int box_userns(const struct probe_env *env, struct userns *own, const struct userns **ret,
               struct err *e)
{
    if (env->host != NULL) {
        *ret = &env->host->userns;
        return 0;
    }
    userns_raise_limits();
    *ret = own;
    return userns_open(env->id_base, 0, own, e);
}

int box_layers(const struct probe_env *env, struct layers *own, const struct layers **ret,
               struct err *e)
{
    if (env->host != NULL) {
        *ret = &env->host->layers;
        return 0;
    }
    *ret = own;
    int r = layers_own_namespace(e);
    return r < 0 ? r : layers_open(env->runtime_dir, own, e);
}

_Noreturn static void run_inside(struct pipes *p, box_inside *inside, void *arg)
{
    struct err e = { 0 };

    closep(&p->channel[0]);
    closep(&p->status[0]);
    proc_reset_signals();
    int r = birth_wait_go(p->go[0], p->go[1]);
    if (r < 0)
        err_sys(&e, -r, "wait for the word");
    if (r == 0)
        r = userns_become_root(&e);
    if (r == 0)
        r = proc_die_with_parent(&e);
    if (r == 0 && unshare(CLONE_NEWCGROUP) < 0)
        r = err_sys(&e, errno, "make a cgroup namespace");
    if (r == 0)
        r = inside(arg, p->channel[1], &e);
    (void)!report_send(p->status[1], &e);
    _exit(r < 0);
}

static int run_outside(pid_t pid, struct pipes *p, box_outside *outside, void *arg, struct err *e)
{
    struct err later = { 0 };

    closep(&p->channel[1]);
    closep(&p->status[1]);
    closep(&p->go[0]);
    if (write(p->go[1], "g", 1) != 1)
        return err_sys(e, errno, "let the process go");
    int r = outside != NULL ? outside(pid, arg, p->channel[0], e) : 0;
    closep(&p->channel[0]);
    /* What failed first is what happened inside. */
    int told = report_wait(p->status[0], REPORT_MS, &later);
    if (told == REPORT_END)
        return r < 0 ? r : err_set(e, ECHILD, "the process in the namespaces died");
    return told < 0 ? err_set(e, later.code, "%s", later.msg) : r;
}

int box_run(const struct probe_env *env, box_inside *inside, box_outside *outside, void *arg,
            struct err *e)
{
    struct pipes p = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
    const struct userns *u;
    struct userns own;
    int r = box_userns(env, &own, &u, e);

    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p.channel) < 0 ||
        pipe2(p.go, O_CLOEXEC) < 0 || pipe2(p.status, O_CLOEXEC) < 0) {
        r = err_sys(e, errno, "make pipes");
        pipes_close(&p);
        return r;
    }
    pid_t pid = userns_clone_init(u, BOX_INDEX, -1, e);
    if (pid == 0)
        run_inside(&p, inside, arg);
    r = pid < 0 ? pid : run_outside(pid, &p, outside, arg, e);
    pipes_close(&p);
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        (void)!proc_reap(pid, NULL);
    }
    return r;
}
