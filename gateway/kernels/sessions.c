#include "sessions.h"

#include <string.h>

#include "culling.h"
#include "err.h"
#include "kernel_own.h"
#include "log.h"
#include "random.h"
#include "seed.h"
#include "sessions_own.h"

enum {
    KERNEL_NUMBER = 1, /* of a session's only kernel */
    SHUTDOWN_WAIT_MS = 5000,
    /* The least patient client gives 10 s (jupyter_kernel_client). Those that go by jupyter_server's gateway
     * client give up about a second after a handshake with a kernel that does not answer. */
    HANDSHAKE_MS = 8000,
};

static const uint64_t spool_max = 2ull << 30;

/* ---- what kernels ask for ---- */

struct loop *sessions_loop(const struct sessions *s)
{
    return s->loop;
}

struct launchclient *sessions_launcher(const struct sessions *s)
{
    return s->launcher;
}

struct zsockets *sessions_zsockets(const struct sessions *s)
{
    return s->zsockets;
}

struct deferred *sessions_deferred(const struct sessions *s)
{
    return s->deferred;
}

const struct sessions_policy *sessions_policy(const struct sessions *s)
{
    return &s->policy;
}

struct seed *sessions_seed(const struct sessions *s)
{
    return s->seed;
}

const char *sessions_seed_kernel(const struct sessions *s)
{
    return s->seed_kernel;
}

int sessions_has_profiles(const struct sessions *s)
{
    return s->profiles != NULL;
}

const char *sessions_own_sid(const struct sessions *s)
{
    return s->sid;
}

/* All kernels, session by session; NULL at the end. The one before may be freed
 * once the next was asked for. */
static struct kernel *next_in(struct session *s)
{
    while (s != NULL && s->kernels == NULL)
        s = s->next;
    return s != NULL ? s->kernels : NULL;
}

struct kernel *sessions_first_kernel(const struct sessions *s)
{
    return next_in(s->first);
}

struct kernel *sessions_next_kernel(const struct kernel *k)
{
    return k->next != NULL ? k->next : next_in(k->session->next);
}

struct kernel *sessions_by_number(struct sessions *s, uint64_t number)
{
    struct kernel *k = sessions_first_kernel(s);

    while (k != NULL && k->number != number)
        k = sessions_next_kernel(k);
    return k;
}

struct session *sessions_session(struct sessions *s, uint64_t number)
{
    struct session *n = s->first;

    while (n != NULL && n->number != number)
        n = n->next;
    return n;
}

/* ---- events of the launcher ---- */

static struct session *by_sandbox(struct sessions *s, uint64_t sandbox)
{
    struct session *n = s->first;

    while (n != NULL && n->sandbox != sandbox)
        n = n->next;
    return n;
}

static void on_kernel_exited(struct session *n, const struct launch_kernel_exited *x)
{
    for (struct kernel *k = n->kernels; k != NULL; k = k->next) {
        if (k->process && x->kernel == KERNEL_NUMBER && x->generation == k->generation) {
            k->exit = *x;
            kernel_exited(k);
            return;
        }
    }
}

static void on_tasks_refused(struct session *n, const struct launch_tasks_refused *t)
{
    if (log_allowed(&n->tasks_log, 5))
        log_warn("tasks_refused", "session=%s refused=%llu limit=%llu", n->id,
                 (unsigned long long)t->refused, (unsigned long long)t->pids_limit);
    for (struct kernel *k = n->kernels; k != NULL; k = k->next)
        kernel_tasks_refused(k, t);
}

static void on_event(void *arg, unsigned verb, const void *body)
{
    struct sessions *s = arg;
    uint64_t sandbox;

    memcpy(&sandbox, body, sizeof sandbox); /* the first field of each event */
    struct session *n = by_sandbox(s, sandbox);
    if (n == NULL) { /* of one that was stopped, or that nobody adopted yet */
        if (verb == LAUNCH_SANDBOX_GONE)
            sessions_remains_gone(s, sandbox);
        return;
    }
    if (verb == LAUNCH_KERNEL_EXITED) {
        on_kernel_exited(n, body);
    } else if (verb == LAUNCH_OUT_OF_MEMORY) {
        const struct launch_out_of_memory *o = body;
        log_warn("out_of_memory", "session=%s kills=%llu limit=%llu peak=%llu kernel_ends=%u",
                 n->id, (unsigned long long)o->kills, (unsigned long long)o->memory_limit_bytes,
                 (unsigned long long)o->memory_peak_bytes, o->kernel_ends);
        session_out_of_memory(n, o);
    } else if (verb == LAUNCH_TASKS_REFUSED) {
        on_tasks_refused(n, body);
    } else if (verb == LAUNCH_SANDBOX_GONE) {
        autofree char *why = view_dup(((const struct launch_sandbox_gone *)body)->reason);
        session_lost(n, why);
    }
}

/* ---- making and ending ---- */

void sessions_set_profiles(struct sessions *s, const struct profiles *t, uint64_t version)
{
    free(s->profiles);
    s->profiles = NULL;
    s->profiles_version = version;
    if (t == NULL)
        return;
    s->profiles = xcalloc(1, sizeof *t);
    memcpy(s->profiles, t, sizeof *t);
}

