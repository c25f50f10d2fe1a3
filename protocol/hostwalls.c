#include "hostwalls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "err.h"

#define NONE "nothing: every Linux that holdcell runs on has it; a container or a filter hides it"
#define CONTAINER                                                                                 \
    "start the server on the host itself, or in a container that has the right (--privileged is " \
    "the simplest)"

static const struct hostwall_info walls[HOSTWALL_COUNT] = {
    [HOSTWALL_PRIVILEGES] = { "privileges", HOSTWALLS_OF_IDENTITY, ISOLATION_NAMESPACES, 0,
                              "root with the capabilities that build sandboxes",
                              "no sandbox can be built",
                              "start as root, outside of a user namespace; " CONTAINER },
    [HOSTWALL_USER_NAMESPACE] = { "user-namespace", HOSTWALLS_OF_IDENTITY, ISOLATION_NAMESPACES, 0,
                                  "root inside is nobody outside",
                                  "no sandbox can be built: its root would be the host's",
                                  "raise user.max_user_namespaces; a kernel with CONFIG_USER_NS" },
    [HOSTWALL_NESTED_USER_NAMESPACE] = { "nested-user-namespace", HOSTWALLS_OF_IDENTITY,
                                         ISOLATION_NEVER, 0,
                                         "sessions are built by a process without power on the "
                                         "host",
                                         "the launcher, which is root, builds each session's "
                                         "namespaces itself, with the same ids",
                                         "kernel.unprivileged_userns_clone=1, "
                                         "kernel.apparmor_restrict_unprivileged_userns=0, or a "
                                         "profile that lets holdcell-launcher" },
    [HOSTWALL_ID_MAPS] = { "id-maps", HOSTWALLS_OF_IDENTITY, ISOLATION_NAMESPACES, 0,
                           "each session has host ids of its own, none of them the host's root",
                           "no sandbox can be built", CONTAINER },
    [HOSTWALL_PID_NAMESPACE] = { "pid-namespace", HOSTWALLS_OF_IDENTITY, ISOLATION_NAMESPACES, 0,
                                 "a session neither sees nor signals processes of others",
                                 "no sandbox can be built", NONE },
    [HOSTWALL_MOUNT_NAMESPACE] = { "mount-namespace", HOSTWALLS_OF_IDENTITY, ISOLATION_NAMESPACES,
                                   0, "a session's mounts are its own", "no sandbox can be built",
                                   NONE },
    [HOSTWALL_NETWORK_NAMESPACE] = { "network-namespace", HOSTWALLS_OF_IDENTITY,
                                     ISOLATION_NAMESPACES, 0,
                                     "a session reaches no network, nor the host's loopback",
                                     "no sandbox can be built", NONE },
    [HOSTWALL_IPC_NAMESPACE] = { "ipc-namespace", HOSTWALLS_OF_IDENTITY, ISOLATION_NAMESPACES, 0,
                                 "shared memory and queues are a session's own",
                                 "no sandbox can be built", NONE },
    [HOSTWALL_UTS_NAMESPACE] = { "uts-namespace", HOSTWALLS_OF_IDENTITY, ISOLATION_NAMESPACES, 0,
                                 "a session has a host name of its own", "no sandbox can be built",
                                 NONE },
    [HOSTWALL_CGROUP_NAMESPACE] = { "cgroup-namespace", HOSTWALLS_OF_IDENTITY, ISOLATION_NAMESPACES,
                                    0, "a session does not see where its groups are on the host",
                                    "no sandbox can be built", NONE },
    [HOSTWALL_LOOPBACK] = { "loopback", HOSTWALLS_OF_IDENTITY, ISOLATION_NAMESPACES, 0,
                            "servers and clients on a session's own 127.0.0.1 work",
                            "no sandbox can be built", NONE },
    [HOSTWALL_OVERLAY] = { "overlay", HOSTWALLS_OF_TREE, ISOLATION_NAMESPACES, 0,
                           "files that sessions share have no locks or watches in common",
                           "no sandbox can be built: locks on shared files would be a channel",
                           "modprobe overlay; a kernel with CONFIG_OVERLAY_FS" },
    [HOSTWALL_DEVICES] = { "devices", HOSTWALLS_OF_TREE, ISOLATION_NAMESPACES, 0,
                           "each session has device nodes of its own (null, zero, full, random)",
                           "no sandbox can be built: a shared node's locks would be a channel",
                           "a kernel since 5.12, and CAP_MKNOD; " CONTAINER },
    [HOSTWALL_PROC] = { "proc", HOSTWALLS_OF_TREE, ISOLATION_NAMESPACES, 0,
                        "a /proc of the session's own, without what tells of the host",
                        "no sandbox can be built: the host's /proc must not be bound inside",
                        "nothing may be mounted over the /proc that the server sees; in Docker "
                        "--security-opt systempaths=unconfined" },
    [HOSTWALL_OWN_ROOT] = { "own-root", HOSTWALLS_OF_TREE, ISOLATION_NAMESPACES, 0,
                            "the host's files are not there, and the session's root is read-only",
                            "no sandbox can be built", CONTAINER },
    [HOSTWALL_NO_USER_NAMESPACES] = { "no-user-namespaces-inside", HOSTWALLS_OF_TREE,
                                      ISOLATION_NAMESPACES, 0,
                                      "a session makes no namespaces, which would open it more of "
                                      "the "
                                      "kernel",
                                      "no sandbox can be built", "a kernel since 4.9" },
    [HOSTWALL_CAPABILITIES] = { "capabilities", HOSTWALLS_OF_POWER, ISOLATION_NAMESPACES, 0,
                                "a session's processes hold no capability and can get none",
                                "no sandbox can be built", NONE },
    [HOSTWALL_NO_NEW_PRIVS] = { "no-new-privs", HOSTWALLS_OF_POWER, ISOLATION_NAMESPACES, 0,
                                "programs with the setuid bit give nothing inside",
                                "no sandbox can be built", NONE },
    [HOSTWALL_SECCOMP] = { "seccomp", HOSTWALLS_OF_POWER, ISOLATION_HARDENED, 1,
                           "a session calls only what is on the list of about 230 system calls",
                           "the whole of the kernel's interface is open to hostile code; one hole "
                           "in "
                           "it is a way out",
                           "a kernel with CONFIG_SECCOMP_FILTER" },
    [HOSTWALL_LANDLOCK] = { "landlock", HOSTWALLS_OF_POWER, ISOLATION_HARDENED, 1,
                            "a second wall on files behind the mount namespace",
                            "a mistake in a session's mounts would be a way to write; files of "
                            "/proc "
                            "that belong to its user can be written",
                            "boot with landlock in lsm= (see /sys/kernel/security/lsm); a kernel "
                            "since "
                            "5.13 with CONFIG_SECURITY_LANDLOCK" },
    [HOSTWALL_CGROUPS] = { "cgroups", HOSTWALLS_OF_LIMITS, ISOLATION_NAMESPACES, 0,
                           "a place for the control groups of sessions, with memory, pids and cpu",
                           "no sandbox can be built: nothing would be limited",
                           "a delegated group (systemd: Delegate=yes), or --cgroup-parent; mount "
                           "the "
                           "controllers" },
    [HOSTWALL_INTO_CGROUP] = { "clone-into-cgroup", HOSTWALLS_OF_LIMITS, ISOLATION_NAMESPACES, 0,
                               "limits hold from a process' first instruction on",
                               "no sandbox can be built", "a kernel since 5.7" },
    [HOSTWALL_MEMORY_LIMIT] = { "memory-limit", HOSTWALLS_OF_LIMITS, ISOLATION_NAMESPACES, 0,
                                "a session that wants more memory than it may ends, not its "
                                "neighbours",
                                "no sandbox can be built: one session could take all of the memory",
                                "do not boot with cgroup_disable=memory; hand out the controller" },
    [HOSTWALL_SWAP_LIMIT] = { "swap-limit", HOSTWALLS_OF_LIMITS, ISOLATION_NEVER, 0,
                              "a session's memory limit counts what is swapped out",
                              "a session at its limit goes on in the host's swap and slows others "
                              "down",
                              "boot with swapaccount=1, or without swap" },
    [HOSTWALL_PIDS_LIMIT] = { "pids-limit", HOSTWALLS_OF_LIMITS, ISOLATION_NAMESPACES, 0,
                              "a fork bomb ends at the session's number of processes",
                              "no sandbox can be built", "a kernel with CONFIG_CGROUP_PIDS" },
    [HOSTWALL_CPU_LIMIT] = { "cpu-limit", HOSTWALLS_OF_LIMITS, ISOLATION_NAMESPACES, 0,
                             "a session gets its share of the processors and no more",
                             "no sandbox can be built", "a kernel with CONFIG_CFS_BANDWIDTH" },
    [HOSTWALL_CGROUP_KILL] = { "cgroup-kill", HOSTWALLS_OF_LIMITS, ISOLATION_NAMESPACES, 0,
                               "a session ends whole, whatever its processes do",
                               "no session could be ended", "a kernel since 5.14" },
    [HOSTWALL_PIDFD] = { "pidfd", HOSTWALLS_OF_SERVICE, ISOLATION_NAMESPACES, 0,
                         "signals reach the process that is meant, and its end is seen",
                         "no kernel can be started", "a kernel since 5.4" },
    [HOSTWALL_OPEN_FILES] = { "open-files", HOSTWALLS_OF_SERVICE, ISOLATION_NAMESPACES, 0,
                              "descriptors for sessions and clients",
                              "no session could be given the descriptors of its limit (--fds)",
                              "raise the hard limit (ulimit -Hn, LimitNOFILE=), or lower --fds" },
    [HOSTWALL_SANDBOX] = { "sandbox", HOSTWALLS_OF_SERVICE, ISOLATION_NAMESPACES, 0,
                           "all of it together: a session is built, a program runs in it, all is "
                           "gone",
                           "no session can be started",
                           "what is missing above; else read the detail" },
    [HOSTWALL_RUNTIME] = { "runtime", HOSTWALLS_OF_SERVICE, ISOLATION_NAMESPACES, 0,
                           "the Python that sessions run", "no Python kernel can be started",
                           "./quickstart.sh or runtime/build.sh, or name one by --runtime" },
    [HOSTWALL_CGROUP_FREEZE] = { "cgroup-freeze", HOSTWALLS_OF_SERVICE, ISOLATION_NEVER, 0,
                                 "a session can be stopped as a whole and go on later",
                                 "sessions cannot be paused; nothing of today needs it",
                                 "a kernel since 5.2" },
    [HOSTWALL_DISK_HOME] = { "disk-home", HOSTWALLS_OF_SERVICE, ISOLATION_NEVER, 0,
                             "homes with a size on disk (a loop device with ext4)",
                             "homes are in memory only", "modprobe loop; install e2fsprogs" },
    [HOSTWALL_IDMAPPED_MOUNT] = { "idmapped-mount", HOSTWALLS_OF_SERVICE, ISOLATION_NEVER, 0,
                                  "a workspace's files belong to the user of each session that has "
                                  "it",
                                  "no workspaces (--workspaces)",
                                  "a kernel since 5.12, and what disk-home needs" },
    [HOSTWALL_NAMESPACE_LISTENER] = { "listener-in-namespace", HOSTWALLS_OF_SERVICE,
                                      ISOLATION_NEVER, 0,
                                      "a door out of a session's network that only the server "
                                      "opens",
                                      "no session could be given a way out; none has one today",
                                      "nothing: it comes with the network namespace" },

    [HOSTWALL_HOST_KERNEL] = { "kernel", HOSTWALLS_OF_HOST, ISOLATION_NEVER, 0,
                               "the kernel is what all sessions share",
                               "a kernel that old is tested by nobody here; holes in it are ways "
                               "out",
                               "a kernel that still gets security updates, 6.1 or later" },
    [HOSTWALL_HOST_PTRACE_SCOPE] = { "ptrace-scope", HOSTWALLS_OF_HOST, ISOLATION_NEVER, 0,
                                     "processes of one user cannot read each other's memory",
                                     "processes of the host can; inside, seccomp refuses it anyway",
                                     "kernel.yama.ptrace_scope=1" },
    [HOSTWALL_HOST_DMESG_RESTRICT] = { "dmesg-restrict", HOSTWALLS_OF_HOST, ISOLATION_NEVER, 0,
                                       "the kernel's log, with its addresses, is for root",
                                       "users of the host can read it; inside, seccomp refuses it "
                                       "anyway",
                                       "kernel.dmesg_restrict=1" },
    [HOSTWALL_HOST_KPTR_RESTRICT] = { "kptr-restrict", HOSTWALLS_OF_HOST, ISOLATION_NEVER, 0,
                                      "no addresses of the kernel in /proc",
                                      "a hole in the kernel is easier to use",
                                      "kernel.kptr_restrict=2 (1: not for users)" },
    [HOSTWALL_HOST_UNPRIVILEGED_BPF] = { "unprivileged-bpf", HOSTWALLS_OF_HOST, ISOLATION_NEVER, 0,
                                         "bpf(2) is for root",
                                         "users of the host can call it; inside, seccomp refuses "
                                         "it "
                                         "anyway",
                                         "kernel.unprivileged_bpf_disabled=1" },
    [HOSTWALL_HOST_PERF_PARANOID] = { "perf-paranoid", HOSTWALLS_OF_HOST, ISOLATION_NEVER, 0,
                                      "perf_event_open(2) tells users nothing of the kernel",
                                      "users of the host can call it; inside, seccomp refuses it "
                                      "anyway",
                                      "kernel.perf_event_paranoid=2 or more" },
    [HOSTWALL_HOST_LEGACY_TIOCSTI] = { "legacy-tiocsti", HOSTWALLS_OF_HOST, ISOLATION_NEVER, 0,
                                       "nobody types into another's terminal",
                                       "the ioctl works on the host; inside, seccomp refuses it "
                                       "anyway",
                                       "dev.tty.legacy_tiocsti=0 (since 6.2)" },
    [HOSTWALL_HOST_IO_URING] = { "io-uring", HOSTWALLS_OF_HOST, ISOLATION_NEVER, 0,
                                 "io_uring, which passes by seccomp, is off for users",
                                 "users of the host can use it; inside, seccomp refuses it anyway",
                                 "kernel.io_uring_disabled=2 (since 6.6)" },
    [HOSTWALL_HOST_PROTECTED_LINKS] = { "protected-links", HOSTWALLS_OF_HOST, ISOLATION_NEVER, 0,
                                        "links, FIFOs and files in /tmp mislead no program of "
                                        "another",
                                        "programs of the host that trust names in /tmp can be "
                                        "misled",
                                        "fs.protected_hardlinks=1 symlinks=1 fifos=1 regular=1" },
    [HOSTWALL_HOST_CORE_PATTERN] = { "core-pattern", HOSTWALLS_OF_HOST, ISOLATION_NEVER, 0,
                                     "a crash inside runs no program of the host, and asks none",
                                     "a program is run by the host's root at a crash that may "
                                     "leave a core, unless the limit is 1 byte, as it is in "
                                     "sessions; a socket may be handed it at any limit",
                                     "kernel.core_pattern=core" },
    [HOSTWALL_HOST_SWAP] = { "swap", HOSTWALLS_OF_HOST, ISOLATION_NEVER, 0,
                             "memory of sessions is not written to a disk",
                             "what a session had in memory may stay on the disk; files of sessions "
                             "in "
                             "memory too, before Linux 6.4",
                             "no swap, or an encrypted one" },
    [HOSTWALL_HOST_MODPROBE] = { "modprobe", HOSTWALLS_OF_HOST, ISOLATION_NEVER, 0,
                                 "a file of an unknown format that is run starts no program of "
                                 "the host",
                                 "the kernel starts modprobe then, as the host's root and outside "
                                 "of the session's limits, with a number as its only word",
                                 "a kernel since 6.14; or kernel.modules_disabled=1 once all are "
                                 "loaded" },
    [HOSTWALL_HOST_PASSRIGHTS] = { "passrights", HOSTWALLS_OF_HOST, ISOLATION_NEVER, 0,
                                   "a session sends no descriptors to the gateway, which would "
                                   "close them",
                                   "closing big files that a session deleted takes time of all "
                                   "sessions; sockets that linger are refused by seccomp anyway",
                                   "a kernel since 6.16" },
};

