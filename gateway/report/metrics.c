#include "metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "err.h"

enum {
    LABELS_MAX = 3,
    ROUTES_MAX = 64, /* patterns, with that of no route */
};

enum kind { COUNTER, GAUGE, HISTOGRAM };

struct label {
    const char *name;
    const char *const *values; /* NULL: the routes */
    unsigned count;
};

/* Upper bounds of buckets in microseconds. */
struct buckets {
    const uint64_t *us;
    unsigned count;
};

struct family {
    const char *name, *help;
    enum kind kind;
    unsigned micros : 1; /* the value counts microseconds and is told in seconds */
    unsigned sparse : 1; /* cells that are 0 are not told: there are too many */
    const struct label *labels[LABELS_MAX];
    const struct buckets *buckets;
};

#define LABEL(variable, name, ...)                                                      \
    static const char *const variable##_values[] = { __VA_ARGS__ };                     \
    static const struct label variable = {                                              \
        name, variable##_values, sizeof variable##_values / sizeof variable##_values[0] \
    }

LABEL(kernel_states, "state", "starting", "idle", "busy", "unresponsive", "restarting", "dead");
LABEL(outcomes, "outcome", "ok", "failed");
LABEL(deaths, "reason", "oom", "signal", "exit", "sandbox");
LABEL(restarts, "cause", "requested", "automatic");
LABEL(run_states, "state", "ok", "error", "timed_out", "interrupted", "killed", "kernel_died",
      "aborted", "lost");
LABEL(channels, "channel", "shell", "control", "stdin", "iopub");
LABEL(kernel_directions, "direction", "from_kernel", "to_kernel");
LABEL(client_directions, "direction", "from_client", "to_client");
LABEL(drops, "reason", "rate_limit", "malformed", "signature", "oversized", "state_claim",
      "second_reply", "unasked", "input_not_allowed", "client_malformed", "given_up", "observer");
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

