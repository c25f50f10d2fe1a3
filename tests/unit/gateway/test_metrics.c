/* The table of what is counted, as Prometheus reads it. */
#include "metrics.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "launchmsg.h"
#include "run.h"

static struct buf out;

static const char *render(enum metrics_format format)
{
    buf_clear(&out);
    assert_int_equal(metrics_render(format, &out), 0);
    assert_int_equal(buf_add(&out, "", 1), 0);
    return (const char *)buf_view(&out).p;
}

static int set_up(void **state)
{
    (void)state;
    metrics_reset();
    buf_init(&out, 4 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_free(&out);
    metrics_reset();
    return 0;
}

static void assert_has(const char *text, const char *line)
{
    if (strstr(text, line) == NULL)
        fail_msg("no '%s' in:\n%s", line, text);
}

static void a_counter_is_told_with_its_labels_and_from_zero(void **state)
{
    (void)state;
    assert_has(render(METRICS_PROMETHEUS), "\nholdcell_runs_total{state=\"ok\"} 0\n");
    metrics_count(METRIC_RUNS, RUN_OK - RUN_OK);
    metrics_count(METRIC_RUNS, RUN_LOST - RUN_OK);
    metrics_add(METRIC_KERNEL_BYTES, 3, METRIC_TO, 0, 1234567890123);
    const char *text = render(METRICS_PROMETHEUS);
    assert_has(text, "# HELP holdcell_runs_total Executions by end state (docs/STATES.md).\n"
                     "# TYPE holdcell_runs_total counter\n"
                     "holdcell_runs_total{state=\"ok\"} 1\n");
    assert_has(text, "\nholdcell_runs_total{state=\"lost\"} 1\n");
    assert_has(text, "\nholdcell_kernel_message_bytes_total{channel=\"iopub\","
                     "direction=\"to_kernel\"} 1234567890123\n");
}

static void the_labels_follow_the_enums_they_are_counted_by(void **state)
{
    char line[128];

    (void)state;
    for (int s = RUN_OK; s <= RUN_LOST; s++) {
        metrics_reset();
        metrics_count(METRIC_RUNS, (unsigned)(s - RUN_OK));
        snprintf(line, sizeof line, "holdcell_runs_total{state=\"%s\"} 1\n",
                 run_state_name((enum run_state)s));
        assert_has(render(METRICS_PROMETHEUS), line);
    }
    for (unsigned verb = 1; verb < LAUNCH_VERBS_END; verb++)
        metrics_observe(METRIC_LAUNCHER_TIME, verb - 1, 1);
}

static void a_histogram_counts_upwards_and_in_seconds(void **state)
{
    (void)state;
    metrics_observe(METRIC_KERNEL_START_TIME, 0, 10000); /* on the bound: within */
    metrics_observe(METRIC_KERNEL_START_TIME, 0, 10001);
    metrics_observe(METRIC_KERNEL_START_TIME, 0, 99000000);
    assert_has(render(METRICS_PROMETHEUS),
               "# TYPE holdcell_kernel_start_duration_seconds histogram\n"
               "holdcell_kernel_start_duration_seconds_bucket{le=\"0.01\"} 1\n"
               "holdcell_kernel_start_duration_seconds_bucket{le=\"0.025\"} 2\n");
    assert_has(render(METRICS_PROMETHEUS),
               "holdcell_kernel_start_duration_seconds_bucket{le=\"30.0\"} 2\n"
               "holdcell_kernel_start_duration_seconds_bucket{le=\"+Inf\"} 3\n"
               "holdcell_kernel_start_duration_seconds_sum 99.020001\n"
               "holdcell_kernel_start_duration_seconds_count 3\n");
}

static void the_other_format_names_counters_without_total_and_has_an_end(void **state)
{
    (void)state;
    const char *text = render(METRICS_OPENMETRICS);
    assert_has(text, "# TYPE holdcell_runs counter\nholdcell_runs_total{state=\"ok\"} 0\n");
    assert_string_equal(text + strlen(text) - 6, "# EOF\n");
    assert_null(strstr(render(METRICS_PROMETHEUS), "# EOF"));
}

static void accept_decides_the_format(void **state)
{
    (void)state;
    assert_int_equal(metrics_accepted(VIEW_STR("")), METRICS_PROMETHEUS);
    assert_int_equal(metrics_accepted(VIEW_STR("text/plain;version=0.0.4;q=1,*/*;q=0.1")),
                     METRICS_PROMETHEUS);
    assert_int_equal(
        metrics_accepted(VIEW_STR("application/openmetrics-text;version=1.0.0,text/plain;q=0.5")),
        METRICS_OPENMETRICS);
    assert_int_equal(metrics_accepted(VIEW_STR("text/html, Application/OpenMetrics-Text")),
                     METRICS_OPENMETRICS);
    assert_int_equal(metrics_accepted(VIEW_STR("application/openmetrics-tex")), METRICS_PROMETHEUS);
}

static void routes_are_labels_within_a_bound(void **state)
{
    static char names[100][16];
    unsigned last = 0;

    (void)state;
    assert_int_equal(metrics_route(""), 0);
    unsigned api = metrics_route("/api");
    assert_int_not_equal(api, 0);
    assert_int_equal(metrics_route("/api"), api);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "/r%u", i);
        last = metrics_route(names[i]);
    }
    assert_int_equal(last, 0); /* above the bound: as if it had no route */
    assert_int_equal(metrics_route("/api"), api);
    metrics_add(METRIC_HTTP_REQUESTS, api, METRIC_GET, 1, 2);
    metrics_add(METRIC_HTTP_REQUESTS, 0, METRIC_OTHER, 3, 1);
    const char *text = render(METRICS_PROMETHEUS);
    assert_has(text, "counter\nholdcell_http_requests_total{route=\"unmatched\",method=\"other\","
                     "status=\"4xx\"} 1\nholdcell_http_requests_total{route=\"/api\","
                     "method=\"GET\",status=\"2xx\"} 2\n# HELP");
}

static void methods_of_clients_become_no_labels(void **state)
{
    (void)state;
    assert_int_equal(metrics_method(VIEW_STR("DELETE")), METRIC_DELETE);
    assert_int_equal(metrics_method(VIEW_STR("delete")), METRIC_OTHER);
    assert_int_equal(metrics_method(VIEW_STR("BREW")), METRIC_OTHER);
}

static void what_does_not_fit_is_an_error(void **state)
{
    struct buf small;

    (void)state;
    buf_init(&small, 1000);
    assert_int_equal(metrics_render(METRICS_PROMETHEUS, &small), -EMSGSIZE);
    buf_free(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_counter_is_told_with_its_labels_and_from_zero, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_labels_follow_the_enums_they_are_counted_by, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_histogram_counts_upwards_and_in_seconds, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            the_other_format_names_counters_without_total_and_has_an_end, set_up, tear_down),
        cmocka_unit_test(accept_decides_the_format),
        cmocka_unit_test_setup_teardown(routes_are_labels_within_a_bound, set_up, tear_down),
        cmocka_unit_test(methods_of_clients_become_no_labels),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_an_error, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