const struct hostwall_info *hostwall_info(enum hostwall wall)
{
    check(wall < HOSTWALL_COUNT);
    return &walls[wall];
}

static const struct {
    const char *name, *title;
} groups[HOSTWALL_GROUPS] = {
    { "identity", "Namespaces and ids" }, { "tree", "Files" },
    { "power", "Power of processes" },    { "limits", "Limits" },
    { "service", "What is built of it" }, { "host", "Settings of this host" },
};

const char *hostwall_group_name(enum hostwall_group group)
{
    return groups[group].name;
}

const char *hostwall_group_title(enum hostwall_group group)
{
    return groups[group].title;
}

static const char *const states[] = { "present", "weaker", "missing", "absent" };

const char *hostwall_state_name(enum hostwall_state state)
{
    return states[state];
}

int hostwall_state_of(const char *name, enum hostwall_state *ret)
{
    for (unsigned i = 0; i < sizeof states / sizeof *states; i++)
        if (strcmp(states[i], name) == 0) {
            *ret = (enum hostwall_state)i;
            return 0;
        }
    return -1;
}

int hostwall_of(const char *name, enum hostwall *ret)
{
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        if (strcmp(walls[i].name, name) == 0) {
            *ret = (enum hostwall)i;
            return 0;
        }
    return -1;
}