static const struct family families[METRIC_COUNT] = {
    [METRIC_BUILD_INFO] = { NAME("build_info"), "Constant 1; the label names the version.", GAUGE,
                            .labels = { &versions } },
    [METRIC_GATEWAY_RESTARTS] = { NAME("gateway_restarts"),
                                  "Gateways that this launcher started after its first one.",
                                  COUNTER },
    [METRIC_READY] = { NAME("ready"), "1 while /readyz answers 200.", GAUGE },

    [METRIC_SESSIONS] = { NAME("sessions"), "Sessions: sandboxes that live or are being made.",
                          GAUGE },
    [METRIC_SESSIONS_MAX] = { NAME("sessions_limit"), "Most sessions at a time.", GAUGE },
    [METRIC_ADMISSION] = { NAME("admission_open"),
                           "1 while the host has room for one more session.", GAUGE },
    [METRIC_ADMISSIONS_REFUSED] = { NAME("admissions_refused"),
                                    "Sessions that were refused for lack of room.", COUNTER },
    [METRIC_HOST_MEMORY] = { NAME("host_memory_available_bytes"),
                             "Memory that the host, or the container, has left.", GAUGE },
    [METRIC_MEMORY_RESERVE] = { NAME("memory_reserve_bytes"),
                                "Of that: what new sessions leave free.", GAUGE },
    [METRIC_MEMORY_PROMISED] = { NAME("memory_promised_bytes"),
                                 "Of that: what sessions which start are going to take.", GAUGE },
    [METRIC_KERNELS] = { NAME("kernels"), "Kernels by the state that REST tells.", GAUGE,
                         .labels = { &kernel_states } },
    [METRIC_KERNEL_STARTS] = { NAME("kernel_starts"), "Starts of a kernel's process by outcome.",
                               COUNTER, .labels = { &outcomes } },
    [METRIC_KERNEL_START_TIME] = { NAME("kernel_start_duration_seconds"),
                                   "From the order to the running process, of starts that "
                                   "succeeded.",
                                   HISTOGRAM, .buckets = &start_buckets },
    [METRIC_KERNEL_DEATHS] = { NAME("kernel_deaths"), "Deaths of kernels that nobody asked for.",
                               COUNTER, .labels = { &deaths } },
    [METRIC_KERNEL_RESTARTS] = { NAME("kernel_restarts"), "Restarts by who wanted them.", COUNTER,
                                 .labels = { &restarts } },
    [METRIC_KERNELS_CULLED] = { NAME("kernels_culled"), "Kernels that were ended for idleness.",
                                COUNTER },
    [METRIC_RUNS_OPEN] = { NAME("runs_open"), "Executions that have not ended.", GAUGE },
    [METRIC_RUNS] = { NAME("runs"), "Executions by end state (docs/STATES.md).", COUNTER,
                      .labels = { &run_states } },
    [METRIC_RUN_TIME] = { NAME("run_duration_seconds"),
                          "From sending an execute_request to the end of its run.", HISTOGRAM,
                          .buckets = &run_buckets },

    [METRIC_KERNEL_MESSAGES] = { NAME("kernel_messages"),
                                 "Messages between gateway and kernels; the gateway's own "
                                 "questions are not counted.",
                                 COUNTER, .labels = { &channels, &kernel_directions } },
    [METRIC_KERNEL_BYTES] = { NAME("kernel_message_bytes"), "Bytes of these messages.", COUNTER,
                              .labels = { &channels, &kernel_directions } },
    [METRIC_CLIENT_MESSAGES] = { NAME("client_messages"),
                                 "Messages between gateway and WebSocket clients.", COUNTER,
                                 .labels = { &channels, &client_directions } },
    [METRIC_CLIENT_BYTES] = { NAME("client_message_bytes"), "Bytes of these messages as framed.",
                              COUNTER, .labels = { &channels, &client_directions } },
    [METRIC_DROPPED] = { NAME("messages_dropped"), "Messages that were not passed on, by reason.",
                         COUNTER, .labels = { &drops } },
    [METRIC_CLIENTS_LAGGED] = { NAME("clients_lagged"),
                                "WebSockets closed because they read too slowly.", COUNTER },
    [METRIC_LOG_MEMORY] = { NAME("event_log_memory_bytes"), "Event logs of kernels, in memory.",
                            GAUGE },
    [METRIC_LOG_SPOOL] = { NAME("event_log_spool_bytes"), "Event logs of kernels, on disk.",
                           GAUGE },
    [METRIC_SPOOL_FAILURES] = { NAME("event_log_spool_failures"), "Writes to a spool that failed.",
                                COUNTER },

    [METRIC_HTTP_CONNECTIONS] = { NAME("http_connections"),
                                  "Open connections, WebSockets among them.", GAUGE },
    [METRIC_WEBSOCKETS] = { NAME("websocket_connections"), "Open WebSockets.", GAUGE },
    [METRIC_WEBSOCKETS_OPENED] = { NAME("websocket_connections_opened"),
                                   "WebSockets that were opened.", COUNTER },
    [METRIC_HTTP_REQUESTS] = { NAME("http_requests"),
                               "Answered requests by pattern of the route, method and class of "
                               "the status.",
                               COUNTER, .sparse = 1, .labels = { &routes, &methods, &statuses } },
    [METRIC_HTTP_TIME] = { NAME("http_request_duration_seconds"),
                           "From a request's head to its answer.", HISTOGRAM, .sparse = 1,
                           .labels = { &routes }, .buckets = &request_buckets },
    [METRIC_LOGIN_FAILURES] = { NAME("login_failures"), "Requests that were answered 401.", COUNTER,
                                .labels = { &logins } },

    [METRIC_LAUNCHER_TIME] = { NAME("launcher_request_duration_seconds"),
                               "From a question to the launcher to its answer.", HISTOGRAM,
                               .labels = { &verbs }, .buckets = &launcher_buckets },
    [METRIC_LAUNCHER_FAILURES] = { NAME("launcher_request_failures"),
                                   "Questions to the launcher that it answered with an error.",
                                   COUNTER, .labels = { &verbs } },
    [METRIC_LOG_LOST] = { NAME("log_lines_lost"), "Lines of the log that stderr did not take.",
                          COUNTER },

    [METRIC_AUDIT_RECORDS] = { NAME("audit_records"), "Lines of the audit file.", COUNTER },
    [METRIC_AUDIT_TIME] = { NAME("audit_write_duration_seconds"), "Writes to the audit file.",
                            HISTOGRAM, .buckets = &launcher_buckets },
    [METRIC_AUDIT_FAILURES] = { NAME("audit_write_failures"),
                                "Writes to the audit file that failed; what was to be written "
                                "waits.",
                                COUNTER },
    [METRIC_AUDIT_LOST] = { NAME("audit_records_lost"),
                            "Lines of the audit file for which no room was left to wait.",
                            COUNTER },
    [METRIC_AUDIT_REFUSED] = { NAME("audit_refusals"),
                               "Requests that were refused because they could not be audited.",
                               COUNTER },

    [METRIC_PROCESS_CPU] = { "process_cpu_seconds", "Processor time of the gateway.", COUNTER,
                             .micros = 1 },
    [METRIC_PROCESS_RSS] = { "process_resident_memory_bytes", "Resident memory of the gateway.",
                             GAUGE },
    [METRIC_PROCESS_FDS] = { "process_open_fds", "Open descriptors of the gateway.", GAUGE },
    [METRIC_PROCESS_FDS_MAX] = { "process_max_fds", "Most descriptors the gateway may open.",
                                 GAUGE },
    [METRIC_PROCESS_START] = { "process_start_time_seconds", "When the gateway started, Unix time.",
                               GAUGE, .micros = 1 },
};

