#include "gateway_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "err.h"
#include "kernelspec.h"
#include "limit.h"
#include "principals.h"
#include "profilefile.h"
#include "seed.h"
#include "settings.h"
#include "settingspage.h"
#include "timelimits.h"
#include "version.h"

enum { PRESPAWN_MAX = 1000 };
enum { TRIES = 200, PAUSE_NS = 5000000 };
enum { CREATE_MS = 120000 }; /* compilers at the first start are slow; for ever is no start */
enum { ORPHAN_S = 600 };     /* a gateway is back after seconds, or not without help */

static int read_page(int fd, struct buf *out, struct err *e)
{
    off_t at = 0;
    struct stat st;

    /* All at once: a buffer that grows leaves token and key behind in freed memory. */
    if (fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size <= SETTINGSPAGE_HEAD + SETTINGS_MAX &&
        buf_reserve(out, (size_t)st.st_size + 2 * 4096) < 0)
        return err_set(e, ENOMEM, "no memory for the settings");
    for (;;) {
        if (buf_reserve(out, 4096) < 0)
            return err_set(e, EMSGSIZE, "settings of more than %d bytes", SETTINGS_MAX);
        ssize_t n = pread(fd, buf_tail(out), 4096, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, errno, "read the settings");
        if (n == 0)
            return 0;
        buf_commit(out, (size_t)n);
        at += n;
    }
}

static void read_env(struct gateway_settings *s, struct view blob)
{
    size_t cursor = 0, count = 0;
    const char *var;

    s->env_server = xcalloc(SETTINGS_COUNT_MAX + 1, sizeof *s->env_server);
    while (count < SETTINGS_COUNT_MAX && (var = settings_next(blob, "env.", &cursor)) != NULL)
        s->env_server[count++] = (char *)(uintptr_t)var;
    s->policy.env_server = s->env_server;
}

static int read_limits(struct view blob, struct launch_limits *ret, struct err *e)
{
    int rc = 0;

    *ret = LAUNCH_LIMITS_DEFAULT;
    if (strcmp(settings_text(blob, "home", "auto"), "tmpfs") == 0)
        ret->home_bytes = LAUNCH_HOME_MEMORY_DEFAULT;
    for (unsigned i = 0; i < LIMITS && rc == 0; i++) {
        const struct limit *l = &limit_rows[i];
        uint64_t value;

        rc = settings_number(blob, l->option, limit_get(ret, l) / l->unit, &value, e);
        if (rc == 0)
            limit_set(ret, l, value * l->unit);
    }
    return rc;
}

static int read_times(struct view blob, struct time_limits *ret, struct err *e)
{
    int rc = 0;

    for (unsigned i = 0; i < TIME_LIMITS && rc == 0; i++) {
        uint64_t ms = 0;

        rc = settings_number(blob, time_limits_named[i].setting, 0, &ms, e);
        time_limits_set(ret, &time_limits_named[i], ms < TIME_MOST_MS ? ms : TIME_MOST_MS);
    }
    return rc;
}

static int read_most(struct view blob, struct launch_limits *ret, struct err *e)
{
    int rc = read_limits(blob, ret, e);

    for (unsigned i = 0; i < LIMITS && rc == 0; i++) {
        const struct limit *l = &limit_rows[i];
        char key[48];
        uint64_t value;

        snprintf(key, sizeof key, "max-%s", l->option);
        rc = settings_number(blob, key, 0, &value, e);
        if (rc == 0 && value != 0)
            limit_set(ret, l, value * l->unit);
    }
    return rc;
}

/* The supervisor's table; in the trial, before there is one, what the file says. */
static int read_profiles(struct gateway_settings *s, struct view blob, struct err *e)
{
    const char *table = settings_text(blob, "profile-table", NULL);
    const char *file = settings_text(blob, "profiles", NULL);
    struct profilefile_base base = { .data = settings_text(blob, "data", NULL) };
    uint64_t disk_mb;
    int rc;

    if (table != NULL)
        return profiles_read(view_cstr(table), &s->profiles, e);
    if (file == NULL)
        return 0;
    rc = read_limits(blob, &base.limits, e);
    if (rc == 0)
        rc = read_times(blob, &base.times, e);
    if (rc == 0)
        rc = settings_number(blob, "disk-mb", 0, &disk_mb, e);
    if (rc < 0)
        return rc;
    base.home_sized = disk_mb != 0;
    if (profile_home_of(settings_text(blob, "home", "auto"), &base.home) < 0)
        return err_set(e, EINVAL, "setting home: no such value");
    rc = profilefile_read(view_cstr(file), &base, &s->profiles, e);
    return rc < 0 ? (err_wrap(e, "option --profiles"), rc) : 0;
}

