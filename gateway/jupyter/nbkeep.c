/* nbkeep - notebook sessions as their kernel keeps them for the next gateway. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "jsonwrite.h"
#include "kernel.h"
#include "log.h"
#include "nbsessions_own.h"
#include "sessions.h"

static int write_one(struct buf *out, const struct nbsession *s, struct err *e)
{
    struct jsonwrite w = jsonwrite_to(out);

    jsonwrite_object(&w);
    jsonwrite_key(&w, "id");
    jsonwrite_str(&w, s->id);
    jsonwrite_key(&w, "number");
    jsonwrite_uint(&w, s->number);
    jsonwrite_key(&w, "path");
    jsonwrite_str(&w, s->path);
    jsonwrite_key(&w, "name");
    jsonwrite_str(&w, s->name);
    jsonwrite_key(&w, "type");
    jsonwrite_str(&w, s->type);
    jsonwrite_end(&w);
    return jsonwrite_finish(&w, e);
}

/* Appends to the array in out when there is room for it and the bracket. */
static int append(struct buf *out, const struct nbsession *s, struct err *e)
{
    autobuf struct buf one;

    /* Written only when it may fit: there may be thousands that do not. */
    if (buf_len(out) + strlen(s->path) + strlen(s->name) + strlen(s->type) >= NOTE_KEPT_MAX)
        return err_set(e, EMSGSIZE, "%d bytes are full", NOTE_KEPT_MAX);
    buf_init(&one, NOTE_KEPT_MAX);
    int rc = write_one(&one, s, e);
    if (rc == 0 && buf_len(out) + 1 + buf_len(&one) + 1 > NOTE_KEPT_MAX)
        rc = err_set(e, EMSGSIZE, "%d bytes are full", NOTE_KEPT_MAX);
    if (rc == 0 && buf_len(out) > 1)
        rc = buf_add(out, ",", 1);
    if (rc == 0)
        rc = buf_add(out, buf_view(&one).p, buf_len(&one));
    return rc;
}

void nbsessions_keep(struct nbsessions *n, const struct principal *p, struct kernel *k)
{
    static struct log_limit limit;
    autobuf struct buf out;
    struct kernel_model m;
    struct err e = { 0 };

    kernel_model(k, &m);
    buf_init(&out, NOTE_KEPT_MAX);
    int rc = buf_add(&out, "[", 1);
    for (const struct nbsession *s = n->first; s != NULL && rc == 0; s = s->next) {
        if (strcmp(s->kernel_id, m.id) != 0 || strcmp(s->owner, p->name) != 0)
            continue;
        if (append(&out, s, &e) < 0 && log_allowed(&limit, 5))
            log_warn("session_not_kept", "kernel=%s session=%s error=\"%s\"", m.id, s->id, e.msg);
    }
    if (rc == 0)
        rc = buf_add(&out, "]", 1);
    if (rc == 0)
        rc = kernel_keep(k, buf_view(&out), &e);
    if (rc < 0)
        log_warn("session_not_kept", "kernel=%s error=\"%s\"", m.id, e.msg);
}

/* 1 when all of it is there and a session can be made of it. */
static int restore_one(struct nbsessions *n, const struct principal *p, const char *kernel_id,
                       json_t *from)
{
    const char *id, *path, *name, *type;
    json_int_t number;

    if (json_unpack(from, "{s:s, s:I, s:s, s:s, s:s}", "id", &id, "number", &number, "path", &path,
                    "name", &name, "type", &type) != 0 ||
        !uuid_valid(id, strlen(id)) || number <= 0 || n->count >= NBSESSIONS_ALL_MAX)
        return 0;
    struct nbsession *s = xcalloc(1, sizeof *s);
    memcpy(s->id, id, sizeof s->id);
    memcpy(s->owner, p->name, sizeof s->owner);
    snprintf(s->kernel_id, sizeof s->kernel_id, "%s", kernel_id);
    s->path = xstrdup(path);
    s->name = xstrdup(name);
    s->type = xstrdup(type);
    s->number = (uint64_t)number;
    nbsessions_insert(n, s);
    return 1;
}

void nbsessions_restore(struct nbsessions *n, const struct principal *p, const struct kernel *k)
{
    struct view kept = kernel_kept(k);
    struct kernel_model m;
    json_t *one;
    size_t i;

    if (kept.n == 0)
        return;
    kernel_model(k, &m);
    json_t *all = json_loadb((const char *)kept.p, kept.n, 0, NULL);
    json_array_foreach(all, i, one)
    {
        if (!restore_one(n, p, m.id, one))
            log_warn("session_not_restored", "kernel=%s", m.id);
    }
    json_decref(all);
}
