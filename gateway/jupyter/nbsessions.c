/* nbsessions - the table, the model and the bodies of notebook sessions. */
#include "nbsessions.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/random.h>

#include "err.h"
#include "jsonwrite.h"
#include "jupyter.h"
#include "limitsjson.h"
#include "nbsessions_own.h"
#include "sessions.h"

enum { TEXT_MAX = 4096 };

/* ---- bodies --------------------------------------------------------------- */

/* null counts as absent; label is what the error calls the field. */
static int take_string(json_t *from, const char *key, const char *label, char **ret, struct err *e)
{
    json_t *value = json_object_get(from, key);

    if (value == NULL || json_is_null(value) || *ret != NULL)
        return 0;
    if (!json_is_string(value) || json_string_length(value) != strlen(json_string_value(value)))
        return err_set(e, EINVAL, "%s must be a string", label);
    if (json_string_length(value) > TEXT_MAX)
        return err_set(e, EINVAL, "%s is longer than %d bytes", label, TEXT_MAX);
    *ret = xstrdup(json_string_value(value));
    return 0;
}

static int take_object(json_t *document, const char *key, json_t **ret, struct err *e)
{
    json_t *value = json_object_get(document, key);

    *ret = json_is_object(value) ? value : NULL;
    if (value != NULL && !json_is_null(value) && *ret == NULL)
        return err_set(e, EINVAL, "%s must be an object", key);
    return 0;
}

/* notebook.path and notebook.name are the old spelling and mean type "notebook". */
static int read_fields(json_t *document, struct nbsession_body *b, struct err *e)
{
    json_t *kernel, *notebook;
    int rc;

    if ((rc = take_object(document, "kernel", &kernel, e)) != 0 ||
        (rc = take_object(document, "notebook", &notebook, e)) != 0 ||
        (rc = take_string(document, "path", "path", &b->path, e)) != 0 ||
        (rc = take_string(document, "name", "name", &b->name, e)) != 0 ||
        (rc = take_string(document, "type", "type", &b->type, e)) != 0 ||
        (rc = take_string(kernel, "id", "kernel.id", &b->kernel_id, e)) != 0 ||
        (rc = take_string(kernel, "name", "kernel.name", &b->kernel_name, e)) != 0 ||
        (rc = take_string(kernel, "profile", "kernel.profile", &b->kernel_profile, e)) != 0 ||
        (rc = take_string(notebook, "path", "notebook.path", &b->path, e)) != 0 ||
        (rc = take_string(notebook, "name", "notebook.name", &b->name, e)) != 0)
        return rc;
    if (notebook != NULL && b->type == NULL)
        b->type = xstrdup("notebook");
    return limitsjson_read(kernel, &b->limits, &b->times, e);
}

int nbsession_body_parse(const void *body, size_t n, struct nbsession_body *ret, struct err *e)
{
    json_error_t why;
    json_t *document;
    int rc;

    *ret = (struct nbsession_body){ 0 };
    document = !blank_text(body, n) ? json_loadb(body, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why)
                                    : json_null();
    if (document == NULL)
        return err_set(e, HC_EPARSE, "Invalid JSON in body of request: %s", why.text);
    if (json_is_null(document))
        rc = err_set(e, HC_EPARSE, "No JSON data provided");
    else if (!json_is_object(document))
        rc = err_set(e, HC_EPARSE, "the body must be a JSON object");
    else
        rc = read_fields(document, ret, e);
    json_decref(document);
    if (rc != 0)
        nbsession_body_free(ret);
    return rc;
}

void nbsession_body_free(struct nbsession_body *b)
{
    free(b->path);
    free(b->name);
    free(b->type);
    free(b->kernel_id);
    free(b->kernel_name);
    free(b->kernel_profile);
    *b = (struct nbsession_body){ 0 };
}

/* ---- table ---------------------------------------------------------------- */

struct nbsessions *nbsessions_new(void)
{
    return xcalloc(1, sizeof(struct nbsessions));
}

struct nbsessions *nbsessions_free(struct nbsessions *n)
{
    while (n != NULL && n->first != NULL)
        nbsessions_remove(n, n->first);
    free(n);
    return NULL;
}

struct nbsession *nbsessions_first(struct nbsessions *n)
{
    return n->first;
}

static void take_text(char **to, char **from)
{
    if (*from == NULL)
        return;
    free(*to);
    *to = take_ptr(*from);
}

void nbsession_apply(struct nbsession *s)
{
    take_text(&s->path, &s->change.path);
    take_text(&s->name, &s->change.name);
    take_text(&s->type, &s->change.type);
    nbsession_body_free(&s->change);
}

static size_t length(const char *s)
{
    return s != NULL ? strlen(s) : 0;
}

