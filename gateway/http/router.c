/* router - see router.h. The tables are short: a walk over all routes per request. */
#include "router.h"

#include <stdio.h>
#include <string.h>

#include "err.h"
#include "httpurl.h"

enum {
    TABLES = 8,
    SEGMENTS = 16,       /* deeper paths have no route */
    TEXT_MAX = 3 * 8192, /* decoded segments, joined paths, NULs */
};

struct table {
    const struct route *routes; /* borrowed */
    size_t count;
    void *arg;
};

struct router {
    char *base; /* owned */
    struct table tables[TABLES];
    unsigned table_count;
};

/* The decoded segments of one path. */
struct segments {
    struct view at[SEGMENTS];
    unsigned count;
};

struct router *router_new(const char *base_url)
{
    struct router *r = xcalloc(1, sizeof *r);
    size_t n = strlen(base_url);

    check(base_url[0] == '/');
    r->base = xcalloc(1, n + 2);
    memcpy(r->base, base_url, n);
    if (r->base[n - 1] != '/')
        r->base[n] = '/';
    return r;
}

struct router *router_free(struct router *r)
{
    if (r == NULL)
        return NULL;
    free(r->base);
    free(r);
    return NULL;
}

const char *router_base(const struct router *r)
{
    return r->base;
}

void router_add(struct router *r, const struct route *routes, size_t count, void *arg)
{
    check(r->table_count < TABLES);
    r->tables[r->table_count++] = (struct table){ routes, count, arg };
}

static int id_char(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

int route_is_id(struct view text)
{
    unsigned groups = 1, in_group = 0;

    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '-') {
            if (in_group == 0)
                return 0;
            groups++;
            in_group = 0;
        } else if (id_char(text.p[i])) {
            in_group = 1;
        } else {
            return 0;
        }
    }
    return groups == 5 && in_group;
}

/* 1 when all segments decode to something that may stand in a name. */
static int split_path(struct view path, struct route_match *m, struct segments *ret)
{
    size_t ends[SEGMENTS], start = 0;
    struct view raw;

    ret->count = 0;
    while (http_path_next(&path, &raw)) {
        if (raw.n == 0 && path.n == 0 && ret->count > 0)
            break; /* the trailing slash */
        if (ret->count == SEGMENTS || http_segment_decode(raw, &m->text, NULL) != 0)
            return 0;
        ends[ret->count++] = buf_len(&m->text);
    }
    /* Views only now: the buffer may have moved while it grew. */
    for (unsigned i = 0; i < ret->count; i++) {
        ret->at[i] = (struct view){ buf_view(&m->text).p + start, ends[i] - start };
        start = ends[i];
    }
    return 1;
}

enum param { LITERAL, ID, NAME, PATH };

static enum param param_kind(struct view segment)
{
    if (view_equals(segment, "{id}"))
        return ID;
    if (view_equals(segment, "{name}"))
        return NAME;
    return view_equals(segment, "{path}") ? PATH : LITERAL;
}

static int segment_fits(enum param kind, struct view pattern, struct view segment)
{
    if (kind == LITERAL)
        return pattern.n == segment.n && memcmp(pattern.p, segment.p, pattern.n) == 0;
    if (kind == ID)
        return route_is_id(segment);
    return segment.n > 0;
}

static int pattern_fits(const char *pattern, const struct segments *s)
{
    struct view rest = view_cstr(pattern), segment;
    unsigned i = 0;

    while (http_path_next(&rest, &segment)) {
        enum param kind = param_kind(segment);

        do {
            if (i == s->count || !segment_fits(kind, segment, s->at[i]))
                return 0;
            i++;
        } while (kind == PATH && i < s->count);
    }
    return i == s->count;
}

/* Copies segment i, or all from i on joined by '/', and returns where it begins. */
static int add_param(struct buf *text, const struct segments *s, unsigned i, enum param kind,
                     size_t *ret)
{
    unsigned last = kind == PATH ? s->count : i + 1;
    autobuf struct buf joined;

    buf_init(&joined, TEXT_MAX);
    for (unsigned k = i; k < last; k++)
        if ((k > i && buf_add_str(&joined, "/") != 0) || buf_add_view(&joined, s->at[k]) != 0)
            return -1;
    *ret = buf_len(text);
    if (buf_add_view(text, buf_view(&joined)) != 0 || buf_add(text, "", 1) != 0)
        return -1;
    return 0;
}

static int fill_params(struct route_match *m, const struct segments *s)
{
    struct view rest = view_cstr(m->route->pattern), segment;
    size_t at[ROUTE_PARAMS] = { 0 };
    unsigned count = 0;
    autobuf struct buf text;

    buf_init(&text, TEXT_MAX);
    for (unsigned i = 0; http_path_next(&rest, &segment); i++) {
        enum param kind = param_kind(segment);

        if (kind == LITERAL)
            continue;
        check(count < ROUTE_PARAMS);
        if (add_param(&text, s, i, kind, &at[count++]) != 0)
            return -1;
    }
    buf_free(&m->text); /* the segments lay in it */
    m->text = text;
    buf_init(&text, 0);
    for (unsigned i = 0; i < count; i++)
        m->params[i] = (const char *)buf_view(&m->text).p + at[i];
    return 0;
}

static void add_allow(struct route_match *m, const char *method)
{
    size_t n = strlen(m->allow);

    snprintf(m->allow + n, sizeof m->allow - n, "%s%s", n > 0 ? ", " : "", method);
}

int router_match(const struct router *r, struct view method, struct view path,
                 struct route_match *m)
{
    const struct route *found = NULL;
    struct segments s;
    struct view rest;
    int below = http_path_under(path, view_cstr(r->base), &rest);

    if ((!below && !http_path_under(path, VIEW_STR("/"), &rest)) || !split_path(rest, m, &s))
        return 404;
    for (unsigned t = 0; t < r->table_count; t++) {
        for (size_t i = 0; i < r->tables[t].count; i++) {
            const struct route *route = &r->tables[t].routes[i];

            if ((!below && (route->flags & ROUTE_ROOT) == 0) || !pattern_fits(route->pattern, &s))
                continue;
            add_allow(m, route->method);
            if (found == NULL || view_equals(method, route->method)) {
                found = m->route = route;
                m->arg = r->tables[t].arg;
            }
        }
    }
    if (found == NULL)
        return 404;
    add_allow(m, "OPTIONS");
    if (!view_equals(method, found->method))
        return 405;
    return fill_params(m, &s) == 0 ? 200 : 404;
}

void route_match_init(struct route_match *m)
{
    *m = (struct route_match){ 0 };
    buf_init(&m->text, TEXT_MAX);
}

void route_match_clear(struct route_match *m)
{
    buf_free(&m->text);
    route_match_init(m);
}
