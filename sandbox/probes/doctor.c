#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/utsname.h>

#include "cgroup.h"
#include "err.h"
#include "hosthints.h"
#include "layers.h"
#include "probes.h"
#include "sandbox.h"

/* Generous: an emulated machine that is busy is a hundred times slower. At a start all of them together
 * stay below the minute that the supervisor gives a launcher. */
enum { QUICK_MS = 30000, LONG_MS = 60000, START_MS = 14000 };

static const struct {
    probe_fn *fn; /* NULL: no process tries it */
    unsigned deadline_ms;
    int at_start; /* cheap, and the server relies on it */
    int makes_groups;
} probes[HOSTWALL_COUNT] = {
    [HOSTWALL_PRIVILEGES] = { probe_privileges, QUICK_MS, 0, 0 },
    [HOSTWALL_USER_NAMESPACE] = { probe_user_namespace, QUICK_MS, 0, 0 },
    [HOSTWALL_NESTED_USER_NAMESPACE] = { probe_nested_user_namespace, QUICK_MS, 0, 0 },
    [HOSTWALL_ID_MAPS] = { probe_id_maps, QUICK_MS, 0, 0 },
    [HOSTWALL_PID_NAMESPACE] = { probe_pid_namespace, QUICK_MS, 0, 0 },
    [HOSTWALL_MOUNT_NAMESPACE] = { probe_mount_namespace, QUICK_MS, 0, 0 },
    [HOSTWALL_NETWORK_NAMESPACE] = { probe_network_namespace, QUICK_MS, 0, 0 },
    [HOSTWALL_IPC_NAMESPACE] = { probe_ipc_namespace, QUICK_MS, 0, 0 },
    [HOSTWALL_UTS_NAMESPACE] = { probe_uts_namespace, QUICK_MS, 0, 0 },
    [HOSTWALL_CGROUP_NAMESPACE] = { probe_cgroup_namespace, QUICK_MS, 0, 0 },
    [HOSTWALL_LOOPBACK] = { probe_loopback, QUICK_MS, 0, 0 },
    [HOSTWALL_OVERLAY] = { probe_overlay, QUICK_MS, 0, 0 },
    [HOSTWALL_DEVICES] = { probe_devices, QUICK_MS, 0, 0 },
    [HOSTWALL_PROC] = { probe_proc, QUICK_MS, 0, 0 },
    [HOSTWALL_OWN_ROOT] = { probe_own_root, QUICK_MS, 0, 0 },
    [HOSTWALL_NO_USER_NAMESPACES] = { probe_no_user_namespaces, QUICK_MS, 0, 0 },
    [HOSTWALL_CAPABILITIES] = { probe_capabilities, QUICK_MS, 0, 0 },
    [HOSTWALL_NO_NEW_PRIVS] = { probe_no_new_privs, QUICK_MS, 0, 0 },
    [HOSTWALL_SECCOMP] = { probe_seccomp, QUICK_MS, 1, 0 },
    [HOSTWALL_LANDLOCK] = { probe_landlock, QUICK_MS, 1, 0 },
    [HOSTWALL_CGROUPS] = { probe_cgroups, LONG_MS, 0, 1 },
    [HOSTWALL_INTO_CGROUP] = { probe_into_cgroup, LONG_MS, 0, 1 },
    [HOSTWALL_MEMORY_LIMIT] = { probe_memory_limit, LONG_MS, 0, 1 },
    [HOSTWALL_SWAP_LIMIT] = { probe_swap_limit, LONG_MS, 0, 1 },
    [HOSTWALL_PIDS_LIMIT] = { probe_pids_limit, LONG_MS, 0, 1 },
    [HOSTWALL_CPU_LIMIT] = { probe_cpu_limit, LONG_MS, 0, 1 },
    [HOSTWALL_CGROUP_KILL] = { probe_cgroup_kill, LONG_MS, 0, 1 },
    [HOSTWALL_PIDFD] = { probe_pidfd, QUICK_MS, 0, 0 },
    [HOSTWALL_OPEN_FILES] = { probe_open_files, QUICK_MS, 1, 0 },
    [HOSTWALL_SANDBOX] = { probe_sandbox, LONG_MS, 1, 1 },
    [HOSTWALL_CGROUP_FREEZE] = { probe_cgroup_freeze, LONG_MS, 0, 1 },
    [HOSTWALL_DISK_HOME] = { probe_disk_home, LONG_MS, 0, 0 },
    [HOSTWALL_IDMAPPED_MOUNT] = { probe_idmapped_mount, LONG_MS, 0, 0 },
    [HOSTWALL_NAMESPACE_LISTENER] = { probe_namespace_listener, QUICK_MS, 0, 0 },
};

