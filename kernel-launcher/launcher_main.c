/*
 * holdcell-launcher - the privileged process: owns all sandboxes, speaks nothing
 * but launchmsg.h. Started by `holdcell serve`, which reaps what is left when
 * this process dies.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkup.h"
#include "err.h"
#include "harden.h"
#include "hostids.h"
#include "launcher.h"
#include "launcher_options.h"
#include "launcher_setup.h"
#include "log.h"
#include "policy.h"
#include "rlimits.h"
#include "sandbox.h"
#include "walls.h"

enum { NOFILE_WANTED = 1 << 20 };

/* A session costs about twenty descriptors here, a client some in the gateway,
 * which inherits the limit. Raising the hard one needs CAP_SYS_RESOURCE. */
static int raise_nofile(struct err *e)
{
    struct rlimit r, more = { NOFILE_WANTED, NOFILE_WANTED };

    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return err_sys(e, errno, "RLIMIT_NOFILE");
    if (r.rlim_max < NOFILE_WANTED && setrlimit(RLIMIT_NOFILE, &more) == 0)
        return 0;
    r.rlim_cur = r.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &r) < 0)
        return err_sys(e, errno, "RLIMIT_NOFILE");
    return 0;
}

/* Nothing that was inherited reaches a sandbox or, by accident, a gateway: those
 * that a gateway gets are duplicated for it. */
static int close_on_exec(struct err *e)
{
    for (int fd = 3; fd < 64; fd++) {
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 && errno != EBADF)
            return err_sys(e, errno, "close-on-exec");
    }
    return 0;
}

/* Lowering needs CAP_SYS_RESOURCE; without it the sessions still go first, for they
 * raise their own. */
static void protect_from_oom(void)
{
    autoclose int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, "-900", 4) != 4)
        log_info("oom_score_adj", "text=\"stays as it was: %s\"", strerror(errno));
}

static int serve(const struct launcher_options *o, struct sandbox_host *host, struct err *e)
{
    struct launcher_config config;
    struct launcher l;
    hostwall_set missing = 0;
    struct err left = { 0 };
    int rc = checkup_start(o, host, &missing, e); /* before there is any other child */

    if (rc == 0)
        rc = launcher_setup(o, &config, e);
    if (rc == 0)
        rc = launcher_setup_host(&config, host, e);
    if (rc < 0)
        return rc;
    config.gateway.missing = config.keeper.missing = missing;
    launcher_init(&l, &config, host);
    /* Before it speaks to a gateway: nothing is served that the profiles do not allow. */
    rc = policy_take(&l, view_cstr(config.profiles != NULL ? config.profiles : ""), e);
    if (rc < 0)
        err_wrap(e, "option --profiles");
    if (rc == 0)
        rc = launcher_open(&l, e);
    while (rc == 0 && launcher_turn(&l, -1))
        ;
    if (rc == 0 && l.failed)
        rc = err_set(e, HC_ESTATE, "ends because of the errors above");
    if (gatewayproc_clear(&l.gateway, &config.gateway, &left) < 0)
        log_warn("gateway_dir", "text=%s", LOG_QUOTED(left.msg)); /* the next server removes it */
    keeper_ended(&l);
    launcher_free(&l);
    launcher_setup_close(&config);
    return rc;
}

static int run(int argc, char **argv, struct err *e)
{
    struct launcher_options o;
    struct sandbox_host *host = NULL;
    int rc = launcher_options_read(argc, argv, &o, e);

    if (rc == 0)
        rc = harden_writes(e); /* who read our log may go while sessions live on */
    if (rc == 0) {
        /* Doctor's answer is not in the log. */
        log_setup(o.format, o.doctor_fd > 0 ? LOGLINE_ERROR : o.level);
        rc = close_on_exec(e);
    }
    if (rc == 0)
        rc = raise_nofile(e);
    rlimits_lift_file_size();
    if (rc < 0)
        return rc;
    if (getsid(0) != getpid() && setsid() < 0)
        return err_sys(e, errno, "setsid");
    walls_tell("holdcell-launcher");
    if (o.doctor_fd > 0)
        return checkup_all(&o, e);
    protect_from_oom();
    const struct sandbox_config config = {
        .slot = (unsigned)o.slot,
        .id_base = hostids_base((unsigned)o.slot),
        .gateway_uid = hostids_gateway(hostids_base((unsigned)o.slot)),
        .init_path = o.init,
        .runtime_dir = o.runtime,
        .cgroup_parent = o.cgroup_parent,
    };
    rc = sandbox_host_open(&config, &host, e);
    if (rc < 0) {
        /* Another one's groups are no lack of the host. */
        if (!o.sweep && rc != -EBUSY)
            checkup_explain(&o);
        return err_wrap(e, "start"), rc;
    }
    /* Only now: the holder of the outer user namespace has to be dumpable. */
    rc = harden_daemon(SECCOMP_LAUNCHER, e);
    if (rc == 0 && !o.sweep)
        rc = serve(&o, host, e);
    sandbox_host_close(host);
    return rc;
}

int main(int argc, char **argv)
{
    struct err e = { 0 };

    umask(022); /* whatever root's shell had: mount points of a sandbox must be searchable */
    if (run(argc, argv, &e) == 0) {
        log_info("launcher_ends", "exit=0");
        return 0;
    }
    log_error("launcher_ends", "exit=1 text=%s", LOG_QUOTED(e.msg));
    return 1;
}
