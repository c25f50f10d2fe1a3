/*
 * metrics - what is counted, in one table, and its rendering for Prometheus. Counted at
 * the events themselves; nothing that a client chooses becomes a label. The table is
 * the process's, like the log: a counter begins anew with each gateway.
 *
 * docs/OPERATING.md lists the table; a test holds the two together.
 */
#ifndef HC_METRICS_H
#define HC_METRICS_H

#include <stdint.h>

#include "buf.h"

enum metric {
    METRIC_BUILD_INFO,
    METRIC_GATEWAY_RESTARTS,
    METRIC_READY,
    METRIC_WALLS_MISSING,

    METRIC_SESSIONS,
    METRIC_SESSIONS_MAX,
    METRIC_ADMISSION,
    METRIC_ADMISSIONS_REFUSED,
    METRIC_HOST_MEMORY,
    METRIC_MEMORY_RESERVE,
    METRIC_MEMORY_PROMISED,
    METRIC_KERNELS,       /* enum metric_kernel_state */
    METRIC_KERNEL_STARTS, /* enum metric_outcome */
    METRIC_KERNEL_START_TIME,
    METRIC_KERNEL_DEATHS,   /* enum metric_death */
    METRIC_KERNEL_RESTARTS, /* enum metric_restart */
    METRIC_KERNELS_CULLED,
    METRIC_SESSIONS_EXPIRED,
    METRIC_RUNS_OPEN,
    METRIC_RUNS, /* enum run_state - RUN_OK */
    METRIC_RUN_TIME,
    METRIC_SHORTAGES, /* enum query_short */

    METRIC_KERNEL_MESSAGES, /* enum jmsg_channel, enum metric_direction */
    METRIC_KERNEL_BYTES,    /* likewise */
    METRIC_CLIENT_MESSAGES, /* likewise */
    METRIC_CLIENT_BYTES,    /* likewise */
    METRIC_DROPPED,         /* enum metric_drop */
    METRIC_CLIENTS_LAGGED,
    METRIC_LOG_MEMORY,
    METRIC_LOG_SPOOL,
    METRIC_SPOOL_FAILURES,

    METRIC_HTTP_CONNECTIONS,
    METRIC_WEBSOCKETS,
    METRIC_WEBSOCKETS_OPENED,
    METRIC_HTTP_REQUESTS,  /* metrics_route(), enum metric_method, status / 100 - 1 */
    METRIC_HTTP_TIME,      /* metrics_route() */
    METRIC_LOGIN_FAILURES, /* enum metric_login */

    METRIC_LAUNCHER_TIME,     /* verb - 1 */
    METRIC_LAUNCHER_FAILURES, /* verb - 1 */
    METRIC_LOG_LOST,

    METRIC_AUDIT_RECORDS,
    METRIC_AUDIT_TIME,
    METRIC_AUDIT_FAILURES,
    METRIC_AUDIT_LOST,
    METRIC_AUDIT_REFUSED,

    METRIC_PROCESS_CPU,
    METRIC_PROCESS_RSS,
    METRIC_PROCESS_FDS,
    METRIC_PROCESS_FDS_MAX,
    METRIC_PROCESS_START,
    METRIC_COUNT,
};

enum metric_kernel_state {
    METRIC_STARTING,
    METRIC_IDLE,
    METRIC_BUSY,
    METRIC_UNRESPONSIVE,
    METRIC_RESTARTING,
    METRIC_DEAD,
};
enum metric_outcome { METRIC_OK, METRIC_FAILED };
enum metric_death {
    METRIC_OOM,
    METRIC_SIGNAL,
    METRIC_EXIT,
    METRIC_SANDBOX,
    METRIC_TIMEOUT,
    METRIC_PROTOCOL,
};
enum metric_restart { METRIC_REQUESTED, METRIC_AUTOMATIC };
enum metric_direction { METRIC_FROM, METRIC_TO }; /* the kernel, or the client */
enum metric_drop {
    METRIC_RATE_LIMIT,
    METRIC_MALFORMED,
    METRIC_SIGNATURE,
    METRIC_OVERSIZED,
    METRIC_STATE_CLAIM,
    METRIC_SECOND_REPLY,
    METRIC_UNASKED,
    METRIC_INPUT_NOT_ALLOWED,
    METRIC_CLIENT_MALFORMED,
    METRIC_GIVEN_UP,
    METRIC_OBSERVER,
    METRIC_OUTPUT_LIMIT,
};
enum metric_method {
    METRIC_GET,
    METRIC_HEAD,
    METRIC_POST,
    METRIC_PUT,
    METRIC_PATCH,
    METRIC_DELETE,
    METRIC_OPTIONS,
    METRIC_OTHER,
};
enum metric_login { METRIC_NO_TOKEN, METRIC_WRONG_TOKEN };

enum metrics_format { METRICS_PROMETHEUS, METRICS_OPENMETRICS };

/* Label indices that a metric does not have are 0. */
void metrics_add(enum metric m, unsigned a, unsigned b, unsigned c, uint64_t n);
static inline void metrics_count(enum metric m, unsigned a)
{
    metrics_add(m, a, 0, 0, 1);
}
void metrics_observe(enum metric m, unsigned a, uint64_t us);              /* histograms */
void metrics_set(enum metric m, unsigned a, uint64_t n);                   /* gauges */
uint64_t metrics_value(enum metric m, unsigned a, unsigned b, unsigned c); /* not of histograms */

/* The label of a route's pattern, which lives as long as the process; 0 ("unmatched")
 * is that of "", which has no route, and of those beyond a bound. */
unsigned metrics_route(const char *pattern);
unsigned metrics_method(struct view method);
void metrics_version(const char *version); /* of build_info; borrowed */

/* -EMSGSIZE or -ENOMEM when it does not fit. */
int metrics_render(enum metrics_format format, struct buf *out) MUST_CHECK;
/* What the client's Accept field asks for, and the Content-Type of that. */
enum metrics_format metrics_accepted(struct view accept);
const char *metrics_content_type(enum metrics_format format);

void metrics_reset(void); /* for tests: all values 0, no routes */

#endif
