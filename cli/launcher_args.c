#include "launcher_args.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "serve_options.h"
#include "siblings.h"

enum { ARGS_MAX = 60 }; /* below KEEPER_STRINGS_MAX */

struct args {
    char **list;
    size_t count;
};

static void add(struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct args *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    check(a->count < ARGS_MAX && vasprintf(&a->list[a->count], fmt, ap) >= 0);
    va_end(ap);
    a->count++;
}

static void add_number(struct args *a, const char *name, uint64_t value)
{
    if (value != SERVE_UNSET)
        add(a, "--%s=%" PRIu64, name, value);
}

/* A server that shall hold more kernels needs room for as many sandboxes. */
static void add_sessions(struct args *a, uint64_t max_kernels)
{
    enum { USUAL = 1024, MOST = 16384 }; /* the launcher's default and its bound */

    if (max_kernels > USUAL)
        add_number(a, "max-sessions", max_kernels < MOST ? max_kernels : MOST);
}

/* The launcher takes whole numbers only: processor time goes in thousandths. */
static void add_limits(struct args *a, const struct serve_options *o)
{
    for (unsigned i = 0; i < LIMITS; i++)
        add_number(a, limit_rows[i].option, o->limits[i]);
    for (unsigned i = 0; i < LIMITS; i++)
        if (o->most[i] != SERVE_UNSET)
            add(a, "--max-%s=%" PRIu64, limit_rows[i].option, o->most[i]);
    add_number(a, "memory-reserve-mb", o->memory_reserve_mb);
    add_number(a, "disk-reserve-mb", o->disk_reserve_mb);
    if (o->home != NULL)
        add(a, "--home=%s", o->home);
}

/* Descriptor numbers: the order of supervise_plan.fds in serve.c. */
char **launcher_args(const struct serve_options *o, const struct launcher_context *c, int sweep)
{
    struct args a = { .list = xcalloc(ARGS_MAX + 1, sizeof(char *)) };

    add(&a, "%s", c->siblings->launcher);
    add(&a, "--slot=%u", c->slot);
    add(&a, "--init=%s", c->siblings->init);
    add(&a, "--gateway=%s", c->siblings->gateway);
    add(&a, "--runtime=%s", c->siblings->runtime);
    add(&a, "--kernel-path=%s", c->kernel_path);
    if (o->cgroup_parent != NULL)
        add(&a, "--cgroup-parent=%s", o->cgroup_parent);
    if (o->isolation != NULL)
        add(&a, "--isolation=%s", o->isolation);
    if (o->accept_missing != NULL)
        add(&a, "--accept-missing=%s", o->accept_missing);
    if (sweep)
        add(&a, "--sweep");
    add(&a, "--listen-fd=3");
    add(&a, "--settings-fd=4");
    add(&a, "--ready-fd=5");
    add(&a, "--dir-fd=6");
    add(&a, "--slot-fd=7");
    add(&a, "--state-fd=8");
    add(&a, "--state-dir-fd=9");
    add(&a, "--control-fd=10");
    if (c->more_listen_count > 0) {
        add(&a, "--more-listen-fd=11");
        add(&a, "--more-listen-count=%u", c->more_listen_count);
    }
    if (o->workspaces != NULL)
        add(&a, "--workspaces=%s", o->workspaces);
    add_number(&a, "workspace-mb", o->workspace_mb);
    if (c->data != NULL)
        add(&a, "--data=%s", c->data);
    if (o->audit_log != NULL)
        add(&a, "--audit-log=%s", o->audit_log);
    if (o->log_format != NULL)
        add(&a, "--log-format=%s", o->log_format);
    if (o->log_level != NULL)
        add(&a, "--log-level=%s", o->log_level);
    add_sessions(&a, o->max_kernels);
    add_limits(&a, o);
    return a.list;
}

void launcher_args_free(char **args)
{
    for (size_t i = 0; args != NULL && args[i] != NULL; i++)
        free(args[i]);
    free(args);
}
