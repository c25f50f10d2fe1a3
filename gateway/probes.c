#include "probes.h"

#include "err.h"
#include "health.h"
#include "httphead.h"
#include "jsonwrite.h"
#include "loop.h"
#include "metrics.h"
#include "processuse.h"
#include "request.h"
#include "router.h"
#include "server.h"
#include "sessions.h"

enum { METRICS_MAX = 4 * 1024 * 1024, BODY_MAX = 4096, SMALL = 1024 };

/* That this runs is the answer. */
static void healthz(struct request *r, void *arg)
{
    (void)arg;
    request_answer(r, &(struct answer){ .status = 200,
                                        .type = "application/json",
                                        .body = VIEW_STR("{\"status\":\"ok\"}") });
}

static void readyz(struct request *r, void *arg)
{
    struct probes *p = arg;
    int ready = health_ready(p->health, loop_now_ms(p->server->loop)) && !p->server->stopping;
    struct jsonwrite w;
    struct buf body;

    buf_init(&body, BODY_MAX);
    w = jsonwrite_to(&body);
    health_write(p->health, &w);
    request_json(r, ready ? 200 : 503, &w, &body, NULL);
}

static void metrics(struct request *r, void *arg)
{
    struct probes *p = arg;
    enum metrics_format format = metrics_accepted(http_value(r->head, "accept"));
    autobuf struct buf body;

    metrics_set(METRIC_READY, 0, (uint64_t)health_ready(p->health, loop_now_ms(p->server->loop)));
    metrics_set(METRIC_HTTP_CONNECTIONS, 0, server_connections(p->server));
    metrics_set(METRIC_WEBSOCKETS, 0, p->server->sockets);
    sessions_measure(p->sessions);
    processuse_measure();
    buf_init(&body, METRICS_MAX);
    if (metrics_render(format, &body) != 0) {
        request_error(r, 500, "the metrics are too long");
        return;
    }
    request_answer(r, &(struct answer){ .status = 200,
                                        .type = metrics_content_type(format),
                                        .body = buf_view(&body) });
}

#define PROBE (ROUTE_OPEN | ROUTE_PROBE)
static const struct route probe_routes[] = {
    { "GET", "/healthz", healthz, SMALL, PROBE },
    { "HEAD", "/healthz", healthz, SMALL, PROBE },
    { "GET", "/readyz", readyz, SMALL, PROBE },
    { "HEAD", "/readyz", readyz, SMALL, PROBE },
};
static const struct route open_metrics[] = { { "GET", "/metrics", metrics, SMALL, PROBE } };
static const struct route closed_metrics[] = { { "GET", "/metrics", metrics, SMALL,
                                                 ROUTE_ROOT | ROUTE_ALL } };

void probes_add(struct router *r, struct probes *p, int metrics_open)
{
    router_add(r, probe_routes, sizeof probe_routes / sizeof *probe_routes, p);
    router_add(r, metrics_open ? open_metrics : closed_metrics, 1, p);
}
