/* routes - the table of the Jupyter front. */
#include "jupyter.h"
#include "router.h"

/* Clients send small JSON with requests that need none ({} with an interrupt). */
enum { SMALL = 64 * 1024, MODEL = 1024 * 1024 };

const struct route jupyter_routes[] = {
    { "GET", "/api", api_version, SMALL, 0 },
    { "GET", "/api/status", api_status, SMALL, 0 },
    { "GET", "/api/me", api_me, SMALL, 0 },
    { "GET", "/api/swagger.json", document_json, SMALL, ROUTE_OPEN },
    { "GET", "/api/swagger.yaml", document_yaml, SMALL, ROUTE_OPEN },
    { "GET", "/api/spec.yaml", document_yaml, SMALL, ROUTE_OPEN },
    { "GET", "/api/kernelspecs", specs_list, SMALL, 0 },
    { "GET", "/api/kernelspecs/{name}", specs_one, SMALL, 0 },
    { "GET", "/kernelspecs/{name}/{path}", specs_resource, SMALL, 0 },
    { "HEAD", "/kernelspecs/{name}/{path}", specs_resource, SMALL, 0 },
    { "GET", "/api/kernels", kernels_list, SMALL, 0 },
    { "POST", "/api/kernels", kernels_create, MODEL, 0 },
    { "GET", "/api/kernels/{id}", kernels_get, SMALL, 0 },
    { "DELETE", "/api/kernels/{id}", kernels_delete, SMALL, 0 },
    { "GET", "/api/kernels/{id}/limits", kernels_limits, SMALL, 0 },
    { "POST", "/api/kernels/{id}/interrupt", kernels_interrupt, SMALL, 0 },
    { "POST", "/api/kernels/{id}/restart", kernels_restart, SMALL, 0 },
    { "GET", "/api/kernels/{id}/channels", channels_open, SMALL, ROUTE_WEBSOCKET },
    { "GET", "/api/sessions", nbsessions_list, SMALL, 0 },
    { "POST", "/api/sessions", nbsessions_create, MODEL, 0 },
    { "GET", "/api/sessions/{id}", nbsessions_get, SMALL, 0 },
    { "PATCH", "/api/sessions/{id}", nbsessions_patch, MODEL, 0 },
    { "DELETE", "/api/sessions/{id}", nbsessions_delete, SMALL, 0 },
};
const size_t jupyter_route_count = sizeof jupyter_routes / sizeof *jupyter_routes;
