#include "serve_settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "serve_options.h"

/* Absent options are absent settings: the gateway knows its defaults. */
static int add_text(struct buf *out, const char *key, const char *value, struct err *e)
{
    return value != NULL ? settings_add(out, key, value, e) : 0;
}

static int add_number(struct buf *out, const char *key, uint64_t value, struct err *e)
{
    return value != SERVE_UNSET ? settings_add_number(out, key, value, e) : 0;
}

static int add_flag(struct buf *out, const char *key, int on, struct err *e)
{
    return on ? settings_add(out, key, "1", e) : 0;
}

/* The values of the variables that --env-inherit names; unset ones are left out. */
static int add_environment(struct buf *out, const char *names, struct err *e)
{
    int rc = 0;

    for (const char *p = names; p != NULL && *p != '\0' && rc == 0;) {
        char key[SETTINGS_KEY_MAX + 1];
        size_t n = strcspn(p, ",");

        if (n == 0 || n > sizeof key - sizeof "env.")
            return err_set(e, EINVAL, "option --env-inherit: '%.40s' is not a list of names",
                           names);
        snprintf(key, sizeof key, "env.%.*s", (int)n, p);
        rc = add_text(out, key, getenv(key + strlen("env.")), e);
        p += n;
        p += *p == ',';
    }
    return rc;
}

static int add_flags(struct buf *out, const struct serve_options *o, struct err *e)
{
    const struct {
        const char *key;
        int value;
    } flags[] = {
        { "metrics-open", o->metrics_open },       { "audit", o->audit_log != NULL },
        { "audit-required", o->audit_required },   { "no-auth", o->no_auth },
        { "no-list-kernels", o->no_list_kernels }, { "no-tracebacks", o->no_tracebacks },
        { "cull-connected", o->cull_connected },   { "cull-busy", o->cull_busy },
        { "workspaces", o->workspaces != NULL },
    };
    int rc = 0;

    for (size_t i = 0; i < sizeof flags / sizeof flags[0] && rc == 0; i++)
        rc = add_flag(out, flags[i].key, flags[i].value, e);
    return rc;
}

int serve_settings_write(const struct serve_options *o, const struct serve_context *c,
                         struct buf *out, struct err *e)
{
    const struct {
        const char *key, *value;
    } texts[] = {
        { "listen", c->listen },
        { "base-url", o->base_url },
        { "token", o->token_text },
        { "kernel-path", c->kernel_path },
        { "runtime", c->runtime },
        { "allowed-kernels", o->allowed_kernels },
        { "default-kernel", o->default_kernel },
        { "force-kernel", o->force_kernel },
        { "env-allow", o->env_allow },
        { "allowed-message-types", o->allowed_message_types },
        { "allow-hosts", o->allow_hosts },
        { "trusted-proxy", o->trusted_proxy },
        { "identity-header", o->identity_header },
        { "identity-unknown", o->identity_unknown },
        { "allow-origin", o->allow_origin },
        { "allow-credentials", o->allow_credentials },
        { "allow-headers", o->allow_headers },
        { "allow-methods", o->allow_methods },
        { "expose-headers", o->expose_headers },
        { "cors-max-age", o->cors_max_age },
        { "log-format", o->log_format },
        { "log-level", o->log_level },
        { "access-log", o->access_log },
        { "on-exit", o->on_exit },
        { "home", o->home },
        { "data", c->data },
    };
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        { "max-kernels", o->max_kernels > 0 ? o->max_kernels : SERVE_UNSET },
        { "cull-idle-timeout-ms", o->cull_idle_timeout_ms },
        { "cull-interval-ms", o->cull_interval_ms },
        { "seed-timeout-ms", o->seed_timeout_ms },
        { "cell-timeout-ms", o->cell_timeout_ms },
        { "stdin-timeout-ms", o->stdin_timeout_ms },
        { "max-lifetime-ms", o->max_lifetime_ms },
        { "create-timeout-ms", o->create_timeout_ms },
        { "drain-timeout-ms", o->drain_timeout_ms },
        { "prespawn", o->prespawn > 0 ? o->prespawn : SERVE_UNSET },
        { "orphan-timeout", o->orphan_timeout_s },
        { "workspace-mb", o->workspace_mb },
        { "kernel-info-timeout-ms", o->kernel_info_timeout_ms },
        { "iopub-msg-rate", o->iopub_msg_rate },
        { "iopub-data-rate", o->iopub_data_rate },
        { "iopub-rate-window-ms", o->iopub_rate_window_ms },
        { "ws-ping-interval-ms", o->ws_ping_interval_ms },
    };
    int rc = 0;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && rc == 0; i++)
        rc = add_text(out, texts[i].key, texts[i].value, e);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && rc == 0; i++)
        rc = add_number(out, numbers[i].key, numbers[i].value, e);
    for (unsigned i = 0; i < LIMITS && rc == 0; i++)
        rc = add_number(out, limit_rows[i].option, o->limits[i], e);
    for (unsigned i = 0; i < LIMITS && rc == 0; i++) {
        char key[SETTINGS_KEY_MAX];

        snprintf(key, sizeof key, "max-%s", limit_rows[i].option);
        rc = add_number(out, key, o->most[i], e);
    }
    if (rc == 0)
        rc = add_flags(out, o, e);
    return rc < 0 ? rc : add_environment(out, o->env_inherit, e);
}
