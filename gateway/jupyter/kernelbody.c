/* kernelbody - reads the body of POST /api/kernels (jupyter.h). */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "err.h"
#include "hex.h"
#include "jupyter.h"
#include "launchmsg.h"
#include "limitsjson.h"

enum { NAME_MAX_BYTES = 128, PATH_MAX_BYTES = 4096 };

static int read_string(json_t *document, const char *key, size_t max, const char **ret,
                       struct err *e)
{
    json_t *value = json_object_get(document, key);

    if (value == NULL || json_is_null(value))
        return 0;
    if (!json_is_string(value))
        return err_set(e, EINVAL, "%s must be a string", key);
    if (json_string_length(value) != strlen(json_string_value(value)))
        return err_set(e, EINVAL, "%s has a NUL character", key);
    if (json_string_length(value) > max)
        return err_set(e, EINVAL, "%s is longer than %zu bytes", key, max);
    *ret = json_string_value(value);
    return 0;
}

static int env_name_valid(const char *name)
{
    for (const char *p = name; *p != '\0'; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_' ||
              (p > name && *p >= '0' && *p <= '9')))
            return 0;
    return name[0] != '\0';
}

/* Appends "name=value"; total counts what all of them take. */
static int add_env(struct kernel_body *b, size_t *count, size_t *total, const char *name,
                   const json_t *value, struct err *e)
{
    size_t n = strlen(name), size;

    if (n > NAME_MAX_BYTES)
        return err_set(e, EINVAL, "env has a name longer than %d bytes", NAME_MAX_BYTES);
    if (!env_name_valid(name))
        return err_set(e, EINVAL, "env has a name that is not a variable's: '%s'", name);
    if (!json_is_string(value))
        return err_set(e, EINVAL, "env.%s must be a string", name);
    size = json_string_length(value);
    if (size != strlen(json_string_value(value)))
        return err_set(e, EINVAL, "env.%s has a NUL character", name);
    *total += n + size + 2;
    if (*total > LAUNCH_ENV_MAX)
        return err_set(e, EINVAL, "env is larger than %d bytes", LAUNCH_ENV_MAX);
    b->env[*count] = xcalloc(1, n + size + 2);
    memcpy(b->env[*count], name, n);
    b->env[*count][n] = '=';
    memcpy(b->env[*count] + n + 1, json_string_value(value), size);
    (*count)++;
    return 0;
}

static int read_env(json_t *document, struct kernel_body *b, struct err *e)
{
    json_t *env = json_object_get(document, "env"), *value;
    size_t count = 0, total = 0;
    const char *name;

    if (env == NULL || json_is_null(env))
        return 0;
    if (!json_is_object(env))
        return err_set(e, EINVAL, "env must be an object");
    if (json_object_size(env) > LAUNCH_STRINGS_MAX)
        return err_set(e, EINVAL, "env has more than %d variables", LAUNCH_STRINGS_MAX);
    b->env = xcalloc(json_object_size(env) + 1, sizeof *b->env);
    json_object_foreach(env, name, value)
    {
        int rc = add_env(b, &count, &total, name, value, e);

        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_fields(struct kernel_body *b, struct err *e)
{
    json_t *document = b->document;
    int rc;

    if (json_is_null(document))
        return 0;
    if (!json_is_object(document))
        return err_set(e, HC_EPARSE, "the body must be a JSON object");
    if ((rc = read_string(document, "name", NAME_MAX_BYTES, &b->name, e)) != 0 ||
        (rc = read_string(document, "path", PATH_MAX_BYTES, &b->path, e)) != 0 ||
        (rc = read_string(document, "kernel_id", NAME_MAX_BYTES, &b->kernel_id, e)) != 0 ||
        (rc = read_string(document, "profile", NAME_MAX_BYTES, &b->profile, e)) != 0)
        return rc;
    if (b->kernel_id != NULL && !uuid_valid(b->kernel_id, strlen(b->kernel_id)))
        return err_set(e, EINVAL, "kernel_id must be a UUID");
    if ((rc = limitsjson_read(document, &b->limits, &b->times, e)) != 0)
        return rc;
    return read_env(document, b, e);
}

int blank_text(const void *text, size_t n)
{
    const uint8_t *p = text;

    for (size_t i = 0; i < n; i++)
        if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r' && p[i] != '\n')
            return 0;
    return 1;
}

int kernel_body_parse(const void *body, size_t n, struct kernel_body *ret, struct err *e)
{
    json_error_t why;
    int rc;

    *ret = (struct kernel_body){ 0 };
    if (blank_text(body, n))
        return 0;
    /* JSON_ALLOW_NUL: a NUL is refused below, by the name of its field. jansson bounds
     * the nesting itself (2048). */
    ret->document = json_loadb(body, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (ret->document == NULL)
        return err_set(e, HC_EPARSE, "Invalid JSON in body of request: %s", why.text);
    rc = read_fields(ret, e);
    if (rc != 0)
        kernel_body_free(ret);
    return rc;
}

void kernel_body_free(struct kernel_body *b)
{
    for (char **env = b->env; env != NULL && *env != NULL; env++)
        free(*env);
    free(b->env);
    json_decref(b->document);
    *b = (struct kernel_body){ 0 };
}
