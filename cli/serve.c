/*
 * serve - `holdcell serve`: reads the options, takes the instance, binds the
 * port, writes the gateway's settings into a memfd, then stays as the supervisor.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "auditfile.h"
#include "buf.h"
#include "command.h"
#include "datalist.h"
#include "err.h"
#include "harden.h"
#include "hostids.h"
#include "instance.h"
#include "kernelpath.h"
#include "launcher_args.h"
#include "listen.h"
#include "log.h"
#include "messagetypes.h"
#include "reload.h"
#include "rlimits.h"
#include "serve_options.h"
#include "serve_settings.h"
#include "siblings.h"
#include "supervise.h"

enum {
    AUDIT_LOG_MS = 3000,
    POLL_MS = 50,
    OWN_FILES = 32 << 20, /* settings with all files in them, the image of init */
};

struct server {
    struct serve_options options;
    struct siblings siblings;
    struct instance instance;
    struct listen_sockets listen;
    char *addresses; /* owned: of listen, a comma list */
    struct reload reload;
    int ready_pipe[2];
    char *kernel_path;             /* owned: the whole list, absolute */
    char *data_paths, *data_names; /* owned: of --data; NULL: none */
    char *announce;                /* owned */
    int other_runtime;             /* 1: kept kernels have another one than this program's */
};

/* Those options that name a file which is read again at SIGHUP. */
static void collect_files(const struct serve_options *o, struct livefiles *files)
{
    if (o->token_live)
        livefiles_add(files, "token", "token-file", o->token_file,
                      LIVEFILE_TOKEN | LIVEFILE_SECRET);
    if (o->principals != NULL)
        livefiles_add(files, "principals", "principals", o->principals, LIVEFILE_SECRET);
    if (o->profiles != NULL)
        livefiles_add(files, "profiles", "profiles", o->profiles, LIVEFILE_POLICY);
    if (o->tls_cert != NULL) /* with the key in it a secret */
        livefiles_add(files, "tls-cert", "tls-cert", o->tls_cert,
                      o->tls_key == NULL ? LIVEFILE_SECRET : 0);
    if (o->tls_key != NULL)
        livefiles_add(files, "tls-key", "tls-key", o->tls_key, LIVEFILE_SECRET);
    if (o->tls_client_ca != NULL)
        livefiles_add(files, "tls-client-ca", "tls-client-ca", o->tls_client_ca, 0);
    if (o->seed_notebook != NULL)
        livefiles_add(files, "seed-notebook", "seed-notebook", o->seed_notebook, LIVEFILE_LARGE);
}

static int write_settings(struct server *s, struct err *e)
{
    autobuf struct buf blob;
    struct livefiles files = { 0 };
    const struct serve_context context = {
        .listen = s->addresses,
        .kernel_path = s->kernel_path,
        .runtime = s->siblings.runtime,
        .data = s->data_names,
    };

    buf_init(&blob, SETTINGS_MAX);
    collect_files(&s->options, &files);
    int rc = serve_settings_write(&s->options, &context, &blob, e);
    if (rc == 0)
        rc = reload_open(&s->reload, &files, buf_view(&blob),
                         hostids_gateway(hostids_base(s->instance.slot)), e);
    livefiles_free(&files);
    if (buf_len(&blob) > 0) /* the token is in it */
        explicit_bzero(blob.data + blob.head, buf_len(&blob));
    return rc;
}

static const char *scheme(const struct server *s, const struct listen_socket *l)
{
    if (l->port == 0)
        return ""; /* unix:/PATH:/BASE/, as nginx writes it */
    return s->options.tls_cert != NULL ? "https://" : "http://";
}

/* A line for each address that programs wait for, after those that people read. */
static int write_announcement(struct server *s, struct err *e)
{
    char token[128] = "";

    if (s->options.token_made)
        snprintf(token, sizeof token, "token of this run: %s\n", s->options.token_text);
    s->announce = xstrdup(token);
    explicit_bzero(token, sizeof token);
    for (unsigned i = 0; i < s->listen.count; i++) {
        const struct listen_socket *l = &s->listen.at[i];
        autofree char *before = s->announce;

        s->announce = NULL;
        if (asprintf(&s->announce, "%sholdcell serving on %s%s%s%s\n", before, scheme(s, l),
                     l->address, l->port == 0 ? ":" : "", s->options.base_url) < 0) {
            s->announce = NULL;
            return err_set(e, ENOMEM, "no memory");
        }
    }
    return 0;
}