/* Above what any profile has nobody may go, so that is wrong in the file of principals. */
static void widen(const struct profiles *t, struct principals_maxima *m)
{
    for (unsigned i = 0; t != NULL && i < t->count; i++) {
        const struct profile *p = &t->at[i];

        for (unsigned n = 0; n < LIMITS; n++) {
            const struct limit *l = &limit_rows[n];
            uint64_t most = limit_get(&p->maxima, l);

            if (most > limit_get(&m->limits, l))
                limit_set(&m->limits, l, most);
        }
        for (unsigned n = 0; n < TIME_LIMITS; n++) {
            const struct time_limit_name *l = &time_limits_named[n];
            uint64_t has = time_limits_get(&m->times, l);

            if (has != 0 && (p->most[n] == 0 || p->most[n] > has))
                time_limits_set(&m->times, l, p->most[n]);
        }
    }
}

/* A principal gets no more than a session of the server may have. */
static int read_maxima(struct view blob, struct principals_maxima *ret, struct err *e)
{
    uint64_t kernels;
    int rc = read_most(blob, &ret->limits, e);

    if (rc == 0)
        rc = read_times(blob, &ret->times, e);
    if (rc == 0)
        rc = settings_number(blob, "max-kernels", 0, &kernels, e);
    if (rc < 0)
        return rc;
    ret->max_kernels = kernels < 1000000 ? (unsigned)kernels : 1000000;
    ret->data = settings_text(blob, "data", NULL);
    uint64_t workspace_mb;
    rc = settings_number(blob, "workspace-mb", LAUNCH_WORKSPACE_MB, &workspace_mb, e);
    if (rc < 0)
        return rc;
    ret->workspace_bytes = workspace_mb << 20;
    return 0;
}

static int read_front(struct gateway_settings *s, struct view blob, struct err *e)
{
    static const uint64_t unset = UINT64_MAX;
    uint64_t ping_ms;

    int rc = settings_number(blob, "ws-ping-interval-ms", unset, &ping_ms, e);
    if (rc == 0)
        rc = read_maxima(blob, &s->front.maxima, e);
    if (rc == 0)
        rc = read_profiles(s, blob, e);
    if (rc < 0)
        return rc;
    widen(s->profiles, &s->front.maxima);
    s->front.maxima.profiles = s->profiles;
    s->front.maxima.profiles_version = s->version;
    s->front = (struct front_config){
        .token = settings_text(blob, "token", NULL),
        .principals = settings_text(blob, "principals", NULL),
        .maxima = s->front.maxima,
        .base_url = settings_text(blob, "base-url", NULL),
        .version = HOLDCELL_VERSION,
        .allow_hosts = settings_text(blob, "allow-hosts", NULL),
        .identity_header = settings_text(blob, "identity-header", NULL),
        .identity_create = strcmp(settings_text(blob, "identity-unknown", ""), "create") == 0,
        .trusted_proxies = settings_text(blob, "trusted-proxy", NULL),
        .tls_cert = settings_text(blob, "tls-cert", NULL),
        .tls_key = settings_text(blob, "tls-key", NULL),
        .tls_client_ca = settings_text(blob, "tls-client-ca", NULL),
        .allow_origin = settings_text(blob, "allow-origin", NULL),
        .allow_credentials = settings_text(blob, "allow-credentials", NULL),
        .allow_headers = settings_text(blob, "allow-headers", NULL),
        .allow_methods = settings_text(blob, "allow-methods", NULL),
        .expose_headers = settings_text(blob, "expose-headers", NULL),
        .max_age = settings_text(blob, "cors-max-age", NULL),
        .metrics_open = settings_flag(blob, "metrics-open"),
        .access_log = settings_text(blob, "access-log", NULL),
        .no_list_kernels = settings_flag(blob, "no-list-kernels"),
        .ws_ping_set = ping_ms != unset,
        .ws_ping_ms = ping_ms != unset ? ping_ms : 0,
    };
    return 0;
}

