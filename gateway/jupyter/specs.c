/* specs - GET /api/kernelspecs and /api/kernelspecs/NAME. */
#include <string.h>

#include "err.h"
#include "httphead.h"
#include "httpurl.h"
#include "jsonwrite.h"
#include "jupyter.h"
#include "kernelspec.h"
#include "request.h"

enum { DOCUMENT_MAX = 16 * 1024 * 1024, USER_MAX = 4096 };

static int url_char(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           strchr("-._~", c) != NULL;
}

static int add_encoded(struct buf *b, const char *s)
{
    int rc = 0;

    for (; *s != '\0' && rc == 0; s++)
        rc = url_char((uint8_t)*s) ? buf_add(b, s, 1) : buf_addf(b, "%%%02X", (uint8_t)*s);
    return rc;
}

/* logo-64x64.png is "logo-64x64"; kernel.js and kernel.css keep their names; other
 * files of the directory are not told about. Returns the length of the key. */
static size_t resource_key(const char *file)
{
    const char *dot = strrchr(file, '.');

    if (strncmp(file, "logo-", 5) == 0)
        return dot != NULL ? (size_t)(dot - file) : strlen(file);
    if (strcmp(file, "kernel.js") == 0 || strcmp(file, "kernel.css") == 0)
        return strlen(file);
    return 0;
}

static void write_resources(struct jsonwrite *w, const struct jupyter *j,
                            const struct kernelspec *s)
{
    jsonwrite_object(w);
    for (char **file = s->resources; file != NULL && *file != NULL; file++) {
        size_t n = resource_key(*file);
        char key[256];
        autobuf struct buf url;

        buf_init(&url, USER_MAX);
        if (n == 0 || n >= sizeof key || buf_addf(&url, "%skernelspecs/", j->base) != 0 ||
            add_encoded(&url, s->name) != 0 || buf_add_str(&url, "/") != 0 ||
            add_encoded(&url, *file) != 0)
            continue;
        memcpy(key, *file, n);
        key[n] = '\0';
        jsonwrite_key(w, key);
        jsonwrite_string(w, buf_view(&url));
    }
    jsonwrite_end(w);
}

static void write_spec(struct jsonwrite *w, const struct jupyter *j, const char *name,
                       const struct kernelspec *s)
{
    autofree char *spec = json_dumps(s->spec, JSON_COMPACT);

    jsonwrite_object(w);
    jsonwrite_key(w, "name");
    jsonwrite_str(w, name);
    jsonwrite_key(w, "spec");
    if (spec != NULL)
        jsonwrite_raw(w, view_cstr(spec));
    else
        jsonwrite_null(w);
    jsonwrite_key(w, "resources");
    write_resources(w, j, s);
    jsonwrite_end(w);
}

/* name as the client asked for it: any case finds the spec. */
static void answer_one(struct request *r, const struct jupyter *j, const char *name)
{
    struct kernelspec *s = NULL;
    struct err e = { 0 };
    struct jsonwrite w;
    struct buf body;

    if (kernelspecs_find(j->specs, name, &s, &e) != 0) {
        request_failed(r, &e);
        return;
    }
    buf_init(&body, DOCUMENT_MAX);
    w = jsonwrite_to(&body);
    write_spec(&w, j, name, s);
    kernelspec_free(s);
    request_json(r, 200, &w, &body, NULL);
}

void specs_one(struct request *r, void *arg)
{
    autofree char *name = xstrdup(r->params[0]); /* the answer ends r */

    answer_one(r, arg, name);
}

/* jupyter_server's gateway client asks for one spec by ?user=NAME/SPEC when
 * KERNEL_USERNAME is set (jupyter-wire.md T5). */
static char *spec_in_user(const struct request *r)
{
    autobuf struct buf user;
    struct view v;
    const uint8_t *slash;

    buf_init(&user, USER_MAX);
    if (http_query_get(r->head->query, "user", &user, NULL) != 1)
        return NULL;
    v = buf_view(&user);
    slash = memchr(v.p, '/', v.n);
    if (slash == NULL || slash + 1 == v.p + v.n || memchr(v.p, '\0', v.n) != NULL)
        return NULL;
    return view_dup((struct view){ slash + 1, (size_t)(v.p + v.n - slash - 1) });
}

void specs_list(struct request *r, void *arg)
{
    const struct jupyter *j = arg;
    autofree char *one = spec_in_user(r);
    struct kernelspec **specs = NULL;
    struct err e = { 0 };
    struct jsonwrite w;
    struct buf body;
    int count;

    if (one != NULL) {
        answer_one(r, j, one);
        return;
    }
    count = kernelspecs_list(j->specs, &specs, &e);
    if (count < 0) {
        request_failed(r, &e);
        return;
    }
    buf_init(&body, DOCUMENT_MAX);
    w = jsonwrite_to(&body);
    jsonwrite_object(&w);
    jsonwrite_key(&w, "default");
    jsonwrite_str(&w, kernelspecs_default(j->specs));
    jsonwrite_key(&w, "kernelspecs");
    jsonwrite_object(&w);
    for (int i = 0; i < count; i++) {
        jsonwrite_key(&w, specs[i]->name);
        write_spec(&w, j, specs[i]->name, specs[i]);
        kernelspec_free(specs[i]);
    }
    free(specs);
    jsonwrite_end(&w);
    jsonwrite_end(&w);
    request_json(r, 200, &w, &body, NULL);
}
