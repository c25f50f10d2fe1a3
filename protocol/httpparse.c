/*
 * One state per element of the grammar. A state takes a run of the bytes it is
 * made of; the byte that ends the run goes to the state's handler, which checks
 * it and moves on. Every byte is looked at once, so the cut of the input can
 * neither cost time nor change a verdict.
 */
#include "httpparse.h"

#include <errno.h>
#include <string.h>

#include "err.h"
#include "httpchars.h"
#include "httprules.h"

enum state {
    START,    /* before the method; one empty line is passed over (RFC 9112 2.2) */
    START_LF, /* within that empty line */
    METHOD,
    TARGET,
    VERSION,
    LINE_LF, /* the request line's LF must follow */
    FIELD,   /* at the beginning of a field line */
    NAME,
    LEAD, /* blanks before the value */
    VALUE,
    VALUE_LF,
    END_LF, /* the LF of the empty line must follow */
    DONE,
    REFUSED,
};

struct slice { /* offsets in the text: it moves while it grows */
    uint32_t name, name_len, value, value_len;
};

struct httpparse {
    struct http_limits limits;
    enum state state;
    int status;
    int blank;       /* the one empty line was seen */
    struct buf text; /* the head as received so far */
    size_t mark;     /* where the present element begins in the text */
    size_t used;     /* bytes of the request line, then of the header block */
    size_t method_len, target, target_len;
    int minor;
    struct slice *slices; /* owned, field_size of them allocated */
    size_t field_count, field_size;
    struct http_field *fields; /* owned: the slices as views, once the head is complete */
    struct http_head head;
};

const struct http_limits http_limits_default = { .line = 8192, .headers = 32768, .fields = 100 };

#define LIMIT_MAX ((size_t)1 << 24) /* of a configuration: offsets have 32 bits */

struct httpparse *httpparse_new(const struct http_limits *limits)
{
    struct httpparse *p = xcalloc(1, sizeof *p);

    p->limits = limits != NULL ? *limits : http_limits_default;
    check(p->limits.line <= LIMIT_MAX && p->limits.headers <= LIMIT_MAX);
    buf_init(&p->text, p->limits.line + p->limits.headers + 4); /* two CRLF beside the limits */
    return p;
}

struct httpparse *httpparse_free(struct httpparse *p)
{
    if (p != NULL) {
        httpparse_reset(p);
        free(p);
    }
    return NULL;
}

void httpparse_reset(struct httpparse *p)
{
    struct http_limits limits = p->limits;
    size_t max = p->text.max;

    buf_release(&p->text);
    free(p->slices);
    free(p->fields);
    *p = (struct httpparse){ .limits = limits };
    buf_init(&p->text, max);
}

const struct http_head *httpparse_head(const struct httpparse *p)
{
    check(p->state == DONE);
    return &p->head;
}

int httpparse_status(const struct httpparse *p)
{
    return p->status;
}

int httpparse_started(const struct httpparse *p)
{
    return p->state != START && p->state != START_LF;
}

static int refuse(struct httpparse *p, int status, struct err *e, const char *why)
{
    p->state = REFUSED;
    p->status = status;
    return err_set(e, HC_EPARSE, "%s", why);
}

static int no_memory(struct httpparse *p, struct err *e)
{
    p->state = REFUSED;
    p->status = 503;
    return err_set(e, ENOMEM, "no memory for a request head");
}

/* Stores bytes of the head and counts them against the limit of their part. */
static int keep(struct httpparse *p, const uint8_t *in, size_t n, struct err *e)
{
    int line = p->state <= LINE_LF;
    size_t limit = line ? p->limits.line + 2 : p->limits.headers;

    if (n > limit - p->used)
        return line ? refuse(p, 414, e, "the request line is too long")
                    : refuse(p, 431, e, "the header fields are too large");
    if (buf_add(&p->text, in, n) < 0)
        return no_memory(p, e);
    p->used += n;
    return 0;
}

