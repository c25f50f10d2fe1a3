/*
 * document - the OpenAPI document of the HTTP routes (openapi.json, embedded), as JSON and
 * as YAML. The base URL and the version of this server go into it when it is asked for
 * the first time.
 */
#include <jansson.h>
#include <string.h>

#include "buf.h"
#include "cleanup.h"
#include "err.h"
#include "jupyter.h"
#include "request.h"

enum { TEXT_MAX = 1024 * 1024, DEEPEST = 64 };

extern const unsigned char openapi_text[];
extern const size_t openapi_text_size;

/* ---- YAML: blocks for what holds something, JSON's own spelling for the rest ---- */

static int is_plain(const char *key)
{
    static const char *const words[] = {
        "y", "n", "yes", "no", "on", "off", "true", "false", "null"
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(key, words[i]) == 0)
            return 0;
    return (key[0] < '0' || key[0] > '9') && key[0] != '\0' &&
           key[strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] ==
               '\0';
}

static int add_scalar(struct buf *out, json_t *value)
{
    autofree char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);

    return text != NULL ? buf_addf(out, " %s\n", text) : -1;
}

static int is_block(const json_t *value)
{
    return json_object_size(value) > 0 || json_array_size(value) > 0;
}

static int add_key(struct buf *out, const char *key)
{
    json_t *text = is_plain(key) ? NULL : json_string(key);
    autofree char *quoted = json_dumps(text, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

    json_decref(text);
    return buf_addf(out, "%s:", quoted != NULL ? quoted : key);
}

static int add_block(struct buf *out, json_t *value, int indent)
{
    const char *key;
    json_t *item;
    size_t i;
    int rc = indent < DEEPEST ? 0 : -1;

    json_object_foreach(value, key, item)
    {
        if (rc != 0 || (rc = buf_addf(out, "%*s", indent, "")) != 0 ||
            (rc = add_key(out, key)) != 0)
            return rc;
        rc = !is_block(item)               ? add_scalar(out, item)
             : buf_add_str(out, "\n") != 0 ? -1
                                           : add_block(out, item, indent + 2);
    }
    json_array_foreach(value, i, item)
    {
        if (rc != 0 || (rc = buf_addf(out, "%*s-", indent, "")) != 0)
            return rc;
        rc = !is_block(item)               ? add_scalar(out, item)
             : buf_add_str(out, "\n") != 0 ? -1
                                           : add_block(out, item, indent + 2);
    }
    return rc;
}

/* ---- making it ---- */

static json_t *load(const struct jupyter *j)
{
    json_t *document = json_loadb((const char *)openapi_text, openapi_text_size, 0, NULL);
    size_t n = strlen(j->base);

    check(document != NULL); /* the tests read it */
    json_object_set_new(json_object_get(document, "info"), "version", json_string(j->version));
    json_object_set_new(
        document, "servers",
        json_pack("[{s:s#}]", "url", n > 1 ? j->base : "/", n > 1 ? (int)n - 1 : 1));
    return document;
}

static char *make(const struct jupyter *j, int yaml)
{
    json_t *document = load(j);
    char *text = NULL;
    autobuf struct buf out;

    buf_init(&out, TEXT_MAX);
    if (!yaml)
        text = json_dumps(document, JSON_INDENT(1));
    else if (add_block(&out, document, 0) == 0)
        text = view_dup(buf_view(&out));
    json_decref(document);
    return text;
}

static void answer(struct request *r, struct jupyter *j, int yaml, const char *type)
{
    if (j->document[yaml] == NULL)
        j->document[yaml] = make(j, yaml);
    if (j->document[yaml] == NULL) {
        request_error(r, 503, "no memory");
        return;
    }
    request_content(r,
                    &(struct answer){ .status = 200,
                                      .type = type,
                                      .body = view_cstr(j->document[yaml]),
                                      .cache_control = "no-cache" },
                    0);
}

void document_json(struct request *r, void *arg)
{
    answer(r, arg, 0, "application/json");
}

void document_yaml(struct request *r, void *arg)
{
    answer(r, arg, 1, "text/x-yaml"); /* what Jupyter's servers call it */
}