/* Of s (NULL: of a new one) with what the body changes. */
static size_t text_with(const struct nbsession *s, const struct nbsession_body *b)
{
    return length(b->path != NULL || s == NULL ? b->path : s->path) +
           length(b->name != NULL || s == NULL ? b->name : s->name) +
           length(b->type != NULL || s == NULL ? b->type : s->type);
}

int nbsessions_room(const struct nbsessions *n, const struct principal *p,
                    const struct nbsession *s, const struct nbsession_body *body, struct err *e)
{
    size_t count = s == NULL, text = text_with(s, body);

    for (const struct nbsession *o = n->first; o != NULL; o = o->next) {
        if (strcmp(o->owner, p->name) != 0)
            continue;
        count++;
        /* A change under way counts before it is certain. */
        text += o != s ? text_with(o, &o->change) : 0;
    }
    if (count <= NBSESSIONS_MAX && text <= NBSESSIONS_TEXT_MAX)
        return 0;
    return err_set(e, HC_ELIMIT,
                   "Resource Limit: %d sessions, with %d bytes of paths and names in all",
                   NBSESSIONS_MAX, NBSESSIONS_TEXT_MAX);
}

void nbsessions_insert(struct nbsessions *n, struct nbsession *s)
{
    struct nbsession **at = &n->first;

    while (*at != NULL && (*at)->number <= s->number)
        at = &(*at)->next;
    s->next = *at;
    *at = s;
    n->count++;
    if (s->number > n->last_number)
        n->last_number = s->number;
}

int nbsessions_add(struct nbsessions *n, const struct principal *p, struct nbsession_body *body,
                   struct nbsession **ret, struct err *e)
{
    uint8_t random[16];
    struct nbsession *s;

    int rc = nbsessions_room(n, p, NULL, body, e);

    if (rc < 0)
        return rc;
    if (n->count >= NBSESSIONS_ALL_MAX)
        return err_set(e, HC_EFULL, "the server has no room for another session at this moment");
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return err_set(e, EIO, "no randomness for the id of a session");
    s = xcalloc(1, sizeof *s);
    uuid_format(random, s->id);
    memcpy(s->owner, p->name, sizeof s->owner);
    s->change = *body;
    *body = (struct nbsession_body){ 0 };
    nbsession_apply(s);
    if (s->name == NULL)
        s->name = xstrdup(""); /* clients want a string */
    s->number = n->last_number + 1;
    nbsessions_insert(n, s);
    *ret = s;
    return 0;
}

struct nbsession *nbsessions_after(struct nbsessions *n, uint64_t number)
{
    struct nbsession *s = n->first;

    while (s != NULL && s->number <= number)
        s = s->next;
    return s;
}

void nbsessions_remove(struct nbsessions *n, struct nbsession *s)
{
    struct nbsession **at = &n->first;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    n->count--;
    nbsession_body_free(&s->change);
    free(s->path);
    free(s->name);
    free(s->type);
    free(s);
}

struct nbsession *nbsessions_by_id(struct nbsessions *n, const struct principal *p, const char *id)
{
    for (struct nbsession *s = n->first; s != NULL; s = s->next)
        if (s->kernel_id[0] != '\0' && principal_sees(p, s->owner) && strcmp(s->id, id) == 0)
            return s;
    return NULL;
}

struct nbsession *nbsessions_by_path(struct nbsessions *n, const struct principal *p,
                                     const char *path)
{
    for (struct nbsession *s = n->first; s != NULL; s = s->next)
        if (strcmp(s->owner, p->name) == 0 && strcmp(s->path, path) == 0)
            return s;
    return NULL;
}

struct nbsession *nbsessions_by_token(struct nbsessions *n, uint64_t token)
{
    for (struct nbsession *s = n->first; s != NULL; s = s->next)
        if (s->token == token)
            return s;
    return NULL;
}

void nbsession_write(struct jsonwrite *w, const struct nbsession *s, const struct kernel *k)
{
    jsonwrite_object(w);
    jsonwrite_key(w, "id");
    jsonwrite_str(w, s->id);
    jsonwrite_key(w, "path");
    jsonwrite_str(w, s->path);
    jsonwrite_key(w, "name");
    jsonwrite_str(w, s->name);
    jsonwrite_key(w, "type");
    jsonwrite_str(w, s->type);
    jsonwrite_key(w, "kernel");
    kernel_write(w, k);
    jsonwrite_key(w, "notebook");
    jsonwrite_object(w);
    jsonwrite_key(w, "path");
    jsonwrite_str(w, s->path);
    jsonwrite_key(w, "name");
    jsonwrite_str(w, s->name);
    jsonwrite_end(w);
    jsonwrite_end(w);
}
