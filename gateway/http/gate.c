#include "gate.h"

#include <errno.h>
#include <string.h>

#include "auth.h"
#include "err.h"
#include "httpconn.h"
#include "httphead.h"
#include "router.h"
#include "server.h"

/* For who opens the address in a browser, and for who forgot the prefix (which is not told). */
static const char *not_found(const struct router *router, struct view path)
{
    const char *base = router_base(router);

    if (view_equals(path, "/"))
        return "Not Found: holdcell has no pages; give this address to a Jupyter client";
    if (path.n < strlen(base) - 1 || memcmp(path.p, base, strlen(base) - 1) != 0)
        return "Not Found: the routes of this server begin with its --base-url";
    return "Not Found";
}

int gate_admit(struct httpconn *h, const struct http_head *head, struct err *e)
{
    int found = router_match(h->server->router, head->method, head->path, &h->match), status;
    int options = view_equals(head->method, "OPTIONS");

    if (options && view_equals(head->target, "*"))
        return 0;
    if (found == 404) {
        err_set(e, HC_EPARSE, "%s", not_found(h->server->router, head->path));
        return 404; /* before the token is asked for: clients probe for what is not there */
    }
    if (options)
        return 0;
    h->request.principal = (struct principal){ .role = ROLE_NOBODY };
    h->request.proof = (struct proof){ .kind = PROOF_NONE };
    status = (h->match.route->flags & ROUTE_PROBE) == ROUTE_PROBE
                 ? 0
                 : auth_check(h->server->auth, head, &h->arrival,
                              h->match.route->flags & ROUTE_WEBSOCKET,
                              h->match.route->flags & ROUTE_OPEN, &h->request.principal,
                              &h->request.proof, e);
    if (status != 0)
        return status;
    origin_principal(h->request.origin, h->request.principal.name);
    if (found == 405) {
        err_set(e, HC_EPARSE, "Method Not Allowed");
        return 405;
    }
    if ((h->match.route->flags & ROUTE_ALL) && !principal_sees_all(&h->request.principal)) {
        err_set(e, EPERM, "this tells of all principals: it is for '%s' and observers of '*'",
                PRINCIPAL_DEFAULT);
        return 403;
    }
    if (h->request.principal.role == ROLE_OBSERVER && !view_equals(head->method, "GET") &&
        !view_equals(head->method, "HEAD")) {
        err_set(e, EPERM, "an observer only reads");
        return 403;
    }
    if (head->body != HTTP_BODY_NONE &&
        (head->length > h->match.route->body_max || h->match.route->body_max == 0)) {
        err_set(e, HC_ELIMIT, "the body may have at most %zu bytes", h->match.route->body_max);
        return 413;
    }
    return 0;
}
