#include "metrics.h"

#include <string.h>

#include "err.h"
#include "metrics_own.h"

static struct {
    uint64_t *cells[METRIC_COUNT]; /* owned, for the life of the process */
    const char *routes[ROUTES_MAX];
    unsigned route_count;
} table = { .routes = { "unmatched" }, .route_count = 1 };

static size_t cell_count(const struct family *f)
{
    return (size_t)metrics_label_count(f, 0) * metrics_label_count(f, 1) *
           metrics_label_count(f, 2);
}

uint64_t *metrics_cell(enum metric m, unsigned a, unsigned b, unsigned c)
{
    const struct family *f = &metrics_families[m];

    check(a < metrics_label_count(f, 0) && b < metrics_label_count(f, 1) &&
          c < metrics_label_count(f, 2));
    if (table.cells[m] == NULL)
        table.cells[m] = xcalloc(cell_count(f) * metrics_cell_size(f), sizeof(uint64_t));
    size_t at = ((size_t)a * metrics_label_count(f, 1) + b) * metrics_label_count(f, 2) + c;
    return &table.cells[m][at * metrics_cell_size(f)];
}

void metrics_add(enum metric m, unsigned a, unsigned b, unsigned c, uint64_t n)
{
    check(metrics_families[m].kind != HISTOGRAM);
    *metrics_cell(m, a, b, c) += n;
}

void metrics_set(enum metric m, unsigned a, uint64_t n)
{
    check(metrics_families[m].kind != HISTOGRAM);
    *metrics_cell(m, a, 0, 0) = n;
}

uint64_t metrics_value(enum metric m, unsigned a, unsigned b, unsigned c)
{
    check(metrics_families[m].kind != HISTOGRAM);
    return *metrics_cell(m, a, b, c);
}

void metrics_observe(enum metric m, unsigned a, uint64_t us)
{
    const struct buckets *buckets = metrics_families[m].buckets;
    uint64_t *values = metrics_cell(m, a, 0, 0);
    unsigned i = 0;

    check(metrics_families[m].kind == HISTOGRAM);
    while (i < buckets->count && us > buckets->us[i])
        i++;
    values[i]++;
    values[buckets->count + 1] += us;
}

const char *metrics_route_name(unsigned route)
{
    return table.routes[route];
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

void metrics_reset(void)
{
    for (unsigned m = 0; m < METRIC_COUNT; m++) {
        free(table.cells[m]);
        table.cells[m] = NULL;
    }
    table.route_count = 1;
}