static int read_policy(struct gateway_settings *s, struct view blob, struct err *e)
{
    struct ratelimit_config rate;
    uint64_t max_kernels, info_ms, cull_ms, cull_interval_ms, seed_ms, orphan_s, create_ms,
        drain_ms;

    int rc = settings_number(blob, "max-kernels", 0, &max_kernels, e);
    if (rc == 0)
        rc = settings_number(blob, "kernel-info-timeout-ms", 0, &info_ms, e);
    if (rc == 0)
        rc = settings_number(blob, "cull-idle-timeout-ms", 0, &cull_ms, e);
    if (rc == 0)
        rc = settings_number(blob, "cull-interval-ms", 0, &cull_interval_ms, e);
    if (rc == 0)
        rc = settings_number(blob, "seed-timeout-ms", 0, &seed_ms, e);
    if (rc == 0)
        rc = settings_number(blob, "iopub-msg-rate", 0, &rate.messages, e);
    if (rc == 0)
        rc = settings_number(blob, "iopub-data-rate", 0, &rate.bytes, e);
    if (rc == 0)
        rc = settings_number(blob, "iopub-rate-window-ms", 0, &rate.window_ms, e);
    if (rc == 0)
        rc = settings_number(blob, "orphan-timeout", ORPHAN_S, &orphan_s, e);
    if (rc == 0)
        rc = settings_number(blob, "create-timeout-ms", CREATE_MS, &create_ms, e);
    if (rc == 0)
        rc = settings_number(blob, "drain-timeout-ms", 0, &drain_ms, e);
    if (rc < 0)
        return rc;
    struct launch_limits limits, most;
    struct time_limits times;
    rc = read_limits(blob, &limits, e);
    if (rc == 0)
        rc = read_most(blob, &most, e);
    if (rc == 0)
        rc = read_times(blob, &times, e);
    if (rc < 0)
        return rc;
    s->policy = (struct sessions_policy){
        .limits = limits,
        .most = most,
        .times = times,
        .max_kernels = max_kernels < 1000000 ? (unsigned)max_kernels : 1000000,
        .force_kernel = settings_text(blob, "force-kernel", NULL),
        .env_allow = settings_text(blob, "env-allow", NULL),
        .runtime = settings_text(blob, "runtime", NULL),
        .private_dir_fd = -1,
        .cull = { .idle_ms = cull_ms,
                  .interval_ms = cull_interval_ms,
                  .connected = settings_flag(blob, "cull-connected"),
                  .busy = settings_flag(blob, "cull-busy") },
        .iopub_rate = rate,
        .data = settings_text(blob, "data", NULL),
        .message_types = settings_text(blob, "allowed-message-types", NULL),
        .workspaces = settings_flag(blob, "workspaces"),
        .no_tracebacks = settings_flag(blob, "no-tracebacks"),
        .handshake_ms = info_ms,
        .seed_ms = seed_ms,
        .create_ms = create_ms,
        .shutdown_wait_ms = drain_ms,
        .orphan_ms = orphan_s * 1000,
    };
    read_env(s, blob);
    return 0;
}

static int read_log(struct gateway_settings *s, struct view blob, struct err *e)
{
    s->log_level = LOGLINE_INFO;
    s->audit = settings_flag(blob, "audit");
    s->audit_required = settings_flag(blob, "audit-required");
    if (!logline_format_of(settings_text(blob, "log-format", "text"), &s->log_format) ||
        !logline_level_of(settings_text(blob, "log-level", "info"), &s->log_level))
        return err_set(e, EINVAL, "settings log-format and log-level: no such value");
    return 0;
}

static int read_seed(struct gateway_settings *s, struct view blob, struct err *e)
{
    const char *notebook = settings_text(blob, "seed-notebook", NULL);
    uint64_t count;
    int rc = settings_number(blob, "prespawn", 0, &count, e);

    if (rc == 0 && count > PRESPAWN_MAX)
        rc = err_set(e, EINVAL, "option --prespawn: more than %d kernels", PRESPAWN_MAX);
    if (rc < 0)
        return rc;
    s->prespawn = (unsigned)count;
    if (notebook == NULL)
        return 0;
    rc = seed_parse(view_cstr(notebook), &s->seed, e);
    if (rc < 0)
        return err_wrap(e, "option --seed-notebook");
    s->seed_kernel = s->policy.force_kernel != NULL ? s->policy.force_kernel : s->seed->kernel;
    if (s->seed_kernel[0] == '\0')
        return err_set(e, EINVAL,
                       "option --seed-notebook: the notebook names no kernelspec in its "
                       "metadata, and --force-kernel none either");
    return 0;
}

