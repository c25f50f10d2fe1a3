/* Puts the gateway together: descriptors and settings in, then the loop until
 * SIGTERM or the launcher's end. */
#include "gateway.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "audit.h"
#include "auditfetch.h"
#include "err.h"
#include "front.h"
#include "gateway_settings.h"
#include "guard.h"
#include "health.h"
#include "kernelspec.h"
#include "launchclient.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "prespawn.h"
#include "processuse.h"
#include "rights.h"
#include "rlimits.h"
#include "room.h"
#include "sessions.h"
#include "version.h"
#include "walls.h"

enum {
    END_MAX_MS = 9000, /* of an orderly end; who waits for us gives 10 s */
    LOOK_MS = 1000,    /* between two looks at disk and kernelspecs */
};

struct gateway {
    struct gateway_args args; /* descriptors are owned */
    struct loop *loop;
    struct launchclient *launcher;
    struct kernelspecs *specs;
    struct sessions *sessions;
    struct front *front;
    struct health *health;
    struct room *room;
    struct gateway_settings settings; /* of the start */
    uint64_t settings_version;        /* in force */
    struct loop_poll *signals;
    struct prespawn prespawn;
    struct auditfetch audit_file;
    int signal_fd;
    struct loop_timer *late;
    int adopting, adopted, stopping, front_done, sessions_done;
    int status; /* of the exit */
};

/* Whatever goes wrong later, this process gains nothing and shows nothing: its
 * memory holds the token and the keys of all kernels. */
static int harden(struct err *e)
{
    struct rlimit files;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(e, errno, "set no_new_privs");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(e, errno, "make the process not dumpable");
    if (rlimits_forbid_core(e) < 0)
        return err_wrap(e, "forbid core files");
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max; /* each client of a kernel costs several */
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    return 0;
}

/* ---- the end ---- */

static void end_when_done(struct gateway *g)
{
    if (!g->front_done || !g->sessions_done)
        return;
    if (g->settings.keep_kernels)
        sessions_note(g->sessions); /* for the gateway of the next server */
    loop_stop(g->loop);
}

static void on_front_done(void *arg)
{
    struct gateway *g = arg;

    g->front = NULL;
    g->front_done = 1;
    end_when_done(g);
}

static void on_sessions_done(void *arg)
{
    struct gateway *g = arg;

    g->sessions_done = 1;
    end_when_done(g);
}

static void on_late(void *arg)
{
    struct gateway *g = arg;

    log_warn("shutdown_late", "front=%d kernels=%d", g->front_done, g->sessions_done);
    g->late = loop_timer_close(g->late);
    loop_stop(g->loop);
}

static void begin_end(struct gateway *g)
{
    if (g->stopping)
        return;
    g->stopping = 1;
    prespawn_stop(&g->prespawn);
    log_info("gateway_stopping", "keep=%d", g->settings.keep_kernels);
    g->late = loop_timer_start(g->loop, END_MAX_MS, 0, on_late, g);
    g->front_done = g->front == NULL;
    if (g->front != NULL)
        front_stop(g->front, on_front_done, g);
    if (g->settings.keep_kernels)
        g->sessions_done = 1;
    else
        sessions_shutdown(g->sessions, on_sessions_done, g);
    end_when_done(g);
}

/* ---- the audit file ---- */

static void on_adopted(void *arg);

static void adopt(void *arg)
{
    struct gateway *g = arg;

    if (!g->adopting)
        sessions_adopt(g->sessions, on_adopted, g);
    g->adopting = 1;
}

static void reopen_audit_file(struct gateway *g)
{
    struct err e = { 0 };

    if (audit_on() && auditfetch_start(&g->audit_file, &e) < 0)
        log_error("audit_file", "error=\"%s\"", e.msg);
}

/* ---- settings that change ---- */

/* Who published them has tried them first, so what fails here is our own fault; the
 * old ones then stay in force. */
