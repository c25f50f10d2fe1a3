#include "serve_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "environment.h"
#include "err.h"
#include "memoryfiles.h"
#include "options.h"
#include "optionvalue.h"
#include "serve_token.h"
#include "timelimits.h"

#define TEXT(name, metavar, member, help)                                                \
    {                                                                                    \
        name, metavar, OPTION_STRING, offsetof(struct serve_options, member), 0, 0, help \
    }
#define FLAG(name, member, help)                                                    \
    {                                                                               \
        name, NULL, OPTION_FLAG, offsetof(struct serve_options, member), 0, 0, help \
    }
#define NUMBER(name, metavar, member, min, max, help)                                        \
    {                                                                                        \
        name, metavar, OPTION_NUMBER, offsetof(struct serve_options, member), min, max, help \
    }
#define MILLI(name, metavar, member, min, max, help)                                        \
    {                                                                                       \
        name, metavar, OPTION_MILLI, offsetof(struct serve_options, member), min, max, help \
    }
#define LIMIT(kind, name, metavar, id, help)                                     \
    {                                                                            \
        name, metavar, kind, offsetof(struct serve_options, limits[LIMIT_##id]), \
            LIMIT_##id##_LEAST, LIMIT_##id##_MOST, help                          \
    }
#define MOST(kind, name, metavar, id, help)                                                        \
    {                                                                                              \
        name, metavar, kind, offsetof(struct serve_options, most[LIMIT_##id]), LIMIT_##id##_LEAST, \
            LIMIT_##id##_MOST, help                                                                \
    }
#define GROUP(name)                             \
    {                                           \
        name, NULL, OPTION_GROUP, 0, 0, 0, NULL \
    }

static const struct option_spec specs[] = {
    FLAG("help", help, "show this list"),
    FLAG("help-kernel-gateway", help_kernel_gateway,
         "show what names of Jupyter Kernel Gateway's settings mean here"),

    GROUP("Where, and for whom"),
    TEXT("listen", "ADDR:PORT,...", listen,
         "where to listen (127.0.0.1:8888); [::1]:PORT and unix:/PATH too"),
    TEXT("ip", "ADDR", ip, "another way to say --listen ADDR:PORT (127.0.0.1)"),
    NUMBER("port", "PORT", port, 0, 65535, "likewise (8888)"),
    NUMBER("port-retries", "N", port_retries, 0, 1000, "other ports to try when it is in use (0)"),
    TEXT("listen-mode", "MODE", listen_mode, "of Unix sockets: who may connect (0660)"),
    TEXT("listen-group", "GROUP", listen_group, "of Unix sockets (root)"),
    TEXT("trusted-proxy", "CIDR,...", trusted_proxy,
         "proxies whose X-Forwarded-* count; `unix`: by Unix sockets (none)"),
    TEXT("identity-header", "NAME", identity_header,
         "header by which a trusted proxy names the user (none)"),
    TEXT("identity-unknown", "WORD", identity_unknown,
         "users without a line in --principals: refuse, create (refuse)"),
    TEXT("allow-hosts", "NAME,...", allow_hosts,
         "with --no-auth: names beside localhost that clients may use"),
    TEXT("token", "TOKEN", token, "what clients must present (random, printed at the start)"),
    TEXT("token-file", "FILE", token_file, "read the token from a file; HOLDCELL_TOKEN works too"),
    TEXT("principals", "FILE", principals,
         "who may ask, one a line with hashes of tokens; read again at SIGHUP"),
    FLAG("no-auth", no_auth, "ask for no token; on loopback only"),
    TEXT("base-url", "PATH", base_url, "prefix of all routes (/)"),

    GROUP("This instance"),
    TEXT("state-dir", "DIR", state_dir, "state of this instance (/var/lib/holdcell/PORT)"),
    TEXT("runtime", "DIR", runtime,
         "the Python runtime that kernels get (the one beside this build)"),
    TEXT("cgroup-parent", "PATH", cgroup_parent,
         "cgroup to work below, v2 only (chosen by what the host offers)"),

    TEXT("isolation", "LEVEL", isolation,
         "walls that are demanded: namespaces or hardened (hardened)"),
    TEXT("accept-missing", "WALL,...", accept_missing,
         "serve although these are missing: landlock, seccomp (none)"),

    GROUP("Kernels"),
    TEXT("kernel-path", "DIR:...", kernel_path, "data directories with kernels/NAME/kernel.json"),
    TEXT("allowed-kernels", "NAME,...", allowed_kernels, "offer only these kernelspecs (all)"),
    TEXT("default-kernel", "NAME", default_kernel, "kernelspec when a client names none (python3)"),
    TEXT("force-kernel", "NAME", force_kernel, "kernelspec whatever a client names"),
    FLAG("no-list-kernels", no_list_kernels, "refuse to list running kernels and sessions"),
    NUMBER("max-kernels", "N", max_kernels, 0, 1000000, "most kernels at a time; 0: no limit (0)"),
    TEXT("env-allow", "NAME,...", env_allow,
         "variables that a request may set for its kernel (none)"),
    TEXT("env-inherit", "NAME,...", env_inherit,
         "variables of this environment that kernels get (none)"),
    NUMBER("orphan-timeout", "SECONDS", orphan_timeout_s, 0, 30 * 24 * 3600,
           "sessions end after this time without a gateway; 0: never (600)"),
    MILLI("kernel-info-timeout", "SECONDS", kernel_info_timeout_ms, 1, 86400000,
          "how long a WebSocket handshake waits for its kernel's start (8)"),
    MILLI("ws-ping-interval", "SECONDS", ws_ping_interval_ms, 0, 86400000,
          "pause between WebSocket pings; 0: none (30)"),

    NUMBER("prespawn", "N", prespawn, 0, 1000, "kernels to start with the server (0)"),
    TEXT("seed-notebook", "FILE", seed_notebook,
         "notebook whose code cells each kernel of its kernelspec runs first"),
    MILLI("seed-timeout", "SECONDS", seed_timeout_ms, 1, 86400000,
          "time for the seed notebook, from the start of the kernel (60)"),

    GROUP("Ends of idle kernels"),
    MILLI("cull-idle-timeout", "SECONDS", cull_idle_timeout_ms, 0, 31622400000,
          "end kernels idle so long and without a client; 0: never (0)"),
    MILLI("cull-interval", "SECONDS", cull_interval_ms, 100, 86400000,
          "pause between two looks for idle kernels (300)"),
    FLAG("cull-connected", cull_connected, "cull also kernels that a client is connected to"),
    FLAG("cull-busy", cull_busy, "cull also kernels that are at work"),

    GROUP("Limits of time"),
    MILLI("cell-timeout", "SECONDS", cell_timeout_ms, 0, 31622400000,
          "how long the code of a cell may run; 0: no limit (0)"),
    MILLI("stdin-timeout", "SECONDS", stdin_timeout_ms, 0, 31622400000,
          "how long input() may wait; 0: as long as the cell may run (0)"),
    MILLI("create-timeout", "SECONDS", create_timeout_ms, 0, 86400000,
          "from the start of a kernel to its first answer; 0: no limit (120)"),
    MILLI("drain-timeout", "SECONDS", drain_timeout_ms, 100, 6000,
          "how long a kernel may take to end in order, before it is killed (5)"),
    MILLI("max-lifetime", "SECONDS", max_lifetime_ms, 0, 31622400000,
          "sessions end so long after their start; 0: no limit (0)"),

    GROUP("TLS"),
    TEXT("tls-cert", "FILE", tls_cert,
         "serve https: certificate and chain, PEM; SIGHUP reads again"),
    TEXT("tls-key", "FILE", tls_key, "its private key, PEM, unencrypted (beside the certificate)"),
    TEXT("tls-client-ca", "FILE", tls_client_ca,
         "ask clients for a certificate of these authorities, PEM"),

    GROUP("Browsers"),
    TEXT("allow-origin", "ORIGIN", allow_origin, "CORS: origin that browsers may come from, or *"),
    TEXT("allow-credentials", "VALUE", allow_credentials, "CORS: Access-Control-Allow-Credentials"),
    TEXT("allow-headers", "VALUE", allow_headers, "CORS: Access-Control-Allow-Headers"),
    TEXT("allow-methods", "VALUE", allow_methods, "CORS: Access-Control-Allow-Methods"),
    TEXT("expose-headers", "VALUE", expose_headers, "CORS: Access-Control-Expose-Headers"),
    TEXT("cors-max-age", "SECONDS", cors_max_age, "CORS: Access-Control-Max-Age"),

    GROUP("Limits of a session"),
    LIMIT(OPTION_NUMBER, "memory-mb", "MIB", MEMORY, "memory of one session (2048)"),
    LIMIT(OPTION_MILLI, "cpus", "N", CPUS, "processor time of one session in cores (1)"),
    LIMIT(OPTION_NUMBER, "pids", "N", PIDS, "processes and threads of one session (256)"),
    LIMIT(OPTION_NUMBER, "disk-mb", "MIB", DISK,
          "size of a session's home (1024; in memory 512 or less)"),
    LIMIT(OPTION_NUMBER, "tmp-mb", "MIB", TMP, "size of a session's /tmp (256)"),
    LIMIT(OPTION_NUMBER, "shm-mb", "MIB", SHM, "size of a session's /dev/shm (128)"),
    LIMIT(OPTION_NUMBER, "inodes", "N", INODES,
          "files in home, in /tmp and in /dev/shm, each (32768)"),
    LIMIT(OPTION_NUMBER, "fds", "N", FDS, "open files of one process (4096)"),
    NUMBER("memory-reserve-mb", "MIB", memory_reserve_mb, 0, 1 << 24,
           "memory that sessions leave free on the host (512, or 5 % of it)"),
    TEXT("home", "WORD", home, "homes lie on disk, in memory (tmpfs), or as there is room (auto)"),
    NUMBER("disk-reserve-mb", "MIB", disk_reserve_mb, 0, 1 << 24,
           "disk that homes leave free below --state-dir (1024, or 5 %)"),
    { "data", "NAME=/PATH", OPTION_LIST, offsetof(struct serve_options, data), 0, 0,
      "read-only directory of sessions, /data/NAME; again for more" },
    TEXT("workspaces", "DIR", workspaces,
         "lasting /home/user/work of each principal, images in DIR"),
    NUMBER("workspace-mb", "MIB", workspace_mb, 1, 1 << 24, "size of each, when it is made (1024)"),
    TEXT("on-exit", "WORD", on_exit,
         "kernels when the server ends: stop, or keep for the next one (stop)"),

    GROUP("Limits of a session: how far a request may go"),
    TEXT("profiles", "FILE", profiles,
         "named profiles (JSON): limits, kernels, walls; read at SIGHUP too"),
    MOST(OPTION_NUMBER, "max-memory-mb", "MIB", MEMORY, "(--memory-mb, and so on)"),
    MOST(OPTION_MILLI, "max-cpus", "N", CPUS, ""),
    MOST(OPTION_NUMBER, "max-pids", "N", PIDS, ""),
    MOST(OPTION_NUMBER, "max-disk-mb", "MIB", DISK, ""),
    MOST(OPTION_NUMBER, "max-tmp-mb", "MIB", TMP, ""),
    MOST(OPTION_NUMBER, "max-shm-mb", "MIB", SHM, ""),
    MOST(OPTION_NUMBER, "max-inodes", "N", INODES, ""),
    MOST(OPTION_NUMBER, "max-fds", "N", FDS, ""),
    MOST(OPTION_NUMBER, "max-output-mb", "MIB", OUTPUT, ""),

    GROUP("Limits of output"),
    LIMIT(OPTION_NUMBER, "output-mb", "MIB", OUTPUT, "what the output of one cell may take (1024)"),
    NUMBER("iopub-msg-rate", "N", iopub_msg_rate, 0, 1000000000,
           "messages of output a second for one socket; 0: no limit (0)"),
    NUMBER("iopub-data-rate", "BYTES", iopub_data_rate, 0, 1000000000000,
           "bytes of printed text a second for one socket; 0: no limit (0)"),
    MILLI("iopub-rate-window", "SECONDS", iopub_rate_window_ms, 10, 86400000,
          "time over which the two rates are measured (3)"),
    FLAG("no-tracebacks", no_tracebacks, "errors of cells are told without their text"),
    TEXT("allowed-message-types", "LIST", allowed_message_types,
         "types of messages that clients may send, with commas (all)"),

    GROUP("Log"),
    TEXT("log-format", "text|json", log_format, "one line per event on stderr, as this (text)"),
    TEXT("log-level", "LEVEL", log_level, "least level: debug, info, warn or error (info)"),
    TEXT("access-log", "LEVEL", access_log,
         "level of a request's line: auto, debug, info or off (auto)"),
    TEXT("audit-log", "FILE", audit_log, "who did what, in chained lines; docs/OPERATING.md"),
    FLAG("audit-required", audit_required, "refuse what cannot be written to the audit file"),
    FLAG("metrics-open", metrics_open, "/metrics asks for no token"),
};

enum { SPEC_COUNT = sizeof specs / sizeof specs[0] };

/* --listen, or --ip and --port: whichever comes from the higher source. */
static int choose_listen(const struct option_reader *r, struct serve_options *o, struct err *e)
{
    const struct option_mark *whole = options_mark(r, "listen"), *ip = options_mark(r, "ip"),
                             *port = options_mark(r, "port");
    const struct option_mark *part = ip->rank > port->rank ? ip : port;

    if (part->rank == OPTION_UNSET || whole->rank > part->rank)
        return 0;
    if (asprintf(&o->listen_text, "%s:%llu", o->ip, (unsigned long long)o->port) < 0) {
        o->listen_text = NULL;
        return err_set(e, ENOMEM, "no memory");
    }
    if (whole->rank == part->rank && strcmp(o->listen, o->listen_text) != 0)
        return err_set(e, EINVAL, "%s contradicts %s", part->label, whole->label);
    o->listen = o->listen_text;
    return 0;
}

static int choose_base_url(struct serve_options *o, struct err *e)
{
    const char *given = o->base_url != NULL ? o->base_url : "/";
    size_t n = strlen(given);

    if (given[0] != '/' || n > 1024)
        return err_set(e, EINVAL, "option --base-url: '%.64s' does not begin with '/'", given);
    for (size_t i = 0; i < n; i++) {
        if (given[i] <= ' ' || given[i] > '~' || given[i] == '?' || given[i] == '#')
            return err_set(e, EINVAL, "option --base-url: '%.64s' is not a path", given);
    }
    o->base_text = xcalloc(1, n + 2);
    memcpy(o->base_text, given, n);
    if (given[n - 1] != '/')
        o->base_text[n] = '/';
    o->base_url = o->base_text;
    return 0;
}

static int check_identity(const struct serve_options *o, struct err *e)
{
    const char *unknown = o->identity_unknown;

    if (unknown != NULL && o->identity_header == NULL)
        return err_set(e, EINVAL, "option --identity-unknown: --identity-header is not given");
    if (unknown != NULL && strcmp(unknown, "refuse") != 0 && strcmp(unknown, "create") != 0)
        return err_set(e, EINVAL, "option --identity-unknown: '%.32s' is not refuse or create",
                       unknown);
    if (o->identity_header != NULL && o->trusted_proxy == NULL)
        return err_set(e, EINVAL, "option --identity-header: --trusted-proxy names no proxy");
    if (o->identity_header != NULL && o->no_auth)
        return err_set(e, EINVAL, "option --identity-header contradicts --no-auth");
    return 0;
}

/* A value from elsewhere than the command line is told with where it is from. */
static int wrong_value(const struct option_reader *r, const char *option, struct err *e)
{
    const struct option_mark *m = options_mark(r, option);

    if (m->rank == OPTION_BY_ENVIRONMENT)
        err_wrap(e, "%s", m->label);
    return -EINVAL;
}

/* As profiles, principals and requests have it. */
static int check_times(const struct serve_options *o, struct err *e)
{
    const struct {
        const char *option;
        uint64_t ms;
    } times[] = {
        { "cell-timeout", o->cell_timeout_ms },
        { "stdin-timeout", o->stdin_timeout_ms },
        { "max-lifetime", o->max_lifetime_ms },
    };

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (times[i].ms != 0 && times[i].ms < TIME_LEAST_MS)
            return err_set(e, EINVAL, "option --%s: %g is below the least, %g; 0 is none",
                           times[i].option, (double)times[i].ms / 1000, TIME_LEAST_MS / 1000.0);
    }
    return 0;
}

static int check_values(const struct option_reader *r, const struct serve_options *o, struct err *e)
{
    const struct {
        const char *option, *value;
        int (*examine)(const char *option, const char *value, struct err *e);
    } values[] = {
        { "seed-notebook", o->seed_notebook, optionvalue_file },
        { "identity-header", o->identity_header, optionvalue_header_name },
        { "allowed-kernels", o->allowed_kernels, optionvalue_kernels },
        { "default-kernel", o->default_kernel, optionvalue_kernels },
        { "force-kernel", o->force_kernel, optionvalue_kernels },
        { "env-allow", o->env_allow, optionvalue_variables },
        { "allowed-message-types", o->allowed_message_types, optionvalue_types },
        { "env-inherit", o->env_inherit, optionvalue_variables },
        { "allow-origin", o->allow_origin, optionvalue_origin },
        { "allow-credentials", o->allow_credentials, optionvalue_header },
        { "allow-headers", o->allow_headers, optionvalue_header },
        { "allow-methods", o->allow_methods, optionvalue_header },
        { "expose-headers", o->expose_headers, optionvalue_header },
        { "cors-max-age", o->cors_max_age, optionvalue_seconds },
        { "log-format", o->log_format, optionvalue_log_format },
        { "log-level", o->log_level, optionvalue_log_level },
        { "access-log", o->access_log, optionvalue_access_log },
        { "isolation", o->isolation, optionvalue_isolation },
        { "accept-missing", o->accept_missing, optionvalue_walls },
        { "home", o->home, optionvalue_home },
        { "workspaces", o->workspaces, optionvalue_workspaces },
    };

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (values[i].examine(values[i].option, values[i].value, e) < 0)
            return wrong_value(r, values[i].option, e);
    }
    if (o->tls_cert == NULL && (o->tls_key != NULL || o->tls_client_ca != NULL))
        return err_set(e, EINVAL, "option --%s: there is no --tls-cert",
                       o->tls_key != NULL ? "tls-key" : "tls-client-ca");
    if (o->max_kernels > 0 && o->prespawn > o->max_kernels)
        return err_set(e, EINVAL,
                       "option --prespawn: %llu kernels are more than --max-kernels %llu",
                       (unsigned long long)o->prespawn, (unsigned long long)o->max_kernels);
    if (o->state_dir != NULL && o->state_dir[0] == '\0')
        return err_set(e, EINVAL, "option --state-dir: the name is empty");
    if (o->workspace_mb != SERVE_UNSET && o->workspaces == NULL)
        return err_set(e, EINVAL, "option --workspace-mb needs --workspaces");
    int rc = check_times(o, e);
    return rc < 0 ? rc : check_identity(o, e);
}

/* What sessions get without a wish they may ask for as well. */
static int check_most(const struct serve_options *o, struct err *e)
{
    struct launch_limits usual = LAUNCH_LIMITS_DEFAULT;

    for (unsigned i = 0; i < LIMITS; i++) {
        const struct limit *l = &limit_rows[i];
        const char *name = l->milli ? l->name : l->option;
        uint64_t has = o->limits[i] != SERVE_UNSET ? o->limits[i] : limit_get(&usual, l) / l->unit;
        double number = (double)l->number_unit / (double)l->unit;

        if (o->most[i] != SERVE_UNSET && o->most[i] < has)
            return err_set(e, EINVAL, "option --max-%s: %g is below --%s, which is %g", name,
                           (double)o->most[i] / number, name, (double)has / number);
    }
    return 0;
}

static char **copy_arguments(int argc, char **argv)
{
    char **copy = xcalloc((size_t)argc + 1, sizeof *copy);

    for (int i = 0; i < argc; i++)
        copy[i] = xstrdup(argv[i]);
    return copy;
}

int serve_options_read(int argc, char **argv, struct serve_options *ret, struct err *e)
{
    *ret = (struct serve_options){
        .listen = "127.0.0.1:8888",
        .orphan_timeout_s = SERVE_UNSET,
        .ip = "127.0.0.1",
        .port = 8888,
        .kernel_info_timeout_ms = SERVE_UNSET,
        .iopub_rate_window_ms = SERVE_UNSET,
        .ws_ping_interval_ms = SERVE_UNSET,
        .seed_timeout_ms = SERVE_UNSET,
        .cell_timeout_ms = SERVE_UNSET,
        .stdin_timeout_ms = SERVE_UNSET,
        .max_lifetime_ms = SERVE_UNSET,
        .create_timeout_ms = SERVE_UNSET,
        .drain_timeout_ms = SERVE_UNSET,
        .cull_idle_timeout_ms = SERVE_UNSET,
        .cull_interval_ms = SERVE_UNSET,
        .limits = { [0 ... LIMITS - 1] = SERVE_UNSET },
        .most = { [0 ... LIMITS - 1] = SERVE_UNSET },
        .memory_reserve_mb = SERVE_UNSET,
        .disk_reserve_mb = SERVE_UNSET,
        .workspace_mb = SERVE_UNSET,
        .on_exit = "stop",
    };
    ret->storage = copy_arguments(argc, argv);
    serve_token_wipe(argc, argv);
    struct option_mark marks[SPEC_COUNT];
    const struct option_reader r = { .specs = specs,
                                     .count = SPEC_COUNT,
                                     .out = ret,
                                     .marks = marks,
                                     .foreign = kgsettings_flag,
                                     .foreign_arg = &ret->kg };

    memset(marks, 0, sizeof marks);
    ret->kg.reader = &r;
    int rc = options_read(&r, argc, ret->storage, e);
    if (rc < 0 || ret->help || ret->help_kernel_gateway)
        return rc < 0 ? rc : 0;
    rc = environment_read(&r, e);
    if (rc == 0)
        rc = kgsettings_environment(&ret->kg, e);
    ret->kg.reader = NULL;
    if (rc == 0)
        rc = choose_listen(&r, ret, e);
    if (rc < 0)
        return rc;
    if (strcmp(ret->on_exit, "stop") != 0 && strcmp(ret->on_exit, "keep") != 0)
        return err_set(e, EINVAL, "option --on-exit: '%.32s' is not 'stop' or 'keep'",
                       ret->on_exit);
    if (ret->audit_required && ret->audit_log == NULL)
        return err_set(e, EINVAL, "option --audit-required needs --audit-log");
    rc = check_values(&r, ret, e);
    if (rc == 0)
        rc = choose_base_url(ret, e);
    if (rc == 0)
        rc = memoryfiles_fit(ret, e);
    if (rc == 0)
        rc = check_most(ret, e);
    return rc < 0 ? rc : serve_token_choose(&r, ret, e);
}

void serve_options_free(struct serve_options *o)
{
    for (size_t i = 0; o->storage != NULL && o->storage[i] != NULL; i++) {
        explicit_bzero(o->storage[i], strlen(o->storage[i]));
        free(o->storage[i]);
    }
    free(o->storage);
    if (o->token_text != NULL)
        explicit_bzero(o->token_text, strlen(o->token_text));
    free(o->token_text);
    free(o->base_text);
    free(o->listen_text);
    kgsettings_free(&o->kg);
    *o = (struct serve_options){ 0 };
}

void serve_options_warn(void)
{
    const struct option_reader r = { .specs = specs, .count = SPEC_COUNT };

    environment_warn(&r);
}

void serve_options_help(void)
{
    printf(
        "usage: holdcell serve [OPTION...]\n\n"
        "Serves Jupyter kernels, each in a sandbox of its own, until SIGINT or SIGTERM. Runs as\n"
        "root. Defaults in parentheses. Each option is a variable too: --max-kernels is\n"
        "HOLDCELL_MAX_KERNELS. The command line comes before the environment.\n\n");
    options_help(specs, SPEC_COUNT, stdout);
}
