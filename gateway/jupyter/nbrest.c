/*
 * nbrest - REST of notebook sessions: list, create, get, change, delete. A kernel
 * that starts or ends in between is found again by the token of the request.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "jsonwrite.h"
#include "jupyter.h"
#include "kernel.h"
#include "kernelenv.h"
#include "nbsessions.h"
#include "pending.h"
#include "request.h"
#include "sessions.h"

enum {
    DOCUMENT_MAX = 32 * 1024 * 1024,
    LOCATION_MAX = 1000,
    LOOK_AT_ONCE = 64, /* sessions of everybody, for one request */
};

static struct kernel *kernel_of(const struct jupyter *j, const struct nbsession *s)
{
    struct principal p = { .role = ROLE_FULL };

    memcpy(p.name, s->owner, sizeof p.name);
    return sessions_find_kernel(j->sessions, &p, s->kernel_id);
}

static void answer_session(struct request *r, const struct jupyter *j, int status,
                           const struct nbsession *s, const struct kernel *k)
{
    char location[LOCATION_MAX];
    struct jsonwrite w;
    struct buf body;

    buf_init(&body, DOCUMENT_MAX);
    w = jsonwrite_to(&body);
    nbsession_write(&w, s, k);
    snprintf(location, sizeof location, "%sapi/sessions/%s", j->base, s->id);
    request_json(r, status, &w, &body, status == 201 ? location : NULL);
}

static void bind_kernel(struct jupyter *j, struct nbsession *s, struct kernel *k)
{
    struct kernel_model m;
    struct principal p = { .role = ROLE_FULL };

    kernel_model(k, &m);
    memcpy(s->kernel_id, m.id, sizeof s->kernel_id);
    memcpy(p.name, s->owner, sizeof p.name);
    nbsessions_keep(j->notebooks, &p, k);
}

/* The session of the path parameter with its kernel; NULL after a 404. One whose
 * kernel has gone is dropped by whoever meets it. */
static struct nbsession *session_of(struct request *r, const struct jupyter *j, struct kernel **ret)
{
    const char *id = r->params[0];
    struct nbsession *s = nbsessions_by_id(j->notebooks, &r->principal, id);

    *ret = s != NULL ? kernel_of(j, s) : NULL;
    if (*ret != NULL)
        return s;
    if (s != NULL && s->token == 0)
        nbsessions_remove(j->notebooks, s);
    request_error(r, 404, "Session not found: session_id='%.200s'", id);
    return NULL;
}

void nbsessions_list(struct request *r, void *arg)
{
    const struct jupyter *j = arg;
    struct nbsession *next;
    struct jsonwrite w;
    struct buf body;

    if (!j->list_kernels) {
        request_error(r, 403, "the list of sessions is not given out");
        return;
    }
    buf_init(&body, DOCUMENT_MAX);
    w = jsonwrite_to(&body);
    jsonwrite_array(&w);
    for (struct nbsession *s = nbsessions_first(j->notebooks); s != NULL; s = next) {
        next = s->next;
        if (!principal_sees(&r->principal, s->owner))
            continue; /* what others have costs nobody else time */
        const struct kernel *k = s->kernel_id[0] != '\0' ? kernel_of(j, s) : NULL;
        if (k == NULL && s->token == 0)
            nbsessions_remove(j->notebooks, s);
        else if (k != NULL)
            nbsession_write(&w, s, k);
    }
    jsonwrite_end(&w);
    request_json(r, 200, &w, &body, NULL);
}

void nbsessions_get(struct request *r, void *arg)
{
    const struct jupyter *j = arg;
    struct kernel *k;
    const struct nbsession *s = session_of(r, j, &k);

    if (s != NULL)
        answer_session(r, j, 200, s, k);
}

/* ---- starting a kernel ---------------------------------------------------- */

/* What jupyter_server says when a session gets no kernel: two texts, one for a title. */
static void answer_two_messages(struct request *r, const char *short_message, const char *message)
{
    struct jsonwrite w;
    struct buf body;

    buf_init(&body, DOCUMENT_MAX);
    w = jsonwrite_to(&body);
    jsonwrite_object(&w);
    jsonwrite_key(&w, "reason");
    jsonwrite_str(&w, "Not Implemented");
    jsonwrite_key(&w, "message");
    jsonwrite_str(&w, message);
    jsonwrite_key(&w, "short_message");
    jsonwrite_str(&w, short_message);
    jsonwrite_end(&w);
    request_json(r, 501, &w, &body, NULL);
}

