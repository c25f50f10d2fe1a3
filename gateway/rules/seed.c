#include "seed.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "err.h"

struct seed *seed_use(struct seed *s)
{
    if (s != NULL)
        s->users++;
    return s;
}

struct seed *seed_drop(struct seed *s)
{
    if (s == NULL || --s->users > 0)
        return NULL;
    for (size_t i = 0; i < s->count; i++)
        free(s->cells[i].code);
    free(s->cells);
    free(s->kernel);
    free(s);
    return NULL;
}

/* A NUL would end the code early, and no kernel takes one anyway. */
static int add_text(struct buf *code, const json_t *text)
{
    size_t n = json_string_length(text);

    if (!json_is_string(text) || strlen(json_string_value(text)) != n)
        return -EINVAL;
    return buf_add(code, json_string_value(text), n);
}

/* `source` is one string, or a list of strings that are put together as they are. */
static char *read_source(const json_t *source)
{
    autobuf struct buf code = { 0 };
    size_t i;
    json_t *line;

    buf_init(&code, SEED_BYTES_MAX);
    if (!json_is_array(source))
        return add_text(&code, source) == 0 ? view_dup(buf_view(&code)) : NULL;
    json_array_foreach(source, i, line)
    {
        if (add_text(&code, line) < 0)
            return NULL;
    }
    return view_dup(buf_view(&code));
}

static int read_cell(struct seed *s, const json_t *cell, unsigned number, struct err *e)
{
    const char *type = json_string_value(json_object_get(cell, "cell_type"));

    if (type == NULL)
        return err_set(e, EINVAL, "cell %u has no cell_type", number);
    if (strcmp(type, "markdown") == 0 || strcmp(type, "raw") == 0)
        return 0;
    if (strcmp(type, "code") != 0)
        return err_set(e, EINVAL, "cell %u has the unknown cell_type '%.32s'", number, type);
    char *code = read_source(json_object_get(cell, "source"));
    if (code == NULL)
        return err_set(e, EINVAL, "cell %u: source is neither a string nor a list of strings",
                       number);
    s->cells[s->count++] = (struct seed_cell){ code, number };
    return 0;
}

static int read_notebook(struct seed *s, const json_t *document, struct err *e)
{
    const json_t *format = json_object_get(document, "nbformat");
    const json_t *cells = json_object_get(document, "cells");
    const json_t *metadata = json_object_get(document, "metadata");
    const char *kernel =
        json_string_value(json_object_get(json_object_get(metadata, "kernelspec"), "name"));
    size_t i;
    json_t *cell;

    if (!json_is_object(document) || !json_is_integer(format))
        return err_set(e, EINVAL, "this is no notebook: it has no nbformat");
    if (json_integer_value(format) != 4)
        return err_set(e, EINVAL, "nbformat is %lld, not 4; convert it with `jupyter nbconvert`",
                       (long long)json_integer_value(format));
    if (!json_is_array(cells))
        return err_set(e, EINVAL, "the notebook has no list of cells");
    if (json_array_size(cells) > SEED_CELLS_MAX)
        return err_set(e, EINVAL, "the notebook has more than %d cells", SEED_CELLS_MAX);
    s->kernel = xstrdup(kernel != NULL ? kernel : "");
    s->cells = xcalloc(json_array_size(cells) + 1, sizeof *s->cells);
    json_array_foreach(cells, i, cell)
    {
        int rc = read_cell(s, cell, (unsigned)i + 1, e);

        if (rc < 0)
            return rc;
    }
    return 0;
}

int seed_parse(struct view notebook, struct seed **ret, struct err *e)
{
    json_error_t why;
    json_t *document;
    struct seed *s;

    if (notebook.n > SEED_BYTES_MAX)
        return err_set(e, EINVAL, "the notebook has more than %d bytes", SEED_BYTES_MAX);
    document = json_loadb((const char *)notebook.p, notebook.n, JSON_ALLOW_NUL, &why);
    if (document == NULL)
        return err_set(e, EINVAL, "this is no notebook: line %d: %s", why.line, why.text);
    s = xcalloc(1, sizeof *s);
    s->users = 1;
    int rc = read_notebook(s, document, e);
    json_decref(document);
    if (rc < 0)
        seed_drop(s);
    else
        *ret = s;
    return rc;
}
