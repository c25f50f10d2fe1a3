/* pending - see pending.h. */
#include "pending.h"

#include <errno.h>
#include <stdlib.h>

#include "err.h"
#include "jupyter.h"
#include "kernel.h"
#include "request.h"
#include "sessions.h"

enum { ROOM_AGAIN_S = 5 }; /* sessions end, memory comes back: not within a second */

struct pending {
    struct jupyter *jupyter; /* borrowed */
    pending_fn *then;        /* may be NULL */
};

/* Every operation ends in one call, so that nobody else has to free it. */
static struct pending *pending_new(struct jupyter *j, pending_fn *then)
{
    struct pending *p = xcalloc(1, sizeof *p);

    *p = (struct pending){ j, then };
    j->calls++;
    return p;
}

static void on_done(void *arg, uint64_t token, struct kernel *k, const struct err *e)
{
    autofree struct pending *p = arg;
    struct jupyter *j = p->jupyter;

    j->calls--;
    if (p->then != NULL)
        p->then(j, token, request_find(j->server, token), k, e);
}

void pending_create(struct jupyter *j, const struct request *r, const struct kernel_request *q,
                    pending_fn *then)
{
    sessions_create_kernel(j->sessions, &r->principal, q, on_done, pending_new(j, then), r->token);
}

void pending_restart(struct jupyter *j, struct kernel *k, uint64_t token, pending_fn *then)
{
    kernel_restart(k, on_done, pending_new(j, then), token);
}

void pending_ready(struct jupyter *j, struct kernel *k, uint64_t token, pending_fn *then)
{
    kernel_await_ready(k, on_done, pending_new(j, then), token);
}

void pending_delete(struct jupyter *j, struct kernel *k, uint64_t token, pending_fn *then)
{
    kernel_delete(k, on_done, pending_new(j, then), token);
}

void pending_answer_deleted(struct jupyter *j, uint64_t token, struct request *r, struct kernel *k,
                            const struct err *e)
{
    (void)j;
    (void)token;
    (void)k;
    if (r == NULL)
        return;
    if (e != NULL)
        request_failed(r, e);
    else
        request_empty(r, 204);
}

void pending_answer_not_made(struct request *r, const struct err *e)
{
    int status = status_of_error(e->code);

    if (e->code == HC_ELIMIT)
        request_error(r, 403, "Resource Limit: %s", e->msg);
    else if (e->code == HC_EFULL)
        request_busy(r, ROOM_AGAIN_S, e->msg);
    else if (e->code == HC_EGONE) /* somebody deleted it: what a look at it says now */
        request_error(r, 404, "%s", e->msg);
    else if (status == 400 || status == 503 || e->code == HC_EDENIED || e->code == HC_ESTATE)
        request_error(r, status, "%s", e->msg);
    else
        request_error(r, 500, "%s", e->msg);
}
