/* kernels - REST of kernels: list, create, get, delete, interrupt, restart. */
#include <errno.h>
#include <stdio.h>

#include "err.h"
#include "jsonwrite.h"
#include "jupyter.h"
#include "kernel.h"
#include "limitsjson.h"
#include "pending.h"
#include "request.h"
#include "sessions.h"
#include "timestamp.h"

enum { DOCUMENT_MAX = 16 * 1024 * 1024, LOCATION_MAX = 1000 };

void kernel_write(struct jsonwrite *w, const struct kernel *k)
{
    char last[TIMESTAMP_TEXT];
    struct kernel_model m;

    kernel_model(k, &m);
    timestamp_format(m.last_activity_us, last);
    jsonwrite_object(w);
    jsonwrite_key(w, "id");
    jsonwrite_str(w, m.id);
    jsonwrite_key(w, "name");
    jsonwrite_str(w, m.name);
    if (m.profile != NULL) {
        jsonwrite_key(w, "profile");
        jsonwrite_str(w, m.profile);
    }
    jsonwrite_key(w, "last_activity");
    jsonwrite_str(w, last);
    jsonwrite_key(w, "execution_state");
    jsonwrite_str(w, m.execution_state);
    jsonwrite_key(w, "connections");
    jsonwrite_uint(w, m.connections);
    if (m.reason != NULL && m.reason[0] != '\0') {
        jsonwrite_key(w, "reason");
        jsonwrite_str(w, m.reason);
    }
    jsonwrite_end(w);
}

struct kernel *jupyter_kernel(struct request *r, const struct jupyter *j)
{
    const char *id = r->params[0];
    struct kernel *k = sessions_find_kernel(j->sessions, &r->principal, id);

    if (k == NULL)
        request_error(r, 404, "Kernel does not exist: %.200s", id);
    return k;
}

static void answer_kernel(struct request *r, int status, const struct kernel *k,
                          const char *location)
{
    struct jsonwrite w;
    struct buf body;

    buf_init(&body, DOCUMENT_MAX);
    w = jsonwrite_to(&body);
    kernel_write(&w, k);
    request_json(r, status, &w, &body, location);
}

void kernels_list(struct request *r, void *arg)
{
    const struct jupyter *j = arg;
    size_t count = sessions_kernels(j->sessions, &r->principal, NULL, 0);
    autofree struct kernel **kernels = xcalloc(count + 1, sizeof *kernels);
    struct jsonwrite w;
    struct buf body;

    if (!j->list_kernels) {
        request_error(r, 403, "the list of kernels is not given out");
        return;
    }
    sessions_kernels(j->sessions, &r->principal, kernels, count);
    buf_init(&body, DOCUMENT_MAX);
    w = jsonwrite_to(&body);
    jsonwrite_array(&w);
    for (size_t i = 0; i < count; i++)
        kernel_write(&w, kernels[i]);
    jsonwrite_end(&w);
    request_json(r, 200, &w, &body, NULL);
}

/* ---- create --------------------------------------------------------------- */

/* Kernel Gateway's own tests look for its traceback in the answer. */
static void answer_no_such_kernel(struct request *r, const struct err *e)
{
    struct jsonwrite w;
    struct buf body;

    buf_init(&body, DOCUMENT_MAX);
    w = jsonwrite_to(&body);
    jsonwrite_object(&w);
    jsonwrite_key(&w, "reason");
    jsonwrite_str(&w, "Internal Server Error");
    jsonwrite_key(&w, "message");
    jsonwrite_str(&w, e->msg);
    jsonwrite_key(&w, "traceback");
    jsonwrite_str(&w, "raise NoSuchKernel");
    jsonwrite_end(&w);
    request_json(r, 500, &w, &body, NULL);
}

static void on_created(struct jupyter *j, uint64_t token, struct request *r, struct kernel *k,
                       const struct err *e)
{
    char location[LOCATION_MAX];
    struct kernel_model m;

    (void)token;
    if (r == NULL)
        return; /* the kernel is listed and its own affair */
    if (e != NULL) {
        if (e->code == ENOENT)
            answer_no_such_kernel(r, e);
        else
            pending_answer_not_made(r, e);
        return;
    }
    kernel_model(k, &m);
    snprintf(location, sizeof location, "%sapi/kernels/%s", j->base, m.id);
    answer_kernel(r, 201, k, location);
}

void kernels_create(struct request *r, void *arg)
{
    struct jupyter *j = arg;
    struct kernel_request request = { 0 };
    struct kernel_body body;
    struct err e = { 0 };

    if (kernel_body_parse(r->body.p, r->body.n, &body, &e) != 0) {
        request_failed(r, &e);
        return;
    }
    request.kernel_id = body.kernel_id;
    request.spec_name = body.name;
    request.path = body.path;
    request.env = body.env;
    request.profile = body.profile;
    request.limits = body.limits;
    request.times = body.times;
    pending_create(j, r, &request, on_created);
    kernel_body_free(&body);
}

/* ---- one kernel ----------------------------------------------------------- */

void kernels_get(struct request *r, void *arg)
{
    const struct kernel *k = jupyter_kernel(r, arg);

    if (k != NULL)
        answer_kernel(r, 200, k, NULL);
}

/* Not in the model: some clients refuse keys that they do not know. */
void kernels_limits(struct request *r, void *arg)
{
    const struct kernel *k = jupyter_kernel(r, arg);
    struct jsonwrite w;
    struct buf body;

    if (k == NULL)
        return;
    buf_init(&body, DOCUMENT_MAX);
    w = jsonwrite_to(&body);
    limitsjson_write(&w, kernel_limits(k), kernel_times(k));
    request_json(r, 200, &w, &body, NULL);
}

void kernels_interrupt(struct request *r, void *arg)
{
    struct kernel *k = jupyter_kernel(r, arg);
    struct err e = { 0 };

    if (k == NULL)
        return;
    if (kernel_interrupt(k, &e) != 0)
        request_error(r, 404, "%s", e.msg); /* it is being deleted */
    else
        request_empty(r, 204);
}

static void on_restarted(struct jupyter *j, uint64_t token, struct request *r, struct kernel *k,
                         const struct err *e)
{
    (void)j;
    (void)token;
    if (r == NULL)
        return;
    if (e == NULL)
        answer_kernel(r, 200, k, NULL);
    else if (e->code == HC_EFULL)
        pending_answer_not_made(r, e);
    else
        request_error(r,
                      e->code == HC_EGONE                            ? 404
                      : e->code == HC_EAUDIT || e->code == ECANCELED ? 503
                                                                     : 500,
                      "Exception restarting kernel: %s", e->msg);
}

void kernels_restart(struct request *r, void *arg)
{
    struct kernel *k = jupyter_kernel(r, arg);

    if (k != NULL)
        pending_restart(arg, k, r->token, on_restarted);
}

void kernels_delete(struct request *r, void *arg)
{
    struct jupyter *j = arg;
    struct kernel *k = sessions_find_kernel(j->sessions, &r->principal, r->params[0]);

    if (k == NULL) /* somebody else deletes it, or it died: the answer is for the same end */
        k = sessions_find_ending(j->sessions, &r->principal, r->params[0]);
    if (k == NULL)
        k = jupyter_kernel(r, j);
    if (k != NULL)
        pending_delete(j, k, r->token, pending_answer_deleted);
}