static void answer_not_created(struct request *r, const struct err *e)
{
    if (e->code == ENOENT)
        answer_two_messages(r, e->msg, e->msg);
    else
        pending_answer_not_made(r, e);
}

/* Of a change jupyter_server answers every failure of the kernel like this. */
static void answer_not_changed(struct request *r, const struct err *e)
{
    char message[300];

    snprintf(message, sizeof message, "The kernel could not be started: %s", e->msg);
    if (e->code == ENOENT || e->code == EIO)
        answer_two_messages(r, "Error starting kernel", message);
    else
        pending_answer_not_made(r, e);
}

static const char *given(const char *new, const char *old)
{
    return new != NULL ? new : old;
}

/* JPY_SESSION_NAME as jupyter_server makes it. Caller frees. */
static char *session_name(const char *path, const char *name)
{
    autofree char *cwd = kernelenv_cwd(path);
    char *text = NULL;

    if (name == NULL || name[0] == '\0' || asprintf(&text, "%s/%s", cwd, name) < 0)
        return xstrdup(path);
    return text;
}

/* Asks for a kernel by name or, for a new session, with an id that nobody has. */
static void start_kernel(struct request *r, struct jupyter *j, const struct nbsession *s,
                         struct kernel_request request, pending_fn *then)
{
    autofree char *path = xstrdup(given(s->change.path, s->path)),
                  *known_as = session_name(path, given(s->change.name, s->name));

    request.path = path;
    request.session_name = known_as;
    pending_create(j, r, &request, then);
}

/* ---- create --------------------------------------------------------------- */

