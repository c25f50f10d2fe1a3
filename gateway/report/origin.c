#include "origin.h"

#include <stdio.h>
#include <string.h>

#include "err.h"
#include "hex.h"
#include "httphead.h"
#include "logline.h"
#include "random.h"

static struct origin *present;

/* What may stand in every log and header without escapes. */
static int sane_id(struct view v)
{
    if (v.n == 0 || v.n > ORIGIN_REQUEST_MAX)
        return 0;
    for (size_t i = 0; i < v.n; i++) {
        uint8_t c = v.p[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              strchr("-_.:/+=@~", c) != NULL) ||
            c == '\0')
            return 0;
    }
    return 1;
}

struct origin *origin_of_request(const struct http_head *head, const char *peer)
{
    struct origin *o = xcalloc(1, sizeof *o);
    struct view id = head != NULL ? http_value(head, "x-request-id") : (struct view){ 0 };
    uint8_t random[TRACE_ID_BYTES + TRACE_SPAN_BYTES];

    o->holders = 1;
    snprintf(o->peer, sizeof o->peer, "%s", peer);
    random_bytes(random, sizeof random);
    if (sane_id(id) && http_field_count(head, "x-request-id") == 1)
        memcpy(o->request_id, id.p, id.n);
    else
        hex_encode(random, TRACE_ID_BYTES, o->request_id);
    /* Two of them are as good as none. */
    if (head != NULL && http_field_count(head, "traceparent") == 1)
        o->traced = traceparent_parse(http_value(head, "traceparent"), &o->trace);
    memcpy(o->span_id, random + TRACE_ID_BYTES, sizeof o->span_id);
    return o;
}

struct origin *origin_hold(struct origin *o)
{
    if (o != NULL)
        o->holders++;
    return o;
}

struct origin *origin_drop(struct origin *o)
{
    if (o != NULL && --o->holders == 0) {
        check(o != present);
        free(o);
    }
    return NULL;
}

void origin_principal(struct origin *o, const char *name)
{
    snprintf(o->principal, sizeof o->principal, "%s", name);
}

struct origin *origin_enter(struct origin *o)
{
    struct origin *before = present;

    present = o;
    return before;
}

struct origin *origin_now(void)
{
    return present;
}

static void add_hex(struct logline *l, const char *key, const uint8_t *p, size_t n)
{
    char text[2 * TRACE_ID_BYTES + 1];

    hex_encode(p, n, text);
    logline_string(l, key, view_cstr(text));
}

static void add_fields(const struct origin *o, const uint8_t *span_id, const uint8_t *parent,
                       struct logline *l)
{
    logline_string(l, "request_id", view_cstr(o->request_id));
    if (!o->traced)
        return;
    add_hex(l, "trace_id", o->trace.trace_id, TRACE_ID_BYTES);
    add_hex(l, "span_id", span_id, TRACE_SPAN_BYTES);
    add_hex(l, "parent_span_id", parent, TRACE_SPAN_BYTES);
}

void origin_fields(const struct origin *o, struct logline *l)
{
    if (o != NULL)
        add_fields(o, o->span_id, o->trace.span_id, l);
}

void origin_make_span(uint8_t out[TRACE_SPAN_BYTES])
{
    random_bytes(out, TRACE_SPAN_BYTES);
}

void origin_child_fields(const struct origin *o, const uint8_t span_id[TRACE_SPAN_BYTES],
                         struct logline *l)
{
    if (o != NULL)
        add_fields(o, span_id, o->span_id, l);
}
