/*
 * probe - tries a wall in a child process, with a deadline: never by a version,
 * always by doing what the product does (the functions of sandbox/) and then what
 * the wall must refuse. A probe that hangs is killed, with all that it left.
 */
#ifndef HC_PROBE_H
#define HC_PROBE_H

#include <stdint.h>
#include <sys/types.h>

#include "hostwalls.h"

struct err;
struct sandbox_host;

struct probe_result {
    enum hostwall_state state;
    char detail[232]; /* what was found; printable, one line */
    uint32_t us;
};

/* What the probes work with. Borrowed. */
struct probe_env {
    struct sandbox_host *host; /* NULL: each probe makes what it needs of it and takes it away */
    unsigned slot;             /* of the cgroup base, when there is no host */
    uint32_t id_base;
    uid_t gateway_uid;
    const char *cgroup_parent, *init_path, *runtime_dir;
    const char *state_dir;  /* where a disk-backed home would be */
    const char *workspaces; /* where workspaces would be; NULL: nowhere */
    unsigned nofile;        /* descriptors that a session's process may have */
    const struct hostwall_policy *policy;
    unsigned
        without; /* SANDBOX_WITHOUT_*: what the trial of a whole sandbox does without; doctor's */
};

/* Runs in the child. 0, or a negative code with the text in e: missing. *ret is
 * HOSTWALL_PRESENT with no detail before. */
typedef int probe_fn(const struct probe_env *env, struct probe_result *ret, struct err *e);

/* Makes the calling process the one that orphans of probes come to; else what a killed
 * probe left would live on. */
int probe_begin(struct err *e) MUST_CHECK;
void probe_end(void);

/* Returns when the child and all of its children are gone. */
void probe_run(probe_fn *fn, const struct probe_env *env, unsigned deadline_ms,
               struct probe_result *ret);

void probe_say(struct probe_result *r, enum hostwall_state state, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The caller, which has no other children, kills and reaps every child of its own. */
void probe_sweep(void);

#endif