static void take_settings(struct gateway *g)
{
    struct gateway_settings now;
    struct err e = { 0 };

    if (gateway_settings_read(g->args.settings_fd, &now, &e) < 0) {
        log_error("settings_not_taken", "version=%llu error=\"%s\"",
                  (unsigned long long)g->settings_version, e.msg);
        return;
    }
    if (now.version != g->settings_version && front_reload(g->front, &now.front, &e) < 0) {
        log_error("settings_not_taken", "version=%llu error=\"%s\"",
                  (unsigned long long)now.version, e.msg);
    } else if (now.version != g->settings_version) {
        g->settings_version = now.version;
        sessions_set_seed(g->sessions, now.seed, now.seed_kernel);
        sessions_set_profiles(g->sessions, now.profiles, now.version);
        log_info("settings_taken", "version=%llu", (unsigned long long)now.version);
    }
    gateway_settings_free(&now);
}

/* A signal that comes before there is a front is seen to when there is one. */
static void on_signal(void *arg, int events)
{
    struct gateway *g = arg;
    struct signalfd_siginfo s;

    (void)events;
    while (read(g->signal_fd, &s, sizeof s) == sizeof s) {
        if (s.ssi_signo != SIGHUP) {
            begin_end(g);
        } else if (g->front != NULL && !g->stopping) {
            take_settings(g);
            reopen_audit_file(g);
        }
    }
}

/* Without the launcher no kernel lives; the supervisor starts both anew. */
static void on_launcher_lost(void *arg)
{
    struct gateway *g = arg;

    g->status = 1;
    loop_stop(g->loop);
}

/* ---- whether it can do its work ---- */

static int check_launcher(void *arg, struct err *e)
{
    const struct gateway *g = arg;

    return launchclient_is_lost(g->launcher) ? err_set(e, HC_EGONE, "the launcher is gone") : 0;
}

static int check_adoption(void *arg, struct err *e)
{
    const struct gateway *g = arg;

    return g->adopted ? 0 : err_set(e, EAGAIN, "kernels are being adopted");
}

static int check_stopping(void *arg, struct err *e)
{
    const struct gateway *g = arg;

    return g->stopping ? err_set(e, HC_ESTATE, "the server stops") : 0;
}

static int check_kernelspec(void *arg, struct err *e)
{
    const struct gateway *g = arg;
    struct kernelspec *spec = NULL;
    int rc = kernelspecs_find(g->specs, kernelspecs_default(g->specs), &spec, e);

    spec = kernelspec_free(spec);
    return rc;
}

static void watch_health(struct gateway *g)
{
    g->health = health_new();
    health_add(g->health, "launcher", 0, check_launcher, g);
    health_add(g->health, "adoption", 0, check_adoption, g);
    health_add(g->health, "stopping", 0, check_stopping, g);
    health_add(g->health, "spool", LOOK_MS, health_directory, &g->args.dir_fd);
    health_add(g->health, "kernelspec", LOOK_MS, check_kernelspec, g);
    health_add(g->health, "room", 0, room_check, g->room);
    if (g->settings.audit)
        health_add(g->health, "audit", 0, audit_writable, g);
    if (g->args.walls_missing > 0)
        health_note(g->health, "isolation", "reduced");
    g->settings.front.health = g->health;
}

/* ---- the start ---- */

static void tell_ready(struct gateway *g)
{
    if (g->args.ready_fd >= 0 && write(g->args.ready_fd, "r", 1) < 0)
        log_warn("ready", "error=\"%s\"", strerror(errno));
    closep(&g->args.ready_fd);
    g->args.ready_fd = -1;
}

static void on_adopted(void *arg)
{
    struct gateway *g = arg;
    struct err e = { 0 };

    if (g->stopping)
        return;
    g->adopted = 1;
    if (front_start(g->loop, g->sessions, g->specs, &g->settings.front, g->args.listen_fds,
                    g->args.listen_count, &g->front, &e) < 0) {
        log_error("front_start", "error=\"%s\"", e.msg);
        g->status = 1;
        loop_stop(g->loop);
        return;
    }
    gateway_settings_forget_key(&g->settings);
    take_settings(g);
    log_info("gateway_ready", "pid=%d", (int)getpid());
    tell_ready(g);
    if (g->args.first && g->settings.prespawn > 0) {
        g->prespawn = (struct prespawn){ .loop = g->loop,
                                         .sessions = g->sessions,
                                         .kernel = g->settings.seed_kernel,
                                         .count = g->settings.prespawn };
        prespawn_start(&g->prespawn);
    }
}

/* Before any thread of ZMQ exists, so that all inherit the mask. */
static int watch_signals(struct gateway *g, struct err *e)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return err_sys(e, errno, "block signals");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a spool above RLIMIT_FSIZE is a write error */
    g->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return g->signal_fd < 0 ? err_sys(e, errno, "make a signalfd") : 0;
}