static struct {
    uint64_t *cells[METRIC_COUNT]; /* owned, for the life of the process */
    const char *routes[ROUTES_MAX];
    unsigned route_count;
} table = { .routes = { "unmatched" }, .route_count = 1 };

/* ---- cells ---- */

static unsigned label_count(const struct family *f, unsigned i)
{
    return f->labels[i] != NULL ? f->labels[i]->count : 1;
}

static size_t cell_count(const struct family *f)
{
    return (size_t)label_count(f, 0) * label_count(f, 1) * label_count(f, 2);
}

/* A histogram's cell: its buckets, those above the last bound, the sum. */
static size_t cell_size(const struct family *f)
{
    return f->kind == HISTOGRAM ? f->buckets->count + 2 : 1;
}

static uint64_t *cell(enum metric m, unsigned a, unsigned b, unsigned c)
{
    const struct family *f = &families[m];

    check(a < label_count(f, 0) && b < label_count(f, 1) && c < label_count(f, 2));
    if (table.cells[m] == NULL)
        table.cells[m] = xcalloc(cell_count(f) * cell_size(f), sizeof(uint64_t));
    size_t at = ((size_t)a * label_count(f, 1) + b) * label_count(f, 2) + c;
    return &table.cells[m][at * cell_size(f)];
}

void metrics_add(enum metric m, unsigned a, unsigned b, unsigned c, uint64_t n)
{
    check(families[m].kind != HISTOGRAM);
    *cell(m, a, b, c) += n;
}

void metrics_set(enum metric m, unsigned a, uint64_t n)
{
    check(families[m].kind != HISTOGRAM);
    *cell(m, a, 0, 0) = n;
}

uint64_t metrics_value(enum metric m, unsigned a, unsigned b, unsigned c)
{
    check(families[m].kind != HISTOGRAM);
    return *cell(m, a, b, c);
}

void metrics_observe(enum metric m, unsigned a, uint64_t us)
{
    const struct buckets *buckets = families[m].buckets;
    uint64_t *values = cell(m, a, 0, 0);
    unsigned i = 0;

    check(families[m].kind == HISTOGRAM);
    while (i < buckets->count && us > buckets->us[i])
        i++;
    values[i]++;
    values[buckets->count + 1] += us;
}

unsigned metrics_route(const char *pattern)
{
    if (pattern[0] == '\0')
        return 0;
    for (unsigned i = 0; i < table.route_count; i++) {
        if (strcmp(table.routes[i], pattern) == 0)
            return i;
    }
    if (table.route_count == ROUTES_MAX)
        return 0;
    table.routes[table.route_count] = pattern;
    return table.route_count++;
}

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

void metrics_reset(void)
{
    for (unsigned m = 0; m < METRIC_COUNT; m++) {
        free(table.cells[m]);
        table.cells[m] = NULL;
    }
    table.route_count = 1;
}

/* ---- rendering ---- */

struct rendering {
    struct buf *out; /* borrowed */
    enum metrics_format format;
    int rc; /* the first failure */
};

