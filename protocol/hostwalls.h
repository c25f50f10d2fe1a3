/*
 * hostwalls - what holdcell's sandboxes are made of, as a table: the names, what each is
 * for, what its absence means and what an operator can do, which isolation level
 * demands it, and the verdict over what was found. Shared by the launcher, which
 * tries the walls, and the command line, which tells about them.
 */
#ifndef HC_HOSTWALLS_H
#define HC_HOSTWALLS_H

#include <stdint.h>

#include "cleanup.h"

struct err;

/* What the operator demands of every session. Each level holds those before it. */
enum isolation {
    ISOLATION_PROCESS,    /* no walls; a name only: nothing is served so */
    ISOLATION_NAMESPACES, /* namespaces, own tree, ids, no capabilities, limits */
    ISOLATION_HARDENED,   /* and seccomp and Landlock: the default */
    ISOLATION_OCI,        /* another runtime does it; a name only */
    ISOLATION_NEVER,      /* of a wall that no level demands */
};

enum hostwall {
    HOSTWALL_PRIVILEGES,
    HOSTWALL_USER_NAMESPACE,
    HOSTWALL_NESTED_USER_NAMESPACE,
    HOSTWALL_ID_MAPS,
    HOSTWALL_PID_NAMESPACE,
    HOSTWALL_MOUNT_NAMESPACE,
    HOSTWALL_NETWORK_NAMESPACE,
    HOSTWALL_IPC_NAMESPACE,
    HOSTWALL_UTS_NAMESPACE,
    HOSTWALL_CGROUP_NAMESPACE,
    HOSTWALL_LOOPBACK,
    HOSTWALL_OVERLAY,
    HOSTWALL_DEVICES,
    HOSTWALL_PROC,
    HOSTWALL_OWN_ROOT,
    HOSTWALL_NO_USER_NAMESPACES,
    HOSTWALL_CAPABILITIES,
    HOSTWALL_NO_NEW_PRIVS,
    HOSTWALL_SECCOMP,
    HOSTWALL_LANDLOCK,
    HOSTWALL_CGROUPS,
    HOSTWALL_INTO_CGROUP,
    HOSTWALL_MEMORY_LIMIT,
    HOSTWALL_SWAP_LIMIT,
    HOSTWALL_PIDS_LIMIT,
    HOSTWALL_CPU_LIMIT,
    HOSTWALL_CGROUP_KILL,
    HOSTWALL_PIDFD,
    HOSTWALL_OPEN_FILES,
    HOSTWALL_SANDBOX,
    HOSTWALL_RUNTIME,
    HOSTWALL_CGROUP_FREEZE,
    HOSTWALL_DISK_HOME,
    HOSTWALL_IDMAPPED_MOUNT,
    HOSTWALL_NAMESPACE_LISTENER,
    /* Settings of the host: second nets, which no level demands. */
    HOSTWALL_HOST_KERNEL,
    HOSTWALL_HOST_PTRACE_SCOPE,
    HOSTWALL_HOST_DMESG_RESTRICT,
    HOSTWALL_HOST_KPTR_RESTRICT,
    HOSTWALL_HOST_UNPRIVILEGED_BPF,
    HOSTWALL_HOST_PERF_PARANOID,
    HOSTWALL_HOST_LEGACY_TIOCSTI,
    HOSTWALL_HOST_IO_URING,
    HOSTWALL_HOST_PROTECTED_LINKS,
    HOSTWALL_HOST_CORE_PATTERN,
    HOSTWALL_HOST_SWAP,
    HOSTWALL_HOST_MODPROBE,
    HOSTWALL_HOST_PASSRIGHTS,
    HOSTWALL_COUNT
};

typedef uint64_t hostwall_set; /* bit per wall */
_Static_assert(HOSTWALL_COUNT <= 64, "a set of walls is one number");
#define HOSTWALL_BIT(wall) (UINT64_C(1) << (wall))

enum hostwall_state {
    HOSTWALL_PRESENT, /* tried, and it holds */
    HOSTWALL_WEAKER,  /* there, but less than it could be: the detail says what */
    HOSTWALL_MISSING,
    HOSTWALL_ABSENT, /* a setting that this kernel does not have */
};

enum hostwall_group {
    HOSTWALLS_OF_IDENTITY, /* groups of the table, in this order */
    HOSTWALLS_OF_TREE,
    HOSTWALLS_OF_POWER,
    HOSTWALLS_OF_LIMITS,
    HOSTWALLS_OF_SERVICE,
    HOSTWALLS_OF_HOST,
    HOSTWALL_GROUPS
};

struct hostwall_info {
    const char *name; /* stable: for options, programs and documents */
    enum hostwall_group group;
    enum isolation demanded_by; /* the least level that does */
    int acceptable;             /* 1: sessions can be built without it */
    const char *purpose;        /* one line */
    const char *without;        /* what its absence means */
    const char *remedy;         /* what an operator can do */
};

const struct hostwall_info *hostwall_info(enum hostwall wall);
const char *hostwall_group_name(enum hostwall_group group);  /* for programs */
const char *hostwall_group_title(enum hostwall_group group); /* for people */
const char *hostwall_state_name(enum hostwall_state state);
/* -1 when there is none of that name. */
int hostwall_state_of(const char *name, enum hostwall_state *ret) MUST_CHECK;
int hostwall_of(const char *name, enum hostwall *ret) MUST_CHECK;

const char *isolation_name(enum isolation level);
/* Those that can be served. -EINVAL, -ENOTSUP for the two that are names only. */
int isolation_of(const char *name, enum isolation *ret, struct err *e) MUST_CHECK;

/* What is demanded of the host, and what the operator does without. */
struct hostwall_policy {
    enum isolation level;
    hostwall_set accepted;
    hostwall_set wanted; /* options of the server need these, whatever the level */
};

/* Names with commas; NULL is none. -EINVAL: no wall, or one that no session can be built without. */
int hostwall_policy_accept(struct hostwall_policy *p, const char *names, struct err *e) MUST_CHECK;

int hostwall_demanded(const struct hostwall_policy *p, enum hostwall wall); /* accepted or not */
/* Of the missing ones those that are demanded and not accepted: when there is one,
 * nothing is served. */
hostwall_set hostwall_refused(const struct hostwall_policy *p, hostwall_set missing);

/* "a, b"; cut when it does not fit. */
void hostwall_set_print(hostwall_set set, char *ret, unsigned size);

/* Why nothing is served, in one line: wall, what was found, what that means, and what
 * would accept it, or help. */
void hostwall_refusal(enum hostwall wall, const char *detail, char *ret, unsigned size);

#endif
