/* What lives at this moment, counted for metrics.h. */
#include <string.h>

#include "kernel_own.h"
#include "metrics.h"
#include "sessions_own.h"

static enum metric_kernel_state state_of(const struct kernel *k)
{
    static const char *const names[] = {
        [METRIC_STARTING] = "starting",
        [METRIC_IDLE] = "idle",
        [METRIC_BUSY] = "busy",
        [METRIC_UNRESPONSIVE] = "unresponsive",
        [METRIC_RESTARTING] = "restarting",
    };
    struct kernel_model m;

    kernel_model(k, &m);
    for (unsigned i = 0; i < METRIC_DEAD; i++) {
        if (strcmp(m.execution_state, names[i]) == 0)
            return (enum metric_kernel_state)i;
    }
    return METRIC_DEAD;
}

void sessions_measure(const struct sessions *s)
{
    uint64_t kernels[METRIC_DEAD + 1] = { 0 };
    uint64_t sessions = 0, runs = 0, memory = 0, spool = 0;

    for (const struct session *n = s->first; n != NULL; n = n->next)
        sessions += n->phase != SESSION_GONE;
    for (const struct kernel *k = sessions_first_kernel(s); k != NULL;
         k = sessions_next_kernel(k)) {
        struct eventlog_use use = eventlog_use(k->log);

        kernels[state_of(k)]++;
        runs += queries_runs(k->queries);
        memory += use.memory;
        spool += use.spool;
    }
    for (unsigned i = 0; i <= METRIC_DEAD; i++)
        metrics_set(METRIC_KERNELS, i, kernels[i]);
    metrics_set(METRIC_SESSIONS, 0, sessions);
    metrics_set(METRIC_RUNS_OPEN, 0, runs);
    metrics_set(METRIC_LOG_MEMORY, 0, memory);
    metrics_set(METRIC_LOG_SPOOL, 0, spool);
}
