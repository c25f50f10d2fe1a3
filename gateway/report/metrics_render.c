/* metrics_render - the table of metrics as Prometheus and OpenMetrics read it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "metrics_own.h"

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
    int n = snprintf(out, 32, "%" PRIu64 ".%06u", us / 1000000, (unsigned)(us % 1000000));

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

        emit_label(r, first, l->name,
                   l->values != NULL ? l->values[at[i]] : metrics_route_name(at[i]));
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
    const struct family *f = &metrics_families[m];
    const char *suffix = f->kind == COUNTER && r->format == METRICS_PROMETHEUS ? "_total" : "";
    unsigned at[LABELS_MAX];

    emit(r, "# HELP %s%s %s\n# TYPE %s%s %s\n", f->name, suffix, f->help, f->name, suffix,
         kinds[f->kind]);
    for (at[0] = 0; at[0] < metrics_label_count(f, 0); at[0]++) {
        for (at[1] = 0; at[1] < metrics_label_count(f, 1); at[1]++) {
            for (at[2] = 0; at[2] < metrics_label_count(f, 2); at[2]++) {
                const uint64_t *values = metrics_cell(m, at[0], at[1], at[2]);

                if (f->sparse && all_zero(values, metrics_cell_size(f)))
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
