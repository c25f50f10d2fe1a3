/* metrics_families - the table: each metric with its name, its help, its labels and buckets. */
#include "metrics_own.h"

#define LABEL(variable, name, ...)                                                      \
    static const char *const variable##_values[] = { __VA_ARGS__ };                     \
    static const struct label variable = {                                              \
        name, variable##_values, sizeof variable##_values / sizeof variable##_values[0] \
    }

LABEL(kernel_states, "state", "starting", "idle", "busy", "unresponsive", "restarting", "dead");
LABEL(outcomes, "outcome", "ok", "failed");
LABEL(deaths, "reason", "oom", "signal", "exit", "sandbox", "timeout", "protocol");
LABEL(restarts, "cause", "requested", "automatic");
LABEL(run_states, "state", "ok", "error", "timed_out", "interrupted", "killed", "kernel_died",
      "aborted", "lost");
LABEL(channels, "channel", "shell", "control", "stdin", "iopub");
LABEL(kernel_directions, "direction", "from_kernel", "to_kernel");
LABEL(client_directions, "direction", "from_client", "to_client");
LABEL(drops, "reason", "rate_limit", "malformed", "signature", "oversized", "state_claim",
      "second_reply", "unasked", "input_not_allowed", "client_malformed", "given_up", "observer",
      "output_limit");