/* A port that others on the network reach needs a token that somebody chose. */
static int check_exposure(const struct serve_options *o, struct err *e)
{
    int local = listen_is_local(o->listen, e);

    if (local < 0 || local == 1)
        return local < 0 ? local : 0;
    if (o->no_auth)
        return err_set(e, EINVAL, "option --no-auth: %s is not a loopback address", o->listen);
    if (o->token_made)
        return err_set(e, EINVAL,
                       "option --listen: %s is not a loopback address, and no token is given: use "
                       "--token-file, HOLDCELL_TOKEN or --token",
                       o->listen);
    return 0;
}

/* FNV-1a: the same path is the same instance, and its name fits into a file's. */
static uint64_t fingerprint(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash;
}

static int open_sockets(struct server *s, struct err *e)
{
    struct listen_access access;
    int rc = listen_access_read(s->options.listen_mode, s->options.listen_group, &access, e);

    if (rc == 0)
        rc = listen_near(s->options.listen, (unsigned)s->options.port_retries, &access, &s->listen,
                         e);
    for (unsigned i = 0; i < s->listen.count && rc == 0; i++) {
        autofree char *before = s->addresses;

        s->addresses = NULL;
        if (asprintf(&s->addresses, "%s%s%s", before != NULL ? before : "", i > 0 ? "," : "",
                     s->listen.at[i].address) < 0) {
            s->addresses = NULL;
            rc = err_set(e, ENOMEM, "no memory");
        }
    }
    return rc;
}

/* Of a server that is told none: by its first port, or by where it listens. */
static void name_state_dir(const struct server *s, char *out, size_t n)
{
    for (unsigned i = 0; i < s->listen.count; i++) {
        if (s->listen.at[i].port != 0) {
            snprintf(out, n, "/var/lib/holdcell/%u", s->listen.at[i].port);
            return;
        }
    }
    snprintf(out, n, "/var/lib/holdcell/unix-%016llx",
             (unsigned long long)fingerprint(s->addresses));
}

static int open_state(struct server *s, struct err *e)
{
    char own[64];

    if (s->options.state_dir != NULL)
        return instance_open(s->options.state_dir, &s->instance, e);
    name_state_dir(s, own, sizeof own);
    return instance_open(own, &s->instance, e);
}

/* The launcher opens it; what is wrong with the path is told now. */
static int try_audit_log(const struct serve_options *o, struct err *e)
{
    autoclose int fd = -1;

    return o->audit_log != NULL ? auditfile_open(o->audit_log, &fd, e) : 0;
}

/* When another server writes it, which may be one that was killed just now: its launcher
 * follows it in a moment. The launcher locks it then. */
static int await_audit_log(const struct serve_options *o, struct err *e)
{
    autoclose int fd = -1;
    int rc = o->audit_log != NULL ? auditfile_open(o->audit_log, &fd, e) : 0;

    if (rc < 0 || fd < 0)
        return rc;
    for (int waited = 0; (rc = auditfile_test(o->audit_log, fd, e)) == -EBUSY; waited += POLL_MS) {
        if (waited >= AUDIT_LOG_MS)
            break;
        poll(NULL, 0, POLL_MS);
    }
    return rc;
}

/* Kernels that were kept restart in their sandboxes, which have theirs mounted: without an
 * option it is that one for all. */
static void choose_runtime(struct server *s)
{
    const struct takeover *keeper = &s->instance.keeper;

    if (keeper->link == NULL || s->options.runtime != NULL)
        return;
    s->other_runtime = strcmp(s->siblings.runtime, keeper->runtime) != 0;
    snprintf(s->siblings.runtime, sizeof s->siblings.runtime, "%s", keeper->runtime);
}

/* Before the first file. What sessions need is the launcher's to say, once it could start. */
static int prepare_writes(struct err *e)
{
    int rc = harden_writes(e);

    rlimits_lift_file_size();
    return rc < 0 ? rc : rlimits_check_file_size(OWN_FILES, "what the server itself writes", e);
}

static int prepare(struct server *s, struct err *e)
{
    int rc = check_exposure(&s->options, e);

    if (rc < 0)
        return rc;
    if (geteuid() != 0)
        return err_set(
            e, EPERM,
            "must be started as root (running without root is not supported yet); try sudo");
    rc = prepare_writes(e);
    if (rc == 0)
        rc = try_audit_log(&s->options, e);
    if (rc < 0)
        return rc;
    rc = siblings_find(s->options.runtime, &s->siblings, e);
    if (rc == 0)
        rc = datalist_read(&s->options.data, &s->data_paths, &s->data_names, e);
    if (rc == 0)
        rc = open_sockets(s, e);
    if (rc == 0)
        rc = open_state(s, e);
    if (rc == 0)
        rc = await_audit_log(&s->options, e);
    if (rc == 0)
        choose_runtime(s);
    if (rc == 0)
        rc = kernelpath_complete(s->options.kernel_path, s->siblings.runtime, &s->kernel_path, e);
    if (rc == 0)
        rc = write_settings(s, e);
    if (rc == 0)
        rc = write_announcement(s, e);
    if (rc == 0 && pipe2(s->ready_pipe, O_CLOEXEC) < 0)
        rc = err_sys(e, errno, "pipe");
    return rc;
}