static const char *const levels[] = { "process", "namespaces", "hardened", "oci" };

const char *isolation_name(enum isolation level)
{
    return level < ISOLATION_NEVER ? levels[level] : "none";
}

int isolation_of(const char *name, enum isolation *ret, struct err *e)
{
    unsigned i = 0;

    while (i < ISOLATION_NEVER && strcmp(levels[i], name) != 0)
        i++;
    if (i == ISOLATION_PROCESS)
        return err_set(e, ENOTSUP, "level 'process' has no walls: nothing is served so");
    if (i == ISOLATION_OCI)
        return err_set(e, ENOTSUP, "level 'oci' does not work yet");
    if (i == ISOLATION_NEVER)
        return err_set(e, EINVAL, "'%.32s' is none of namespaces, hardened", name);
    *ret = (enum isolation)i;
    return 0;
}

int hostwall_policy_accept(struct hostwall_policy *p, const char *names, struct err *e)
{
    hostwall_set accepted = 0;

    for (const char *at = names; at != NULL; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t n = strcspn(at, ",");
        char name[40] = "";
        enum hostwall wall;

        if (n < sizeof name)
            memcpy(name, at, n);
        if (hostwall_of(name, &wall) < 0)
            return err_set(e, EINVAL, "'%.*s' is no wall", n < 64 ? (int)n : 64, at);
        if (!walls[wall].acceptable)
            return err_set(e, EINVAL, "'%s' cannot be accepted as missing: %s", name,
                           walls[wall].demanded_by == ISOLATION_NEVER
                               ? "no level demands it"
                               : "no session can be built without it");
        accepted |= HOSTWALL_BIT(wall);
    }
    p->accepted = accepted;
    return 0;
}