struct sessions *sessions_new(struct loop *l, struct launchclient *c, struct kernelspecs *specs,
                              const struct sessions_policy *policy)
{
    struct sessions *s = xcalloc(1, sizeof *s);
    struct err e = { 0 };

    s->loop = l;
    s->launcher = c;
    s->specs = specs;
    s->policy = *policy;
    if (s->policy.shutdown_wait_ms == 0)
        s->policy.shutdown_wait_ms = SHUTDOWN_WAIT_MS;
    if (s->policy.handshake_ms == 0)
        s->policy.handshake_ms = HANDSHAKE_MS;
    if (s->policy.spool_bytes_per_principal == 0)
        s->policy.spool_bytes_per_principal = spool_max;
    if (s->policy.seed_ms == 0)
        s->policy.seed_ms = SEED_TIMEOUT_MS;
    random_text(s->sid, sizeof s->sid - 1);
    s->deferred = deferred_new(l);
    s->zsockets = zsockets_new(l, s->deferred, &e);
    if (s->zsockets == NULL) {
        log_error("zmq", "error=\"%s\"", e.msg);
        s->deferred = deferred_close(s->deferred);
        free(s);
        return NULL;
    }
    sessions_held_init(s);
    launchclient_on_event(c, on_event, s);
    culling_start(s);
    sessions_watch_deadlines(s);
    return s;
}

struct sessions *sessions_free(struct sessions *s)
{
    if (s == NULL)
        return NULL;
    launchclient_on_event(s->launcher, NULL, NULL);
    culling_stop(s);
    s->deadline_timer = loop_timer_close(s->deadline_timer);
    for (struct kernel *k; (k = sessions_first_kernel(s)) != NULL;)
        kernel_free(k);
    check(s->first == NULL);
    sessions_held_end(s);
    sessions_forget_remains(s);
    sessions_set_seed(s, NULL, NULL);
    s->zsockets = zsockets_free(s->zsockets);
    s->deferred = deferred_close(s->deferred);
    free(s->profiles);
    free(s);
    return NULL;
}

void sessions_set_seed(struct sessions *s, struct seed *seed, const char *kernel)
{
    seed_use(seed); /* before the other one is dropped: they may be the same */
    seed_drop(s->seed);
    free(s->seed_kernel);
    s->seed = seed;
    s->seed_kernel = seed != NULL ? xstrdup(kernel) : NULL;
}

static void all_gone(struct sessions *s)
{
    for (struct kernel *k = sessions_first_kernel(s); k != NULL; k = sessions_next_kernel(k)) {
        if (k->phase != KERNEL_GONE)
            return;
    }
    void (*done)(void *arg) = s->shutdown_done;
    s->shutdown_done = NULL;
    if (done != NULL)
        done(s->shutdown_arg);
}

static void on_one_gone(void *arg, uint64_t token, struct kernel *k, const struct err *e)
{
    (void)token;
    (void)k;
    (void)e;
    all_gone(arg);
}

static void look_all_gone(void *arg)
{
    struct sessions *s = arg;

    s->shutdown_timer = loop_timer_close(s->shutdown_timer);
    all_gone(s);
}

void sessions_shutdown(struct sessions *s, void (*done)(void *arg), void *arg)
{
    s->shutdown_done = done;
    s->shutdown_arg = arg;
    s->stopping = 1;
    for (struct kernel *k = sessions_first_kernel(s), *next; k != NULL; k = next) {
        next = sessions_next_kernel(k);
        if (k->phase == KERNEL_GONE)
            continue;
        if (k->client_end == CLIENT_DELETED)
            k->client_end = CLIENT_SHUTDOWN;
        kernel_delete(k, on_one_gone, s, 0);
    }
    /* done never runs inside this call, also when there is no kernel. */
    s->shutdown_timer = loop_timer_start(s->loop, 0, 0, look_all_gone, s);
}

/* ---- kernels for fronts ---- */

static int is_seen(const struct kernel *k, const struct principal *p)
{
    return k->listed && principal_sees(p, k->session->principal.name);
}

struct kernel *sessions_find_kernel(struct sessions *s, const struct principal *p, const char *id)
{
    for (struct kernel *k = sessions_first_kernel(s); k != NULL; k = sessions_next_kernel(k)) {
        if (is_seen(k, p) && strcasecmp(k->id, id) == 0)
            return k;
    }
    return NULL;
}

struct kernel *sessions_find_ending(struct sessions *s, const struct principal *p, const char *id)
{
    for (struct kernel *k = sessions_first_kernel(s); k != NULL; k = sessions_next_kernel(k)) {
        if (!k->listed && k->goal == KERNEL_DELETE && k->phase != KERNEL_GONE &&
            principal_sees(p, k->session->principal.name) && strcasecmp(k->id, id) == 0)
            return k;
    }
    return NULL;
}

void sessions_each_kernel(struct sessions *s, sessions_kernel_fn *fn, void *arg)
{
    for (struct kernel *k = sessions_first_kernel(s); k != NULL; k = sessions_next_kernel(k)) {
        if (k->listed)
            fn(arg, &k->session->principal, k);
    }
}

size_t sessions_kernels(struct sessions *s, const struct principal *p, struct kernel **out,
                        size_t max)
{
    size_t count = 0;

    for (struct kernel *k = sessions_first_kernel(s); k != NULL; k = sessions_next_kernel(k)) {
        if (!is_seen(k, p))
            continue;
        if (count < max)
            out[count] = k;
        count++;
    }
    return count;
}