static int start(struct gateway *g, struct err *e)
{
    int rc = harden(e);

    if (rc == 0)
        rc = watch_signals(g, e);
    if (rc == 0)
        rc = gateway_settings_await(g->args.settings_fd, &g->settings, e);
    if (rc < 0)
        return rc;
    log_setup("gateway", g->settings.log_format, g->settings.log_level);
    processuse_start(); /* keeps open what the guard would not let it open */
    rc = guard_enter(g->settings.kernel_path, g->args.dir_fd, e);
    if (rc < 0)
        return rc;
    if (!wall_is_off(WALL_RIGHTS))
        rights_forbid();
    g->settings_version = g->settings.version;
    g->settings.policy.private_dir_fd = g->args.dir_fd;
    g->loop = loop_new();
    g->signals = loop_poll_start(g->loop, g->signal_fd, LOOP_READ, on_signal, g);
    g->launcher = launchclient_new(g->loop, g->args.launcher_fd);
    launchclient_on_lost(g->launcher, on_launcher_lost, g);
    g->specs = kernelspecs_new(g->settings.kernel_path, g->settings.allowed_kernels,
                               g->settings.default_kernel);
    kernelspecs_warn(g->specs);
    g->sessions = sessions_new(g->loop, g->launcher, g->specs, &g->settings.policy);
    if (g->sessions == NULL)
        return err_set(e, EIO, "no ZMQ context");
    sessions_set_seed(g->sessions, g->settings.seed, g->settings.seed_kernel);
    sessions_set_profiles(g->sessions, g->settings.profiles, g->settings.version);
    g->room = room_new(g->loop, g->launcher);
    watch_health(g);
    metrics_version(HOLDCELL_VERSION);
    metrics_add(METRIC_GATEWAY_RESTARTS, 0, 0, 0, g->args.restarts);
    metrics_set(METRIC_WALLS_MISSING, 0, g->args.walls_missing);
    if (g->settings.audit) {
        audit_start(g->loop, g->settings.audit_required);
        g->audit_file = (struct auditfetch){ .launcher = g->launcher, .answered = adopt, .arg = g };
        return auditfetch_start(&g->audit_file, e);
    }
    adopt(g);
    return 0;
}

/* After an orderly end everything is given back; a leak shows in the sanitizer.
 * After another one the process simply ends: its connections are in use. */
static void clean_up(struct gateway *g)
{
    g->late = loop_timer_close(g->late);
    g->signals = loop_poll_close(g->signals);
    g->sessions = sessions_free(g->sessions);
    g->room = room_free(g->room);
    g->launcher = launchclient_free(g->launcher);
    g->specs = kernelspecs_free(g->specs);
    g->health = health_free(g->health);
    g->loop = loop_free(g->loop);
    closep(&g->signal_fd);
    for (unsigned i = 0; i < g->args.listen_count; i++)
        closep(&g->args.listen_fds[i]);
    closep(&g->args.settings_fd);
    closep(&g->args.dir_fd);
    gateway_settings_free(&g->settings);
}

int gateway_try_settings(struct view blob, int starting, struct buf *table, struct err *e)
{
    struct gateway_settings s;
    int rc = gateway_settings_parse(blob, &s, e);

    if (rc < 0)
        return rc;
    rc = front_check(&s.front, starting, e);
    if (rc == 0)
        rc = gateway_settings_check(&s, e);
    if (rc == 0 && s.profiles != NULL)
        rc = profiles_write(s.profiles, table, e);
    gateway_settings_free(&s);
    return rc;
}

int gateway_main(const struct gateway_args *args)
{
    struct gateway g = { .args = *args, .signal_fd = -1 };
    struct err e = { 0 };

    if (start(&g, &e) < 0) {
        log_error("gateway_start", "error=\"%s\"", e.msg);
        return 1;
    }
    loop_run(g.loop);
    audit_stop();
    int keeps = g.stopping && g.settings.keep_kernels;
    if (g.front_done && g.sessions_done && !keeps)
        clean_up(&g);
    log_info("gateway_ended", "status=%d", g.status);
    if (keeps) /* giving kernels back would take their sockets away */
        _exit(g.status);
    return g.status;
}