int hostwall_demanded(const struct hostwall_policy *p, enum hostwall wall)
{
    return walls[wall].demanded_by <= p->level || (p->wanted & HOSTWALL_BIT(wall)) != 0;
}

hostwall_set hostwall_refused(const struct hostwall_policy *p, hostwall_set missing)
{
    hostwall_set refused = 0;

    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        if ((missing & ~p->accepted & HOSTWALL_BIT(i)) != 0 &&
            hostwall_demanded(p, (enum hostwall)i))
            refused |= HOSTWALL_BIT(i);
    return refused;
}

void hostwall_set_print(hostwall_set set, char *ret, unsigned size)
{
    size_t n = 0;

    ret[0] = '\0';
    for (unsigned i = 0; i < HOSTWALL_COUNT && n < size; i++)
        if ((set & HOSTWALL_BIT(i)) != 0)
            n += (size_t)snprintf(ret + n, size - n, "%s%s", n > 0 ? ", " : "", walls[i].name);
}

void hostwall_refusal(enum hostwall wall, const char *detail, char *ret, unsigned size)
{
    const struct hostwall_info *w = &walls[wall];

    snprintf(ret, size, "wall '%s' is missing: %s; without it: %s; ", w->name, detail, w->without);
    size_t n = strlen(ret);
    if (w->acceptable)
        snprintf(ret + n, size - n, "to serve all the same: --accept-missing %s", w->name);
    else
        snprintf(ret + n, size - n, "no option accepts that; what helps: %s", w->remedy);
}