/* How many of the bytes stay within the element of the present state. */
static size_t run(const struct httpparse *p, const uint8_t *in, size_t n)
{
    size_t i = 0, room;

    switch (p->state) {
    case METHOD: /* one byte too many is enough to tell, however the input is cut */
        room = HTTP_METHOD_MAX + 1 - (buf_len(&p->text) - p->mark);
        n = n < room ? n : room;
        while (i < n && http_token_chars[in[i]])
            i++;
        break;
    case NAME:
        while (i < n && http_token_chars[in[i]])
            i++;
        break;
    case TARGET:
        while (i < n && http_is_target_char(in[i]))
            i++;
        break;
    case LEAD:
        while (i < n && http_is_blank(in[i]))
            i++;
        break;
    case VALUE:
        while (i < n && http_is_value_char(in[i]))
            i++;
        break;
    default:
        break;
    }
    return i;
}

/* The handlers: c is the last byte of the text. */
static size_t element_len(const struct httpparse *p)
{
    return buf_len(&p->text) - 1 - p->mark;
}

static int enter(struct httpparse *p, enum state state, size_t mark)
{
    p->state = state;
    p->mark = mark;
    return 0;
}

static int end_start(struct httpparse *p, uint8_t c, struct err *e)
{
    size_t at = buf_len(&p->text) - 1;

    if (c == '\r' && !p->blank)
        return enter(p, START_LF, at);
    if (!http_token_chars[c])
        return refuse(p, 400, e, "the request does not begin with a method");
    return enter(p, METHOD, at);
}

static int end_start_lf(struct httpparse *p, uint8_t c, struct err *e)
{
    if (c != '\n')
        return refuse(p, 400, e, "CR without LF");
    buf_clear(&p->text);
    p->used = 0;
    p->blank = 1;
    return enter(p, START, 0);
}

static int end_method(struct httpparse *p, uint8_t c, struct err *e)
{
    if (c != ' ')
        return refuse(p, 400, e, "malformed method");
    p->method_len = element_len(p);
    return enter(p, TARGET, buf_len(&p->text));
}

static int end_target(struct httpparse *p, uint8_t c, struct err *e)
{
    if (c == '\r' || c == '\n')
        return refuse(p, 400, e, "the request line has no version");
    if (c != ' ' || element_len(p) == 0)
        return refuse(p, 400, e, "malformed request target");
    p->target = p->mark;
    p->target_len = element_len(p);
    return enter(p, VERSION, buf_len(&p->text));
}

static int end_version(struct httpparse *p, uint8_t c, struct err *e)
{
    static const char form[] = "HTTP/d.d\r"; /* d: a digit */
    char want = form[element_len(p)];

    if (want == 'd' ? c < '0' || c > '9' : c != (uint8_t)want)
        return refuse(p, 400, e, "malformed version in the request line");
    if (want == '\r')
        p->state = LINE_LF;
    return 0;
}

static int end_line(struct httpparse *p, uint8_t c, struct err *e)
{
    const uint8_t *version = buf_view(&p->text).p + p->mark + 5; /* behind "HTTP/" */

    if (c != '\n')
        return refuse(p, 400, e, "CR without LF");
    if (version[0] != '1' || version[2] > '1')
        return refuse(p, 505, e, "neither HTTP/1.1 nor HTTP/1.0");
    p->minor = version[2] - '0';
    p->used = 0;
    return enter(p, FIELD, buf_len(&p->text));
}

static int field_begin(struct httpparse *p, struct err *e)
{
    if (p->field_count == p->limits.fields)
        return refuse(p, 431, e, "too many header fields");
    if (p->field_count == p->field_size) {
        size_t size = p->field_size > 0 ? p->field_size * 2 : 16;
        struct slice *slices = reallocarray(p->slices, size, sizeof *slices);

        if (slices == NULL)
            return no_memory(p, e);
        p->slices = slices;
        p->field_size = size;
    }
    return enter(p, NAME, buf_len(&p->text) - 1);
}

static int end_field(struct httpparse *p, uint8_t c, struct err *e)
{
    if (c == '\r')
        return enter(p, END_LF, 0);
    if (http_is_blank(c))
        return refuse(p, 400, e, "a header line begins with white space");
    if (!http_token_chars[c])
        return refuse(p, 400, e, "malformed field name");
    return field_begin(p, e);
}

