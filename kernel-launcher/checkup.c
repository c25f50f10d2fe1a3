#include "checkup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "err.h"
#include "hostids.h"
#include "launchmsg.h"
#include "log.h"
#include "sandbox.h"

static void fill(const struct launcher_options *o, struct sandbox_host *host, struct probe_env *env)
{
    struct launch_limits limits;

    sandbox_limits_default(&limits);
    launcher_options_limits(o->defaults, &limits);
    *env = (struct probe_env){
        .host = host,
        .slot = (unsigned)o->slot,
        .id_base = hostids_base((unsigned)o->slot),
        .gateway_uid = hostids_gateway(hostids_base((unsigned)o->slot)),
        .cgroup_parent = o->cgroup_parent,
        .init_path = o->init,
        .runtime_dir = o->runtime,
        .state_dir = o->state_dir,
        .workspaces = o->workspaces,
        .nofile = limits.nofile,
        .policy = &o->policy,
    };
}

static void write_line(enum hostwall wall, const struct probe_result *r, void *arg)
{
    const int *fd = arg;

    dprintf(*fd, "%s %s %u %s\n", hostwall_info(wall)->name, hostwall_state_name(r->state), r->us,
            r->detail);
}

int checkup_all(const struct launcher_options *o, struct err *e)
{
    struct probe_env env;
    int fd = (int)o->doctor_fd;

    fill(o, NULL, &env);
    return doctor_run(&env, o->no_runtime ? NULL : o->runtime, write_line, &fd, e);
}

enum { REFUSAL_MAX = 800 };

struct findings {
    const struct hostwall_policy *policy;
    unsigned us;
};

static void take_finding(enum hostwall wall, const struct probe_result *r, void *arg)
{
    struct findings *f = arg;
    const struct hostwall_info *w = hostwall_info(wall);

    f->us += r->us;
    if (r->state == HOSTWALL_WEAKER)
        log_info("wall_weaker", "wall=%s text=%s", w->name, LOG_QUOTED(r->detail));
    if (r->state != HOSTWALL_MISSING)
        return;
    if (hostwall_refused(f->policy, HOSTWALL_BIT(wall)) == 0) {
        log_warn("wall_missing_accepted", "wall=%s text=%s means=%s", w->name,
                 LOG_QUOTED(r->detail), LOG_QUOTED(w->without));
        return;
    }
    char text[REFUSAL_MAX];
    hostwall_refusal(wall, r->detail, text, sizeof text);
    log_error("wall_missing", "wall=%s isolation=%s text=%s", w->name,
              isolation_name(f->policy->level), LOG_QUOTED(text));
}

int checkup_start(const struct launcher_options *o, struct sandbox_host *host,
                  hostwall_set *ret_missing, struct err *e)
{
    struct probe_env env;
    struct findings f = { .policy = &o->policy };
    hostwall_set missing = 0;
    char names[200];

    fill(o, host, &env);
    int r = doctor_start(&env, take_finding, &f, &missing, e);
    if (r < 0)
        return r;
    if (missing & HOSTWALL_BIT(HOSTWALL_SANDBOX))
        missing |= doctor_diagnose(&env, take_finding, &f);
    log_info("walls", "isolation=%s duration_us=%u missing=%d", isolation_name(o->policy.level),
             f.us, __builtin_popcountll(missing));
    hostwall_set refused = hostwall_refused(&o->policy, missing);
    if (refused != 0) {
        hostwall_set_print(refused, names, sizeof names);
        return err_set(e, HC_ESTATE, "nothing is served without what level '%s' demands: %s",
                       isolation_name(o->policy.level), names);
    }
    sandbox_host_without(host, doctor_without(&o->policy, missing));
    *ret_missing = missing;
    return 0;
}

void checkup_explain(const struct launcher_options *o)
{
    struct probe_env env;
    struct findings f = { .policy = &o->policy };

    fill(o, NULL, &env);
    doctor_diagnose(&env, take_finding, &f);
}
