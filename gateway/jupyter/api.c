/* api - what a client asks about the server itself: version, status, who am I. */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "httphead.h"
#include "httpurl.h"
#include "jsonwrite.h"
#include "jupyter.h"
#include "kernel.h"
#include "request.h"
#include "sessions.h"
#include "timestamp.h"

enum { DOCUMENT_MAX = 1024 * 1024, PERMISSIONS_MAX = 8192 };

void api_version(struct request *r, void *arg)
{
    const struct jupyter *j = arg;
    struct jsonwrite w;
    struct buf body;

    buf_init(&body, DOCUMENT_MAX);
    w = jsonwrite_to(&body);
    jsonwrite_object(&w);
    jsonwrite_key(&w, "version");
    jsonwrite_str(&w, j->version);
    jsonwrite_end(&w);
    request_json(r, 200, &w, &body, NULL);
}

void api_status(struct request *r, void *arg)
{
    const struct jupyter *j = arg;
    size_t count = sessions_kernels(j->sessions, &r->principal, NULL, 0);
    autofree struct kernel **kernels = xcalloc(count + 1, sizeof *kernels);
    uint64_t last_us = j->started_us, connections = 0;
    char last[TIMESTAMP_TEXT], started[TIMESTAMP_TEXT];
    struct jsonwrite w;
    struct buf body;

    sessions_kernels(j->sessions, &r->principal, kernels, count);
    for (size_t i = 0; i < count; i++) {
        struct kernel_model m;

        kernel_model(kernels[i], &m);
        connections += m.connections;
        if (m.last_activity_us > last_us)
            last_us = m.last_activity_us;
    }
    timestamp_format(last_us, last);
    timestamp_format(j->started_us, started);
    buf_init(&body, DOCUMENT_MAX);
    w = jsonwrite_to(&body);
    jsonwrite_object(&w);
    jsonwrite_key(&w, "connections");
    jsonwrite_uint(&w, connections);
    jsonwrite_key(&w, "kernels");
    jsonwrite_uint(&w, count);
    jsonwrite_key(&w, "last_activity");
    jsonwrite_str(&w, last);
    jsonwrite_key(&w, "started");
    jsonwrite_str(&w, started);
    jsonwrite_end(&w);
    request_json(r, 200, &w, &body, NULL);
}

/* Of what was asked only "read" is granted. */
static void grant_reading(json_t *asked)
{
    const char *resource;
    json_t *actions;

    json_object_foreach(asked, resource, actions)
    {
        for (size_t i = json_array_size(actions); i-- > 0;) {
            if (strcmp(json_string_value(json_array_get(actions, i)), "read") != 0)
                json_array_remove(actions, i);
        }
    }
}

/* ?permissions={"resource": ["action", ...]}: the answer is what was asked, as far as it is granted:
 * an owner may do all, an observer reads. Caller decrefs the result. */
static int asked_permissions(struct view query, int reads_only, json_t **ret, struct err *e)
{
    autobuf struct buf text;
    json_error_t why;
    const char *resource;
    json_t *actions, *action;
    size_t i;
    int rc;

    buf_init(&text, PERMISSIONS_MAX);
    rc = http_query_get(query, "permissions", &text, e);
    if (rc < 0)
        return rc;
    if (rc == 0 || buf_len(&text) == 0) {
        *ret = json_object();
        return *ret != NULL ? 0 : err_set(e, ENOMEM, "no memory");
    }
    *ret = json_loadb((const char *)buf_view(&text).p, buf_len(&text), 0, &why);
    rc = json_is_object(*ret) ? 0 : -1;
    json_object_foreach(*ret, resource, actions)
    {
        rc = json_is_array(actions) ? rc : -1;
        json_array_foreach(actions, i, action) rc = json_is_string(action) ? rc : -1;
    }
    if (rc == 0 && reads_only)
        grant_reading(*ret);
    if (rc == 0)
        return 0;
    json_decref(*ret);
    *ret = NULL;
    return err_set(e, EINVAL, "permissions should be a JSON dict of {\"resource\": [\"action\",]}");
}

void api_me(struct request *r, void *arg)
{
    struct err e = { 0 };
    json_t *permissions = NULL, *document;
    const char *name = r->principal.name, *username = name;
    char initials[3];
    char *text;

    (void)arg;
    if (asked_permissions(r->head->query, r->principal.role == ROLE_OBSERVER, &permissions, &e) !=
        0) {
        request_failed(r, &e);
        return;
    }
    /* The one token of a server is nobody in particular. */
    if (strcmp(name, PRINCIPAL_DEFAULT) == 0) {
        username = "anonymous";
        name = "Anonymous";
    }
    /* Of the identity a client may change nothing here; jupyter_server tells it in this place. */
    json_object_set_new(permissions, "updatable_fields", json_array());
    snprintf(initials, sizeof initials, "%.2s", name);
    initials[0] = (char)toupper((unsigned char)initials[0]);
    document = json_pack("{s:{s:s,s:s,s:s,s:s,s:n,s:n},s:o}", "identity", "username", username,
                         "name", name, "display_name", name, "initials", initials, "avatar_url",
                         "color", "permissions", permissions);
    text = document != NULL ? json_dumps(document, JSON_COMPACT) : NULL;
    json_decref(document);
    if (text == NULL) {
        request_error(r, 500, "no memory");
        return;
    }
    request_content(
        r, &(struct answer){ .status = 200, .type = "application/json", .body = view_cstr(text) },
        0);
    free(text);
}