static int end_name(struct httpparse *p, uint8_t c, struct err *e)
{
    if (http_is_blank(c))
        return refuse(p, 400, e, "white space between field name and colon");
    if (c != ':')
        return refuse(p, 400, e, "malformed field name");
    p->slices[p->field_count].name = (uint32_t)p->mark;
    p->slices[p->field_count].name_len = (uint32_t)element_len(p);
    return enter(p, LEAD, 0);
}

static int end_lead(struct httpparse *p, uint8_t c, struct err *e)
{
    struct slice *s = &p->slices[p->field_count];

    if (http_is_value_char(c))
        return enter(p, VALUE, buf_len(&p->text) - 1);
    if (c != '\r')
        return refuse(p, 400, e, "malformed field value");
    s->value = (uint32_t)buf_len(&p->text) - 1;
    s->value_len = 0;
    return enter(p, VALUE_LF, 0);
}

static int end_value(struct httpparse *p, uint8_t c, struct err *e)
{
    struct slice *s = &p->slices[p->field_count];
    const uint8_t *value = buf_view(&p->text).p + p->mark;
    size_t n = element_len(p);

    if (c != '\r')
        return refuse(p, 400, e, "malformed field value");
    while (n > 0 && http_is_blank(value[n - 1]))
        n--;
    s->value = (uint32_t)p->mark;
    s->value_len = (uint32_t)n;
    return enter(p, VALUE_LF, 0);
}

static int end_value_lf(struct httpparse *p, uint8_t c, struct err *e)
{
    if (c != '\n')
        return refuse(p, 400, e, "CR without LF");
    p->field_count++;
    return enter(p, FIELD, 0);
}

/* The text does not move any more: offsets become views. */
static int finish(struct httpparse *p, struct err *e)
{
    const uint8_t *text = buf_view(&p->text).p;
    struct http_head *head = &p->head;

    if (p->field_count > 0) {
        p->fields = calloc(p->field_count, sizeof *p->fields);
        if (p->fields == NULL)
            return no_memory(p, e);
    }
    for (size_t i = 0; i < p->field_count; i++) {
        const struct slice *s = &p->slices[i];

        p->fields[i].name = (struct view){ text + s->name, s->name_len };
        p->fields[i].value = (struct view){ text + s->value, s->value_len };
    }
    *head = (struct http_head){
        .method = { text, p->method_len },
        .target = { text + p->target, p->target_len },
        .minor = p->minor,
        .fields = p->fields,
        .field_count = p->field_count,
    };
    int rc = http_rules_apply(head, &p->status, e);
    p->state = rc < 0 ? REFUSED : DONE;
    return rc < 0 ? rc : 1;
}

static int end_head(struct httpparse *p, uint8_t c, struct err *e)
{
    return c == '\n' ? finish(p, e) : refuse(p, 400, e, "CR without LF");
}

/* Takes one run and the byte behind it. */
static int step(struct httpparse *p, const uint8_t *in, size_t len, size_t *used, struct err *e)
{
    static int (*const ends[])(struct httpparse *, uint8_t, struct err *) = {
        [START] = end_start,   [START_LF] = end_start_lf, [METHOD] = end_method,
        [TARGET] = end_target, [VERSION] = end_version,   [LINE_LF] = end_line,
        [FIELD] = end_field,   [NAME] = end_name,         [LEAD] = end_lead,
        [VALUE] = end_value,   [VALUE_LF] = end_value_lf, [END_LF] = end_head,
    };
    size_t n = run(p, in, len);
    int rc = n > 0 ? keep(p, in, n, e) : 0;

    *used += n;
    if (rc < 0)
        return rc;
    if (p->state == METHOD && buf_len(&p->text) - p->mark > HTTP_METHOD_MAX)
        return refuse(p, 501, e, "the method is too long");
    if (n == len)
        return 0;
    (*used)++;
    rc = keep(p, in + n, 1, e);
    return rc < 0 ? rc : ends[p->state](p, in[n], e);
}

int httpparse_feed(struct httpparse *p, const void *in, size_t len, size_t *used, struct err *e)
{
    size_t i = 0;
    int rc = 0;

    check(p->state < DONE);
    while (rc == 0 && i < len)
        rc = step(p, (const uint8_t *)in + i, len - i, &i, e);
    *used = i;
    return rc;
}
