/* metrics_own - what the files of the metrics share; nobody else includes it. */
#ifndef HC_METRICS_OWN_H
#define HC_METRICS_OWN_H

#include <stddef.h>
#include <stdint.h>

#include "metrics.h"

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

extern const struct family metrics_families[METRIC_COUNT];

static inline unsigned metrics_label_count(const struct family *f, unsigned i)
{
    return f->labels[i] != NULL ? f->labels[i]->count : 1;
}

/* A histogram's cell: its buckets, those above the last bound, the sum. */
static inline size_t metrics_cell_size(const struct family *f)
{
    return f->kind == HISTOGRAM ? f->buckets->count + 2 : 1;
}

uint64_t *metrics_cell(enum metric m, unsigned a, unsigned b, unsigned c);
const char *metrics_route_name(unsigned route); /* the pattern of metrics_route() */

#endif
