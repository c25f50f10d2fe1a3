#include "kgtable.h"

#define APP         "KernelGatewayApp."
#define SOCKET      "JupyterWebsocketPersonality."
#define NOTEBOOK    "NotebookHTTPPersonality."
#define MANAGER     "MappingKernelManager."
#define CONNECTION  "ZMQChannelsWebsocketConnection."
#define SPECS       "KernelSpecManager."
#define NO_PYTHON   "no Python class can be loaded here"
#define NO_COOKIES  "there are no cookies here"
#define NO_NOTEBOOK "the API of a notebook's cells (notebook_http) is not offered"
#define NO_CONFIG   "no configuration in Python is read or written"

#define NAME(env, trait, alias, option, kind)       \
    {                                               \
        env, trait, alias, option, kind, NULL, NULL \
    }
#define ONLY(env, trait, alias, values, why)          \
    {                                                 \
        env, trait, alias, NULL, KG_ONLY, values, why \
    }
#define REFUSED(env, trait, alias, why)                \
    {                                                  \
        env, trait, alias, NULL, KG_REFUSED, NULL, why \
    }

const struct kg_setting kg_settings[] = {
    NAME("KG_IP", APP "ip", "ip", "ip", KG_ADDRESS),
    NAME("KG_PORT", APP "port", "port", "port", KG_TEXT),
    NAME("KG_PORT_RETRIES", APP "port_retries", "port_retries", "port-retries", KG_TEXT),
    NAME("KG_BASE_URL", APP "base_url", NULL, "base-url", KG_BASE),
    NAME("KG_AUTH_TOKEN", APP "auth_token", NULL, "token", KG_TOKEN),
    NAME("KG_CERTFILE", APP "certfile", "certfile", "tls-cert", KG_TEXT),
    NAME("KG_KEYFILE", APP "keyfile", "keyfile", "tls-key", KG_TEXT),
    NAME("KG_CLIENT_CA", APP "client_ca", "client-ca", "tls-client-ca", KG_TEXT),
    ONLY("KG_SSL_VERSION", APP "ssl_version", "ssl_version", "2,5,17",
         "TLS is 1.2 or later, whichever both sides know"),
    ONLY("KG_TRUST_XHEADERS", APP "trust_xheaders", NULL, "False,false,0",
         "--trusted-proxy names the proxies whose headers count"),

    NAME("KG_ALLOW_CREDENTIALS", APP "allow_credentials", NULL, "allow-credentials", KG_TEXT),
    NAME("KG_ALLOW_HEADERS", APP "allow_headers", NULL, "allow-headers", KG_TEXT),
    NAME("KG_ALLOW_METHODS", APP "allow_methods", NULL, "allow-methods", KG_TEXT),
    NAME("KG_ALLOW_ORIGIN", APP "allow_origin", NULL, "allow-origin", KG_TEXT),
    NAME("KG_EXPOSE_HEADERS", APP "expose_headers", NULL, "expose-headers", KG_TEXT),
    NAME("KG_MAX_AGE", APP "max_age", NULL, "cors-max-age", KG_TEXT),

    NAME("KG_MAX_KERNELS", APP "max_kernels", NULL, "max-kernels", KG_COUNT),
    NAME("KG_PRESPAWN_COUNT", APP "prespawn_count", NULL, "prespawn", KG_TEXT),
    NAME("KG_SEED_URI", APP "seed_uri", "seed_uri", "seed-notebook", KG_NOTEBOOK),
    NAME("KG_DEFAULT_KERNEL_NAME", APP "default_kernel_name", NULL, "default-kernel", KG_TEXT),
    NAME("KG_FORCE_KERNEL_NAME", APP "force_kernel_name", NULL, "force-kernel", KG_TEXT),
    NAME("KG_ENV_PROCESS_WHITELIST", APP "env_process_whitelist", NULL, "env-inherit", KG_LIST),
    NAME("KG_ENV_WHITELIST", SOCKET "env_whitelist", NULL, "env-allow", KG_LIST),
    NAME("KG_LIST_KERNELS", SOCKET "list_kernels", NULL, "no-list-kernels", KG_LISTING),
    NAME("KG_WS_PING_INTERVAL_SECS", APP "ws_ping_interval", NULL, "ws-ping-interval", KG_TEXT),

    ONLY("KG_API", APP "api", "api", "kernel_gateway.jupyter_websocket,jupyter-websocket",
         NO_NOTEBOOK),
    REFUSED("KG_CELL_PARSER", NOTEBOOK "cell_parser", NULL, NO_NOTEBOOK),
    REFUSED(NULL, NOTEBOOK "comment_prefix", NULL, NO_NOTEBOOK),
    ONLY("KG_ALLOW_NOTEBOOK_DOWNLOAD", NOTEBOOK "allow_notebook_download", NULL, "False,false,0",
         NO_NOTEBOOK),
    REFUSED("KG_STATIC_PATH", NOTEBOOK "static_path", NULL, NO_NOTEBOOK),

    NAME(NULL, MANAGER "cull_idle_timeout", NULL, "cull-idle-timeout", KG_TEXT),
    NAME(NULL, MANAGER "cull_interval", NULL, "cull-interval", KG_TEXT),
    NAME(NULL, MANAGER "cull_connected", NULL, "cull-connected", KG_TRUTH),
    NAME(NULL, MANAGER "cull_busy", NULL, "cull-busy", KG_TRUTH),
    NAME(NULL, MANAGER "default_kernel_name", NULL, "default-kernel", KG_TEXT),
    NAME(NULL, MANAGER "kernel_info_timeout", NULL, "kernel-info-timeout", KG_TEXT),
    ONLY(NULL, MANAGER "buffer_offline_messages", NULL, "True,true,1",
         "messages are always kept for who comes back"),
    NAME(NULL, MANAGER "allow_tracebacks", NULL, "no-tracebacks", KG_LISTING),
    REFUSED(NULL, MANAGER "traceback_replacement_message", NULL, "the text is fixed"),
    NAME(NULL, MANAGER "allowed_message_types", NULL, "allowed-message-types", KG_LIST),
    REFUSED(NULL, MANAGER "untracked_message_types", NULL, "which messages count is fixed"),
    ONLY(NULL, MANAGER "use_pending_kernels", NULL, "False,false,0",
         "a kernel that is told of has been started"),
    REFUSED(NULL, MANAGER "root_dir", NULL, "kernels see no directory of the host"),
    REFUSED(NULL, MANAGER "transport_encryption", NULL,
            "kernels are reached by sockets of their own"),
    REFUSED(NULL, MANAGER "shared_context", NULL, NO_PYTHON),
    REFUSED(NULL, MANAGER "kernel_manager_class", NULL, NO_PYTHON),
    ONLY(NULL, CONNECTION "limit_rate", NULL, "False,false,0",
         "there is a limit when --iopub-msg-rate or --iopub-data-rate names one"),
    NAME(NULL, CONNECTION "iopub_msg_rate_limit", NULL, "iopub-msg-rate", KG_TEXT),
    NAME(NULL, CONNECTION "iopub_data_rate_limit", NULL, "iopub-data-rate", KG_TEXT),
    NAME(NULL, CONNECTION "rate_limit_window", NULL, "iopub-rate-window", KG_TEXT),
    REFUSED(NULL, CONNECTION "kernel_ws_protocol", NULL, "the client chooses the subprotocol"),
    NAME(NULL, SPECS "allowed_kernelspecs", NULL, "allowed-kernels", KG_LIST),
    NAME(NULL, SPECS "whitelist", NULL, "allowed-kernels", KG_LIST),
    ONLY(NULL, SPECS "ensure_native_kernel", NULL, "True,true,1",
         "--allowed-kernels chooses among the kernelspecs that are there"),
    REFUSED(NULL, SPECS "kernel_spec_class", NULL, NO_PYTHON),

    REFUSED(NULL, APP "kernel_manager_class", NULL, NO_PYTHON),
    REFUSED(NULL, APP "kernel_spec_manager_class", NULL, NO_PYTHON),
    REFUSED(NULL, APP "kernel_websocket_connection_class", NULL, NO_PYTHON),
    REFUSED(NULL, APP "authorizer_class", NULL, NO_PYTHON),
    REFUSED(NULL, APP "identity_provider_class", NULL, NO_PYTHON),
    REFUSED(NULL, APP "cookie_secret", NULL, NO_COOKIES),
    REFUSED(NULL, APP "cookie_secret_file", NULL, NO_COOKIES),
    NAME(NULL, APP "log_level", NULL, "log-level", KG_LEVEL),
    REFUSED(NULL, APP "log_format", NULL, "see --log-format"),
    REFUSED(NULL, APP "log_datefmt", NULL, "see --log-format"),
    REFUSED(NULL, APP "logging_config", NULL, "see --log-format and --log-level"),
    REFUSED(NULL, APP "config_file", "config", NO_CONFIG),
    REFUSED(NULL, APP "config_file_name", NULL, NO_CONFIG),
    REFUSED(NULL, APP "generate_config", NULL, NO_CONFIG),
    REFUSED(NULL, APP "show_config", NULL, NO_CONFIG),
    REFUSED(NULL, APP "show_config_json", NULL, NO_CONFIG),
    ONLY(NULL, APP "answer_yes", NULL, "True,False,true,false,1,0", "nothing is asked"),
    { NULL, NULL, "debug", "log-level", KG_SWITCH_LEVEL, NULL, NULL },
    { NULL, NULL, "y", NULL, KG_SWITCH_IGNORED, NULL, "nothing is asked" },
    { NULL, NULL, "generate-config", NULL, KG_SWITCH_REFUSED, NULL, NO_CONFIG },
    { NULL, NULL, "show-config", NULL, KG_SWITCH_REFUSED, NULL, NO_CONFIG },
    { NULL, NULL, "show-config-json", NULL, KG_SWITCH_REFUSED, NULL, NO_CONFIG },
};
const size_t kg_setting_count = sizeof kg_settings / sizeof kg_settings[0];