LABEL(shortages, "of", "memory", "tasks", "disk", "files", "output");
LABEL(methods, "method", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other");
LABEL(statuses, "status", "1xx", "2xx", "3xx", "4xx", "5xx");
LABEL(logins, "reason", "no_token", "wrong_token");
LABEL(verbs, "verb", "create", "start_kernel", "seal", "signal", "stop", "status", "list", "note",
      "deadline", "room", "audit");
static const struct label routes = { "route", NULL, ROUTES_MAX };
/* Its one value is told by metrics_version(). */
static const char *version_values[] = { "" };
static const struct label versions = { "version", version_values, 1 };

#define MS      UINT64_C(1000)
#define SECONDS UINT64_C(1000000)
#define BUCKETS(variable, ...)                               \
    static const uint64_t variable##_us[] = { __VA_ARGS__ }; \
    static const struct buckets variable = { variable##_us,  \
                                             sizeof variable##_us / sizeof variable##_us[0] }

BUCKETS(start_buckets, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 250 * MS, 500 * MS, 1 * SECONDS,
        2500 * MS, 5 * SECONDS, 10 * SECONDS, 30 * SECONDS);
BUCKETS(run_buckets, 5 * MS, 10 * MS, 50 * MS, 100 * MS, 500 * MS, 1 * SECONDS, 5 * SECONDS,
        10 * SECONDS, 30 * SECONDS, 60 * SECONDS, 300 * SECONDS, 600 * SECONDS, 3600 * SECONDS);
BUCKETS(request_buckets, 500, 1 * MS, 5 * MS, 10 * MS, 50 * MS, 100 * MS, 500 * MS, 1 * SECONDS,
        5 * SECONDS, 10 * SECONDS, 30 * SECONDS);
BUCKETS(launcher_buckets, 100, 500, 1 * MS, 5 * MS, 10 * MS, 50 * MS, 100 * MS, 500 * MS,
        1 * SECONDS, 5 * SECONDS);

#define NAME(text) "holdcell_" text

#define FAMILY(id, text, words, what, ...) \
    [METRIC_##id] = { .name = text, .help = words, .kind = what, ##__VA_ARGS__ }

const struct family metrics_families[METRIC_COUNT] = {
    FAMILY(BUILD_INFO, NAME("build_info"), "Constant 1; the label names the version.", GAUGE,
           .labels = { &versions }),
    FAMILY(GATEWAY_RESTARTS, NAME("gateway_restarts"),
           "Gateways that this launcher started after its first one.", COUNTER),
    FAMILY(READY, NAME("ready"), "1 while /readyz answers 200.", GAUGE),
    FAMILY(WALLS_MISSING, NAME("walls_missing"),
           "Walls that this host lacks and the operator accepts.", GAUGE),

    FAMILY(SESSIONS, NAME("sessions"), "Sessions: sandboxes that live or are being made.", GAUGE),
    FAMILY(SESSIONS_MAX, NAME("sessions_limit"), "Most sessions at a time.", GAUGE),
    FAMILY(ADMISSION, NAME("admission_open"), "1 while the host has room for one more session.",
           GAUGE),
    FAMILY(ADMISSIONS_REFUSED, NAME("admissions_refused"),
           "Sessions that were refused for lack of room.", COUNTER),
    FAMILY(HOST_MEMORY, NAME("host_memory_available_bytes"),
           "Memory that the host, or the container, has left.", GAUGE),
    FAMILY(MEMORY_RESERVE, NAME("memory_reserve_bytes"), "Of that: what new sessions leave free.",
           GAUGE),
    FAMILY(MEMORY_PROMISED, NAME("memory_promised_bytes"),
           "Of that: what sessions which start are going to take.", GAUGE),
    FAMILY(KERNELS, NAME("kernels"), "Kernels by the state that REST tells.", GAUGE,
           .labels = { &kernel_states }),
    FAMILY(KERNEL_STARTS, NAME("kernel_starts"), "Starts of a kernel's process by outcome.",
           COUNTER, .labels = { &outcomes }),
    FAMILY(KERNEL_START_TIME, NAME("kernel_start_duration_seconds"),
           "From the order to the running process, of starts that "
           "succeeded.",
           HISTOGRAM, .buckets = &start_buckets),
    FAMILY(KERNEL_DEATHS, NAME("kernel_deaths"), "Deaths of kernels that nobody asked for.",
           COUNTER, .labels = { &deaths }),
    FAMILY(KERNEL_RESTARTS, NAME("kernel_restarts"), "Restarts by who wanted them.", COUNTER,
           .labels = { &restarts }),
    FAMILY(KERNELS_CULLED, NAME("kernels_culled"), "Kernels that were ended for idleness.",
           COUNTER),
    FAMILY(SESSIONS_EXPIRED, NAME("sessions_expired"),
           "Sessions that were ended at the end of their lifetime.", COUNTER),
    FAMILY(RUNS_OPEN, NAME("runs_open"), "Executions that have not ended.", GAUGE),
    FAMILY(RUNS, NAME("runs"), "Executions by end state (docs/STATES.md).", COUNTER,
           .labels = { &run_states }),
    FAMILY(RUN_TIME, NAME("run_duration_seconds"),
           "From sending an execute_request to the end of its run.", HISTOGRAM,
           .buckets = &run_buckets),

    FAMILY(SHORTAGES, NAME("run_shortages"), "Executions that used up a limit, by limit.", COUNTER,
           .labels = { &shortages }),

    FAMILY(KERNEL_MESSAGES, NAME("kernel_messages"),
           "Messages between gateway and kernels; the gateway's own "
           "questions are not counted.",
           COUNTER, .labels = { &channels, &kernel_directions }),
    FAMILY(KERNEL_BYTES, NAME("kernel_message_bytes"), "Bytes of these messages.", COUNTER,
           .labels = { &channels, &kernel_directions }),
    FAMILY(CLIENT_MESSAGES, NAME("client_messages"),
           "Messages between gateway and WebSocket clients.", COUNTER,
           .labels = { &channels, &client_directions }),
    FAMILY(CLIENT_BYTES, NAME("client_message_bytes"), "Bytes of these messages as framed.",
           COUNTER, .labels = { &channels, &client_directions }),
    FAMILY(DROPPED, NAME("messages_dropped"), "Messages that were not passed on, by reason.",
           COUNTER, .labels = { &drops }),
    FAMILY(CLIENTS_LAGGED, NAME("clients_lagged"),
           "WebSockets closed because they read too slowly.", COUNTER),
    FAMILY(LOG_MEMORY, NAME("event_log_memory_bytes"), "Event logs of kernels, in memory.", GAUGE),
    FAMILY(LOG_SPOOL, NAME("event_log_spool_bytes"), "Event logs of kernels, on disk.", GAUGE),
    FAMILY(SPOOL_FAILURES, NAME("event_log_spool_failures"), "Writes to a spool that failed.",
           COUNTER),

    FAMILY(HTTP_CONNECTIONS, NAME("http_connections"), "Open connections, WebSockets among them.",
           GAUGE),
    FAMILY(WEBSOCKETS, NAME("websocket_connections"), "Open WebSockets.", GAUGE),
    FAMILY(WEBSOCKETS_OPENED, NAME("websocket_connections_opened"), "WebSockets that were opened.",
           COUNTER),
    FAMILY(HTTP_REQUESTS, NAME("http_requests"),
           "Answered requests by pattern of the route, method and class of "
           "the status.",
           COUNTER, .sparse = 1, .labels = { &routes, &methods, &statuses }),
    FAMILY(HTTP_TIME, NAME("http_request_duration_seconds"), "From a request's head to its answer.",
           HISTOGRAM, .sparse = 1, .labels = { &routes }, .buckets = &request_buckets),
    FAMILY(LOGIN_FAILURES, NAME("login_failures"), "Requests that were answered 401.", COUNTER,
           .labels = { &logins }),

    FAMILY(LAUNCHER_TIME, NAME("launcher_request_duration_seconds"),
           "From a question to the launcher to its answer.", HISTOGRAM, .labels = { &verbs },
           .buckets = &launcher_buckets),
    FAMILY(LAUNCHER_FAILURES, NAME("launcher_request_failures"),
           "Questions to the launcher that it answered with an error.", COUNTER,
           .labels = { &verbs }),
    FAMILY(LOG_LOST, NAME("log_lines_lost"), "Lines of the log that stderr did not take.", COUNTER),

    FAMILY(AUDIT_RECORDS, NAME("audit_records"), "Lines of the audit file.", COUNTER),
    FAMILY(AUDIT_TIME, NAME("audit_write_duration_seconds"), "Writes to the audit file.", HISTOGRAM,
           .buckets = &launcher_buckets),
    FAMILY(AUDIT_FAILURES, NAME("audit_write_failures"),
           "Writes to the audit file that failed; what was to be written "
           "waits.",
           COUNTER),
    FAMILY(AUDIT_LOST, NAME("audit_records_lost"),
           "Lines of the audit file for which no room was left to wait.", COUNTER),
    FAMILY(AUDIT_REFUSED, NAME("audit_refusals"),
           "Requests that were refused because they could not be audited.", COUNTER),

    FAMILY(PROCESS_CPU, "process_cpu_seconds", "Processor time of the gateway.", COUNTER,
           .micros = 1),
    FAMILY(PROCESS_RSS, "process_resident_memory_bytes", "Resident memory of the gateway.", GAUGE),
    FAMILY(PROCESS_FDS, "process_open_fds", "Open descriptors of the gateway.", GAUGE),
    FAMILY(PROCESS_FDS_MAX, "process_max_fds", "Most descriptors the gateway may open.", GAUGE),
    FAMILY(PROCESS_START, "process_start_time_seconds", "When the gateway started, Unix time.",
           GAUGE, .micros = 1),
};

unsigned metrics_method(struct view method)
{
    for (unsigned i = 0; i < METRIC_OTHER; i++) {
        if (view_equals(method, methods.values[i]))
            return i;
    }
    return METRIC_OTHER;
}

void metrics_version(const char *version)
{
    version_values[0] = version;
    metrics_set(METRIC_BUILD_INFO, 0, 1);
}