static void warn_of_names(const struct server *s)
{
    kernelpath_warn(s->kernel_path, "allowed-kernels", s->options.allowed_kernels);
    kernelpath_warn(s->kernel_path, "default-kernel", s->options.default_kernel);
    kernelpath_warn(s->kernel_path, "force-kernel", s->options.force_kernel);
    kernelpath_warn_of_jupyter(s->kernel_path);
    messagetypes_warn("allowed-message-types", s->options.allowed_message_types);
}

/* The values were checked. */
static void setup_log(const struct serve_options *o)
{
    enum logline_format format = LOGLINE_TEXT;
    enum logline_level level = LOGLINE_INFO;

    if (o->log_format != NULL)
        logline_format_of(o->log_format, &format);
    if (o->log_level != NULL)
        logline_level_of(o->log_level, &level);
    log_setup("supervisor", format, level);
}

static int run(struct server *s)
{
    const struct launcher_context context = {
        .siblings = &s->siblings,
        .slot = s->instance.slot,
        .kernel_path = s->kernel_path,
        .data = s->data_paths,
        .more_listen_count = s->listen.count - 1,
    };
    char **argv = launcher_args(&s->options, &context, 0);
    char **sweep_argv = launcher_args(&s->options, &context, 1);
    const struct supervise_plan plan = {
        .argv = argv,
        .sweep_argv = sweep_argv,
        .fds = { [SUPERVISE_LISTEN] = s->listen.at[0].fd,
                 [SUPERVISE_SETTINGS] = s->reload.read_fd,
                 [SUPERVISE_READY] = s->ready_pipe[1],
                 [SUPERVISE_DIR] = s->instance.gateway_dir_fd,
                 [SUPERVISE_SLOT] = s->instance.slot_fd,
                 [SUPERVISE_STATE] = s->instance.state_fd,
                 [SUPERVISE_STATE_DIR] = s->instance.state_dir_fd,
                 [SUPERVISE_CONTROL] = -1,
                 [SUPERVISE_MORE] = s->listen.at[1].fd,
                 s->listen.at[2].fd,
                 s->listen.at[3].fd },
        .fd_count = SUPERVISE_MORE + s->listen.count - 1, /* what is behind it is not open */
        .ready_fd = s->ready_pipe[0],
        .announce = s->announce,
        .reload = &s->reload,
        .pass_hangup = s->options.audit_log != NULL,
        .instance = &s->instance,
        .keep = strcmp(s->options.on_exit, "keep") == 0,
    };
    /* The token would be in it. One byte, not zero: see sandbox/self/rlimits.c; below 0 init
     * could not set that limit for the kernels. */
    const struct rlimit no_core = { 1, 1 };
    setrlimit(RLIMIT_CORE, &no_core);
    serve_options_free(&s->options); /* the token lives on in the page of the settings alone */
    int status = supervise(&plan);

    launcher_args_free(argv);
    launcher_args_free(sweep_argv);
    return status;
}

static void server_free(struct server *s)
{
    serve_options_free(&s->options);
    instance_close(&s->instance);
    listen_close(&s->listen);
    free(s->addresses);
    reload_close(&s->reload);
    closep(&s->ready_pipe[0]);
    closep(&s->ready_pipe[1]);
    free(s->kernel_path);
    free(s->data_paths);
    free(s->data_names);
    free(s->announce);
}

int command_serve(int argc, char **argv)
{
    struct server s = {
        .instance = INSTANCE_NONE,
        .reload = RELOAD_NONE,
        .ready_pipe = { -1, -1 },
    };
    struct err e = { 0 };
    int status = 0;
    int rc = serve_options_read(argc, argv, &s.options, &e);

    if (rc < 0) {
        fprintf(stderr, "holdcell serve: %s\n", e.msg);
        status = EXIT_USAGE;
    } else if (s.options.help) {
        serve_options_help();
    } else if (s.options.help_kernel_gateway) {
        kgsettings_print(stdout);
    } else if (prepare(&s, &e) < 0) {
        fprintf(stderr, "holdcell serve: %s\n", e.msg);
        status = e.code == EINVAL ? EXIT_USAGE : 1;
    } else {
        setup_log(&s.options);
        serve_options_warn();
        warn_of_names(&s);
        if (s.other_runtime)
            log_warn("runtime_of_kept_kernels", "path=\"%s\"", s.siblings.runtime);
        status = run(&s);
    }
    server_free(&s);
    return status;
}