/* Kernels that belong to nobody could not be used by anybody. */
static int check_prespawn_owner(const struct gateway_settings *s, struct err *e)
{
    if (s->prespawn == 0 || s->front.principals == NULL || s->front.token != NULL)
        return 0;
    struct principals *t = principals_new();
    int rc = principals_parse(t, view_cstr(s->front.principals), NULL, e);
    if (rc == 0 && principals_by_name(t, PRINCIPAL_DEFAULT, 0) == NULL)
        rc = err_set(e, EINVAL,
                     "option --prespawn: the kernels belong to the principal '%s', and "
                     "--principals has none of that name",
                     PRINCIPAL_DEFAULT);
    principals_free(t);
    return rc;
}

int gateway_settings_check(const struct gateway_settings *s, struct err *e)
{
    struct kernelspec *found = NULL;

    if (check_prespawn_owner(s, e) < 0)
        return -EINVAL;
    if (s->seed == NULL)
        return 0;
    struct kernelspecs *specs =
        kernelspecs_new(s->kernel_path, s->allowed_kernels, s->default_kernel);
    int rc = kernelspecs_find(specs, s->seed_kernel, &found, e);
    kernelspec_free(found);
    kernelspecs_free(specs);
    return rc < 0 ? err_wrap(e, "option --seed-notebook") : 0;
}

/* Whoever may ask is said; the front reads how. */
static int check_auth(struct view blob, struct err *e)
{
    int secret = settings_text(blob, "token", NULL) != NULL ||
                 settings_text(blob, "principals", NULL) != NULL;

    if (secret != settings_flag(blob, "no-auth"))
        return 0;
    return err_set(e, EINVAL, "settings name neither a token nor no-auth, or both");
}

static int take_apart(struct gateway_settings *s, struct view page, struct err *e)
{
    struct view blob;
    int rc = settingspage_decode(page, &s->version, &blob, e);

    if (rc == 0)
        rc = read_policy(s, blob, e);
    if (rc == 0)
        rc = read_front(s, blob, e);
    if (rc == 0)
        rc = read_seed(s, blob, e);
    if (rc == 0)
        rc = check_auth(blob, e);
    if (rc == 0)
        rc = read_log(s, blob, e);
    if (rc < 0)
        return rc;
    s->kernel_path = settings_text(blob, "kernel-path", "");
    s->allowed_kernels = settings_text(blob, "allowed-kernels", NULL);
    s->default_kernel = settings_text(blob, "default-kernel", NULL);
    s->keep_kernels = strcmp(settings_text(blob, "on-exit", "stop"), "keep") == 0;
    return 0;
}

int gateway_settings_read(int fd, struct gateway_settings *ret, struct err *e)
{
    struct gateway_settings s = { 0 };

    /* Room to see that it is longer than allowed. */
    buf_init(&s.page, SETTINGSPAGE_HEAD + SETTINGS_MAX + 8192);
    int rc = read_page(fd, &s.page, e);
    if (rc == 0)
        rc = take_apart(&s, buf_view(&s.page), e);
    if (rc < 0)
        gateway_settings_free(&s);
    else
        *ret = s;
    return rc;
}

int gateway_settings_await(int fd, struct gateway_settings *ret, struct err *e)
{
    int rc = -EAGAIN;

    for (int i = 0; i < TRIES && rc == -EAGAIN; i++) {
        if (i > 0)
            nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
        rc = gateway_settings_read(fd, ret, e);
    }
    return rc;
}

int gateway_settings_parse(struct view blob, struct gateway_settings *ret, struct err *e)
{
    struct gateway_settings s = { 0 };

    buf_init(&s.page, SETTINGSPAGE_HEAD + SETTINGS_MAX);
    int rc = settingspage_encode(0, blob, &s.page, e);
    if (rc == 0)
        rc = take_apart(&s, buf_view(&s.page), e);
    if (rc < 0)
        gateway_settings_free(&s);
    else
        *ret = s;
    return rc;
}

static void wipe(const char **text)
{
    if (*text != NULL)
        explicit_bzero((char *)(uintptr_t)*text, strlen(*text));
    *text = NULL;
}

void gateway_settings_forget_key(struct gateway_settings *s)
{
    if (s->front.tls_key == NULL)
        wipe(&s->front.tls_cert);
    wipe(&s->front.tls_key);
}

void gateway_settings_free(struct gateway_settings *s)
{
    if (s->page.data != NULL)
        explicit_bzero(s->page.data, s->page.size);
    buf_free(&s->page);
    free(s->env_server);
    free(s->profiles);
    seed_drop(s->seed);
    *s = (struct gateway_settings){ 0 };
}