static void on_created(struct jupyter *j, uint64_t token, struct request *r, struct kernel *k,
                       const struct err *e)
{
    struct nbsession *s = nbsessions_by_token(j->notebooks, token);

    check(s != NULL); /* nobody else sees it before it has a kernel */
    s->token = 0;
    if (e != NULL) {
        nbsessions_remove(j->notebooks, s);
        if (r != NULL)
            answer_not_created(r, e);
        return;
    }
    bind_kernel(j, s, k);
    if (r != NULL)
        answer_session(r, j, 201, s, k);
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The ids of all kernels of that principal, sorted. Caller frees. */
static char (*ids_of(const struct jupyter *j, const struct principal *p, size_t *ret_n))[UUID_TEXT]
{
    size_t n = sessions_kernels(j->sessions, p, NULL, 0);
    autofree struct kernel **kernels = xcalloc(n + 1, sizeof *kernels);
    char(*ids)[UUID_TEXT] = xcalloc(n + 1, sizeof *ids);

    sessions_kernels(j->sessions, p, kernels, n);
    for (size_t i = 0; i < n; i++) {
        struct kernel_model m;

        kernel_model(kernels[i], &m);
        memcpy(ids[i], m.id, sizeof ids[i]);
    }
    qsort(ids, n, sizeof *ids, compare_ids);
    *ret_n = n;
    return ids;
}

/* The principal's own whose kernels have gone, when it has no room for another one. What others
 * have costs it no time, and its asking costs them none. */
static void forget_gone(const struct jupyter *j, const struct principal *p)
{
    size_t n;
    autofree char(*ids)[UUID_TEXT] = ids_of(j, p, &n);

    for (struct nbsession *s = nbsessions_first(j->notebooks), *next; s != NULL; s = next) {
        next = s->next;
        if (s->token == 0 && strcmp(s->owner, p->name) == 0 &&
            bsearch(s->kernel_id, ids, n, sizeof *ids, compare_ids) == NULL)
            nbsessions_remove(j->notebooks, s);
    }
}

/* A few of everybody's, round and round, when there is no room for anybody: those who come
 * back for nothing of theirs must not keep out others for ever. */
static void forget_some(struct jupyter *j)
{
    struct nbsession *s = nbsessions_after(j->notebooks, j->looked_at), *next;

    for (unsigned i = 0; i < LOOK_AT_ONCE && s != NULL; i++, s = next) {
        next = s->next;
        j->looked_at = s->number;
        if (s->token == 0 && kernel_of(j, s) == NULL)
            nbsessions_remove(j->notebooks, s);
    }
    if (s == NULL)
        j->looked_at = 0;
}

/* As nbsessions_add(), after those that are of no use have made room. */
static int add_session(struct jupyter *j, const struct principal *p, struct nbsession_body *body,
                       struct nbsession **ret, struct err *e)
{
    int rc = nbsessions_add(j->notebooks, p, body, ret, e);

    if (rc == -HC_ELIMIT)
        forget_gone(j, p);
    else if (rc == -HC_EFULL)
        forget_some(j);
    else
        return rc;
    *e = (struct err){ 0 };
    return nbsessions_add(j->notebooks, p, body, ret, e);
}

/* 1 after an answer: what runs keeps its profile. */
static int has_another_profile(struct request *r, const struct kernel *k, const char *profile)
{
    struct kernel_model m;

    kernel_model(k, &m);
    const char *has = m.profile != NULL ? m.profile : PROFILE_DEFAULT;
    if (profile == NULL || strcmp(profile, has) == 0)
        return 0;
    request_error(r, 409, "kernel.profile: the kernel runs with profile '%s'", has);
    return 1;
}

/* A path has one session: asking again gives it again. 1 when that was the answer. */
static int answer_existing(struct request *r, struct jupyter *j, const char *path,
                           const char *profile)
{
    struct nbsession *s = nbsessions_by_path(j->notebooks, &r->principal, path);
    struct kernel *k = s != NULL && s->kernel_id[0] != '\0' ? kernel_of(j, s) : NULL;

    if (s == NULL)
        return 0;
    if (k != NULL) {
        if (!has_another_profile(r, k, profile))
            answer_session(r, j, 201, s, k);
        return 1;
    }
    if (s->token != 0) {
        request_error(r, 409, "a session for this path is being started");
        return 1;
    }
    nbsessions_remove(j->notebooks, s);
    return 0;
}

static void create(struct request *r, struct jupyter *j, struct nbsession_body *body)
{
    autofree char *id = take_ptr(body->kernel_id), *name = take_ptr(body->kernel_name),
                  *profile = take_ptr(body->kernel_profile);
    struct kernel *k = id != NULL ? sessions_find_kernel(j->sessions, &r->principal, id) : NULL;
    struct kernel_request q = { .kernel_id = id,
                                .spec_name = name,
                                .profile = profile,
                                .limits = body->limits,
                                .times = body->times };
    struct nbsession *s = NULL;
    struct err e = { 0 };

    if (id != NULL && k == NULL && !uuid_valid(id, strlen(id))) {
        request_error(r, 400, "kernel.id must be a UUID");
        return;
    }
    if (k != NULL && has_another_profile(r, k, profile))
        return;
    if (add_session(j, &r->principal, body, &s, &e) < 0) {
        request_failed(r, &e);
        return;
    }
    if (k != NULL) {
        bind_kernel(j, s, k);
        answer_session(r, j, 201, s, k);
        return;
    }
    s->token = r->token;
    start_kernel(r, j, s, q, on_created);
}

void nbsessions_create(struct request *r, void *arg)
{
    struct jupyter *j = arg;
    struct nbsession_body body;
    struct err e = { 0 };

    if (nbsession_body_parse(r->body.p, r->body.n, &body, &e) != 0) {
        request_failed(r, &e);
        return;
    }
    if (body.path == NULL || body.type == NULL)
        request_error(r, 400, "Missing field in JSON data: %s",
                      body.path == NULL ? "path" : "type");
    else if (!answer_existing(r, j, body.path, body.kernel_profile))
        create(r, j, &body);
    nbsession_body_free(&body);
}

/* ---- change --------------------------------------------------------------- */

static void on_old_kernel_gone(struct jupyter *j, uint64_t token, struct request *r,
                               struct kernel *old, const struct err *e)
{
    struct nbsession *s = nbsessions_by_token(j->notebooks, token);
    const struct kernel *k = s != NULL ? kernel_of(j, s) : NULL;

    (void)old;
    (void)e;
    if (s != NULL)
        s->token = 0;
    if (r == NULL)
        return;
    if (k != NULL)
        answer_session(r, j, 200, s, k);
    else
        request_error(r, 404, "the session has gone meanwhile");
}

/* The change is certain now: takes it over, and ends the kernel that was there before
 * even if another session shares it. */
static void switch_kernel(struct jupyter *j, struct nbsession *s, struct kernel *k, uint64_t token)
{
    struct request *r = request_find(j->server, token);
    struct kernel *old = kernel_of(j, s);
    int renamed = s->change.path != NULL || s->change.name != NULL;

    nbsession_apply(s);
    if (renamed && old == k) {
        autofree char *known_as = session_name(s->path, s->name);
        kernel_name_session(k, known_as);
    }
    bind_kernel(j, s, k);
    if (old != NULL && old != k) {
        s->token = token;
        pending_delete(j, old, token, on_old_kernel_gone);
        return;
    }
    s->token = 0;
    if (r != NULL)
        answer_session(r, j, 200, s, k);
}

static void on_new_kernel(struct jupyter *j, uint64_t token, struct request *r, struct kernel *k,
                          const struct err *e)
{
    struct nbsession *s = nbsessions_by_token(j->notebooks, token);

    if (e == NULL && s != NULL) {
        switch_kernel(j, s, k, token);
        return;
    }
    if (s != NULL) {
        s->token = 0;
        nbsession_body_free(&s->change);
    }
    if (e == NULL) /* the session was deleted while its new kernel started */
        pending_delete(j, k, token, NULL);
    if (r == NULL)
        return;
    if (e != NULL)
        answer_not_changed(r, e);
    else
        request_error(r, 404, "the session has gone meanwhile");
}

/* The id precedes the name; a null id was read as absent. */
static void change(struct request *r, struct jupyter *j, struct nbsession *s, struct kernel *k)
{
    const char *id = s->change.kernel_id;

    if (id != NULL) {
        k = sessions_find_kernel(j->sessions, &r->principal, id);
        if (k == NULL) {
            request_error(r, 400, "No such kernel: %.200s", id);
            nbsession_body_free(&s->change);
            return;
        }
        if (has_another_profile(r, k, s->change.kernel_profile)) {
            nbsession_body_free(&s->change);
            return;
        }
    } else if (s->change.kernel_name == NULL && s->change.kernel_profile != NULL) {
        request_error(r, 400, "kernel.profile: needs kernel.name, for it is of a new kernel");
        nbsession_body_free(&s->change);
        return;
    } else if (s->change.kernel_name != NULL) {
        autofree char *name = take_ptr(s->change.kernel_name),
                      *profile = take_ptr(s->change.kernel_profile);

        struct kernel_request q = { .spec_name = name,
                                    .profile = profile,
                                    .limits = s->change.limits,
                                    .times = s->change.times };
        s->token = r->token;
        start_kernel(r, j, s, q, on_new_kernel);
        return;
    }
    switch_kernel(j, s, k, r->token);
}

void nbsessions_patch(struct request *r, void *arg)
{
    struct jupyter *j = arg;
    struct kernel *k;
    struct nbsession *s = session_of(r, j, &k);
    struct nbsession_body body;
    struct err e = { 0 };

    if (s == NULL)
        return;
    if (nbsession_body_parse(r->body.p, r->body.n, &body, &e) != 0) {
        request_failed(r, &e);
        return;
    }
    if (s->token != 0) {
        nbsession_body_free(&body);
        request_error(r, 409, "the session is being changed");
        return;
    }
    if (nbsessions_room(j->notebooks, &r->principal, s, &body, &e) < 0) {
        nbsession_body_free(&body);
        request_failed(r, &e);
        return;
    }
    s->change = body;
    change(r, j, s, k);
}

/* ---- delete --------------------------------------------------------------- */

void nbsessions_delete(struct request *r, void *arg)
{
    struct jupyter *j = arg;
    struct nbsession *s = nbsessions_by_id(j->notebooks, &r->principal, r->params[0]);
    struct kernel *k = s != NULL ? kernel_of(j, s) : NULL;

    if (s == NULL) {
        request_error(r, 404, "Session not found: session_id='%.200s'", r->params[0]);
        return;
    }
    nbsessions_remove(j->notebooks, s);
    if (k == NULL) {
        request_error(r, 410, "Kernel deleted before session");
        return;
    }
    pending_delete(j, k, r->token, pending_answer_deleted);
}