/* What a probe that was killed could not take away any more. */
static int sweep_groups(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct cgroup_base *b;
    int r = cgroup_base_open(env->slot, env->cgroup_parent, &b, e);

    (void)ret;
    if (r == 0)
        cgroup_base_close(b);
    return r;
}

static void try_wall(const struct probe_env *env, enum hostwall wall, struct probe_result *ret)
{
    struct probe_result swept;

    probe_run(probes[wall].fn, env, probes[wall].deadline_ms, ret);
    if (ret->state == HOSTWALL_MISSING && probes[wall].makes_groups && env->host == NULL)
        probe_run(sweep_groups, env, LONG_MS, &swept);
}

static void look_at_runtime(const char *runtime, struct probe_result *ret)
{
    *ret = (struct probe_result){ .state = HOSTWALL_PRESENT };
    if (runtime != NULL)
        probe_say(ret, HOSTWALL_PRESENT, "%.200s", runtime);
    else
        probe_say(ret, HOSTWALL_MISSING, "none was found");
}

unsigned doctor_without(const struct hostwall_policy *p, hostwall_set missing)
{
    hostwall_set without = missing & ~hostwall_refused(p, missing);

    return (without & HOSTWALL_BIT(HOSTWALL_LANDLOCK) ? SANDBOX_WITHOUT_LANDLOCK : 0U) |
           (without & HOSTWALL_BIT(HOSTWALL_SECCOMP) ? SANDBOX_WITHOUT_SECCOMP : 0U);
}

int doctor_run(const struct probe_env *env, const char *runtime, doctor_tell *tell, void *arg,
               struct err *e)
{
    autoclose int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct probe_env own = *env;
    struct utsname uts;
    hostwall_set missing = 0;

    if (proc < 0 || uname(&uts) < 0)
        return err_sys(e, errno, "open /proc");
    int r = probe_begin(e);
    if (r < 0)
        return r;
    /* Whatever a probe mounts and does not get to take away goes with us. Who may not do even
     * that hears so from the probes. */
    (void)!layers_own_namespace(NULL);
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++) {
        struct probe_result result;

        if (i == HOSTWALL_RUNTIME)
            look_at_runtime(runtime, &result);
        else if (probes[i].fn == NULL)
            hosthints_look(proc, uts.release, (enum hostwall)i, &result);
        else
            try_wall(&own, (enum hostwall)i, &result);
        if (result.state == HOSTWALL_MISSING)
            missing |= HOSTWALL_BIT(i);
        own.without = doctor_without(env->policy, missing);
        tell((enum hostwall)i, &result, arg);
    }
    probe_end();
    return 0;
}

int doctor_start(const struct probe_env *env, doctor_tell *tell, void *arg, hostwall_set *ret,
                 struct err *e)
{
    struct probe_env own = *env;
    hostwall_set missing = 0;
    int r = probe_begin(e);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++) {
        struct probe_result result;

        /* A sandbox without what is missing would only say the same again. */
        if (!probes[i].at_start ||
            (i == HOSTWALL_SANDBOX && hostwall_refused(env->policy, missing) != 0))
            continue;
        own.without = doctor_without(env->policy, missing);
        probe_run(probes[i].fn, &own, START_MS, &result);
        if (result.state == HOSTWALL_MISSING)
            missing |= HOSTWALL_BIT(i);
        tell((enum hostwall)i, &result, arg);
    }
    probe_end();
    *ret = missing;
    return 0;
}

/* Of the groups only their place: whether a limit holds is no reason of these. */
static int may_be_the_reason(const struct probe_env *env, enum hostwall wall)
{
    return probes[wall].fn != NULL && !probes[wall].at_start &&
           hostwall_demanded(env->policy, wall) &&
           (!probes[wall].makes_groups || (wall == HOSTWALL_CGROUPS && env->host == NULL));
}

hostwall_set doctor_diagnose(const struct probe_env *env, doctor_tell *tell, void *arg)
{
    struct err e = { 0 };
    hostwall_set missing = 0;

    if (probe_begin(&e) < 0)
        return 0;
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++) {
        struct probe_result result;

        if (!may_be_the_reason(env, (enum hostwall)i))
            continue;
        try_wall(env, (enum hostwall)i, &result);
        if (result.state != HOSTWALL_MISSING)
            continue;
        missing |= HOSTWALL_BIT(i);
        tell((enum hostwall)i, &result, arg);
    }
    probe_end();
    return missing;
}
