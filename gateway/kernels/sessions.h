/*
 * sessions - the object model: principal -> session -> sandbox -> kernels ->
 * runs. Every table is keyed by principal and id; a foreign id answers exactly
 * like one that does not exist. All fronts stand on this and none has a rule of
 * its own.
 *
 * Operations that wait for the launcher or a kernel end in one callback. Who asks
 * gives a token, a number of its own, and finds its object again by it: it may
 * have gone meanwhile.
 */
#ifndef HC_SESSIONS_H
#define HC_SESSIONS_H

#include <stddef.h>
#include <stdint.h>

#include "cull.h"
#include "hex.h"
#include "launchmsg.h"
#include "principal.h"
#include "ratelimit.h"
#include "timelimits.h"

struct err;
struct kernel;
struct kernelspecs;
struct launchclient;
struct loop;
struct seed;
struct sessions;

struct sessions_policy {
    unsigned max_kernels; /* of all principals together; 0: no limit */
    const char
        *force_kernel;     /* name used whatever is asked, or NULL; borrowed, as all strings here */
    const char *env_allow; /* comma list of names let through from requests beside KERNEL_* */
    char *const *env_server;     /* NAME=value that every kernel gets; NULL-terminated, or NULL */
    const char *runtime;         /* its bin is first in a kernel's PATH; or NULL */
    struct launch_limits limits; /* of a session with the profile "default"; 0: the launcher's */
    struct launch_limits most;   /* that a request may ask for there; 0: no bound of ours */
    struct time_limits times;    /* likewise, both; 0: none */
    int private_dir_fd;          /* borrowed: the gateway's own directory: sockets, spool */
    uint64_t spool_bytes_per_principal; /* cap of event log spools; 0: 2 GiB */
    uint64_t create_ms;        /* from the start of a kernel to its first answer; 0: no limit */
    uint64_t shutdown_wait_ms; /* of the graceful end of one kernel; 0: 5000 */
    struct cull_policy cull;
    uint64_t
        seed_ms; /* for all of the seed notebook, from the start of the process; 0: SEED_TIMEOUT_MS */
    uint64_t orphan_ms; /* sessions outlive a gateway that stays away by this; 0: no end */
    struct ratelimit_config iopub_rate; /* of each socket */
    const char *data;                   /* names of data directories (datanames.h); NULL: none */
    const char *message_types;          /* comma list of those that clients may send; NULL: all */
    int workspaces;        /* sessions have that of their principal at /home/user/work */
    int no_tracebacks;     /* errors of cells are told without their text */
    uint64_t handshake_ms; /* how long a handshake may wait for a kernel that starts; 0: 8000 */
};

struct sessions *sessions_new(struct loop *l, struct launchclient *c, struct kernelspecs *specs,
                              const struct sessions_policy *policy);
struct sessions *sessions_free(struct sessions *s);

/* Every process of that kernelspec that starts from now on runs the seed before
 * clients may use it. NULL: none. */
void sessions_set_seed(struct sessions *s, struct seed *seed, const char *kernel);

/* Those that requests may name from now on: a copy is taken. NULL: none. What lives keeps what it has.
 * The version is that which principals were read with. */
void sessions_set_profiles(struct sessions *s, const struct profiles *t, uint64_t version);

/* Asks the launcher for living sandboxes and takes over their kernels; done runs once when that is finished. */
void sessions_adopt(struct sessions *s, void (*done)(void *arg), void *arg);

/* Ends every kernel (restarts stop first), then done. For SIGTERM. */
void sessions_shutdown(struct sessions *s, void (*done)(void *arg), void *arg);
/* Tells the launcher all that the next gateway has to know of the kernels. */
void sessions_note(struct sessions *s);

struct kernel_request {
    const char *kernel_id; /* UUID to use, or NULL; one that lives already is returned as it is */
    const char *spec_name; /* NULL: the default */
    const char *
        path; /* API path of the notebook, or NULL; "sub/nb.ipynb" asks for cwd /home/user/sub when it exists */
    const char *session_name;    /* of the notebook session: JPY_SESSION_NAME; or NULL */
    const char *profile;         /* of the session; NULL: the principal's */
    struct launch_limits limits; /* of the session; 0: the profile's, or the principal's if less */
    struct time_limits times;    /* likewise */
    char *const *env; /* NAME=value of the request, NULL-terminated, or NULL; filtered by policy */
};

/* e is NULL on success; k is then alive, borrowed for the call. */
typedef void kernel_done_fn(void *arg, uint64_t token, struct kernel *k, const struct err *e);

/* Makes a session with one kernel. Ends when exec succeeded or failed. Errors: ENOENT (no such kernelspec),
 * HC_ELIMIT (max_kernels), EINVAL (field named), EIO and others (start failed, last lines of stderr in the text). */
void sessions_create_kernel(struct sessions *s, const struct principal *p,
                            const struct kernel_request *r, kernel_done_fn *done, void *arg,
                            uint64_t token);

/* Sets the gauges of metrics.h that count sessions and kernels. */
void sessions_measure(const struct sessions *s);

/* NULL when there is none of this principal. Borrowed until the next turn of the loop. */
struct kernel *sessions_find_kernel(struct sessions *s, const struct principal *p, const char *id);
/* As sessions_find_kernel(), of one that is at its end and not found by that any more:
 * who deletes it a second time waits for the same end. */
struct kernel *sessions_find_ending(struct sessions *s, const struct principal *p, const char *id);
/* In start order; fills up to max pointers, returns how many there are. */
size_t sessions_kernels(struct sessions *s, const struct principal *p, struct kernel **out,
                        size_t max);
/* All that can be found, whoever owns them. */
typedef void sessions_kernel_fn(void *arg, const struct principal *owner, struct kernel *k);
void sessions_each_kernel(struct sessions *s, sessions_kernel_fn *fn, void *arg);

#endif
