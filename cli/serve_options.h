/*
 * serve_options - the options of `holdcell serve`: the table, and the rules
 * between them. Everything is copied out of argv and environment, so that the
 * token can be wiped there.
 */
#ifndef HC_SERVE_OPTIONS_H
#define HC_SERVE_OPTIONS_H

#include <stdint.h>

#include "cleanup.h"
#include "kgsettings.h"
#include "limit.h"
#include "options.h"

struct err;

struct serve_options {
    int help, help_kernel_gateway;
    const char *listen; /* also put together of ip and port */
    const char *listen_mode, *listen_group;
    const char *trusted_proxy, *allow_hosts;
    const char *ip;
    uint64_t port, port_retries;
    const char *identity_header, *identity_unknown;
    const char *token, *token_file, *principals, *profiles;
    int no_auth;
    const char *tls_cert, *tls_key, *tls_client_ca;
    const char *base_url;
    const char *state_dir;
    const char *runtime, *cgroup_parent;
    const char *isolation, *accept_missing; /* checked; NULL: hardened, none */
    const char *kernel_path, *allowed_kernels, *default_kernel, *force_kernel;
    int no_list_kernels;
    uint64_t max_kernels;
    const char *env_allow, *env_inherit;
    uint64_t orphan_timeout_s;                            /* as the two below */
    uint64_t kernel_info_timeout_ms, ws_ping_interval_ms; /* SERVE_UNSET: the gateway's default */
    uint64_t prespawn, seed_timeout_ms;
    uint64_t cell_timeout_ms, stdin_timeout_ms, max_lifetime_ms;
    uint64_t create_timeout_ms, drain_timeout_ms;
    const char *seed_notebook;
    uint64_t cull_idle_timeout_ms, cull_interval_ms;
    int cull_connected, cull_busy;
    const char *allow_origin, *allow_credentials, *allow_headers, *allow_methods, *expose_headers;
    const char *cors_max_age;
    uint64_t most[LIMITS];   /* that a request may ask for; SERVE_UNSET: the same */
    uint64_t limits[LIMITS]; /* of a session (limit.h); SERVE_UNSET: the profile's */
    uint64_t memory_reserve_mb, disk_reserve_mb; /* SERVE_UNSET: by the host */
    const char *home;                            /* NULL: auto */
    struct option_list data;                     /* NAME=PATH */
    const char *workspaces;                      /* NULL: none */
    uint64_t workspace_mb;                       /* SERVE_UNSET */
    int metrics_open, audit_required;
    const char *audit_log;
    const char *log_format, *log_level, *access_log; /* NULL: text, info, auto */
    const char *on_exit;
    uint64_t iopub_msg_rate, iopub_data_rate, iopub_rate_window_ms; /* 0, 0, SERVE_UNSET */
    int no_tracebacks;
    const char *allowed_message_types;

    int token_made;    /* 1: a random token was made, to be told to the user */
    char **storage;    /* owned: copies of argv that the strings above borrow */
    char *token_text;  /* owned: token from environment or chance, or from what is no plain file */
    int token_live;    /* 1: token_file is a plain file, read when the settings are written */
    char *base_text;   /* owned: base URL with its final slash */
    char *listen_text; /* owned: of ip and port */
    struct kgsettings kg; /* owned: values of names of Jupyter Kernel Gateway */
};

#define SERVE_UNSET UINT64_MAX

/* Reads argv (argv[0] is the subcommand) and the environment, wipes the token in both,
 * and checks what can be checked without touching the system. -EINVAL names the
 * option, or what its value came from. */
int serve_options_read(int argc, char **argv, struct serve_options *ret, struct err *e) MUST_CHECK;
void serve_options_free(struct serve_options *o); /* wipes the token */
void serve_options_help(void);
void serve_options_warn(void); /* of variables that are no options; in the log */

#endif