static void emit(struct rendering *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void emit(struct rendering *r, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    check(n >= 0 && (size_t)n < sizeof text);
    if (r->rc == 0)
        r->rc = buf_add(r->out, text, (size_t)n);
}

/* Patterns and names of ours: nothing in them needs an escape but these. */
static void emit_label(struct rendering *r, int first, const char *name, const char *value)
{
    check(strpbrk(value, "\"\\\n") == NULL && strlen(value) < 256);
    emit(r, "%s%s=\"%s\"", first ? "{" : ",", name, value);
}

/* OpenMetrics wants bounds as floating-point numbers; Prometheus takes them too. */
static void seconds_text(uint64_t us, char out[32])
{
    int n = snprintf(out, 32, "%" PRIu64 ".%06u", us / SECONDS, (unsigned)(us % SECONDS));

    while (out[n - 1] == '0' && out[n - 2] != '.')
        out[--n] = '\0';
}

/* The labels of one cell, with le when it is not NULL. */
static void emit_labels(struct rendering *r, const struct family *f, const unsigned at[LABELS_MAX],
                        const char *le)
{
    int first = 1;

    for (unsigned i = 0; i < LABELS_MAX && f->labels[i] != NULL; i++) {
        const struct label *l = f->labels[i];

        emit_label(r, first, l->name, l->values != NULL ? l->values[at[i]] : table.routes[at[i]]);
        first = 0;
    }
    if (le != NULL) {
        emit_label(r, first, "le", le);
        first = 0;
    }
    emit(r, "%s ", first ? "" : "}");
}

static void emit_histogram(struct rendering *r, const struct family *f,
                           const unsigned at[LABELS_MAX], const uint64_t *values)
{
    unsigned count = f->buckets->count;
    uint64_t seen = 0;
    char text[32];

    for (unsigned i = 0; i <= count; i++) {
        seen += values[i];
        if (i < count)
            seconds_text(f->buckets->us[i], text);
        emit(r, "%s_bucket", f->name);
        emit_labels(r, f, at, i < count ? text : "+Inf");
        emit(r, "%" PRIu64 "\n", seen);
    }
    seconds_text(values[count + 1], text);
    emit(r, "%s_sum", f->name);
    emit_labels(r, f, at, NULL);
    emit(r, "%s\n%s_count", text, f->name);
    emit_labels(r, f, at, NULL);
    emit(r, "%" PRIu64 "\n", seen);
}

static void emit_value(struct rendering *r, const struct family *f, const unsigned at[LABELS_MAX],
                       uint64_t value)
{
    char text[32];

    emit(r, "%s%s", f->name, f->kind == COUNTER ? "_total" : "");
    emit_labels(r, f, at, NULL);
    if (f->micros)
        seconds_text(value, text);
    else
        snprintf(text, sizeof text, "%" PRIu64, value);
    emit(r, "%s\n", text);
}

static int all_zero(const uint64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] != 0)
            return 0;
    }
    return 1;
}

/* The family of a counter has the name of its sample in one format, and not in the other. */
static void emit_family(struct rendering *r, enum metric m)
{
    static const char *const kinds[] = { "counter", "gauge", "histogram" };
    const struct family *f = &families[m];
    const char *suffix = f->kind == COUNTER && r->format == METRICS_PROMETHEUS ? "_total" : "";
    unsigned at[LABELS_MAX];

    emit(r, "# HELP %s%s %s\n# TYPE %s%s %s\n", f->name, suffix, f->help, f->name, suffix,
         kinds[f->kind]);
    for (at[0] = 0; at[0] < label_count(f, 0); at[0]++) {
        for (at[1] = 0; at[1] < label_count(f, 1); at[1]++) {
            for (at[2] = 0; at[2] < label_count(f, 2); at[2]++) {
                const uint64_t *values = cell(m, at[0], at[1], at[2]);

                if (f->sparse && all_zero(values, cell_size(f)))
                    continue;
                if (f->kind == HISTOGRAM)
                    emit_histogram(r, f, at, values);
                else
                    emit_value(r, f, at, *values);
            }
        }
    }
}

int metrics_render(enum metrics_format format, struct buf *out)
{
    struct rendering r = { .out = out, .format = format };

    for (unsigned m = 0; m < METRIC_COUNT; m++)
        emit_family(&r, m);
    if (format == METRICS_OPENMETRICS)
        emit(&r, "# EOF\n");
    return r.rc;
}

/* Whoever names the newer format can read it; those who can always do. */
enum metrics_format metrics_accepted(struct view accept)
{
    static const char type[] = "application/openmetrics-text";
    size_t n = sizeof type - 1;

    for (size_t i = 0; accept.n >= n && i <= accept.n - n; i++) {
        if (view_equals_nocase((struct view){ accept.p + i, n }, type))
            return METRICS_OPENMETRICS;
    }
    return METRICS_PROMETHEUS;
}

const char *metrics_content_type(enum metrics_format format)
{
    return format == METRICS_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}
