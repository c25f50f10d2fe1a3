#include "httprules.h"

#include <string.h>

#include "err.h"
#include "httpchars.h"
#include "httphead.h"
#include "httpurl.h"

static int refuse(int *status, int code, struct err *e, const char *why)
{
    *status = code;
    return err_set(e, HC_EPARSE, "%s", why);
}

/*
 * Origin-form, or "*" for OPTIONS. RFC 9112 3.2.2 wants servers to take the
 * absolute form too; it names a second host beside Host, only proxies are sent it,
 * and this is not one.
 */
static int rule_target(struct http_head *head, int *status, struct err *e)
{
    struct view t = head->target;

    if (t.p[0] != '/' && !(view_equals(t, "*") && view_equals(head->method, "OPTIONS")))
        return refuse(status, 400, e, "the request target does not begin with '/'");

    const uint8_t *mark = memchr(t.p, '?', t.n);
    size_t n = mark != NULL ? (size_t)(mark - t.p) : t.n;

    head->path = (struct view){ t.p, n };
    head->query =
        mark != NULL ? (struct view){ mark + 1, t.n - n - 1 } : (struct view){ t.p + n, 0 };
    if (!http_percent_valid(head->path))
        return refuse(status, 400, e, "the path has a malformed percent escape");
    if (memchr(t.p, '\\', n) != NULL)
        return refuse(status, 400, e, "the path has a backslash");
    return 0;
}

/* Fields that decide about framing or access: two of them are two opinions. */
static int rule_once(struct http_head *head, int *status, struct err *e)
{
    static const char *const once[] = { "host", "content-length", "content-type", "authorization",
                                        "origin" };

    for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
        if (http_field_count(head, once[i]) > 1) {
            *status = 400;
            return err_set(e, HC_EPARSE, "more than one %s field", once[i]);
        }
    }
    return 0;
}

static int is_port(struct view v)
{
    unsigned port = 0;

    if (v.n == 0 || v.n > 5)
        return 0;
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] < '0' || v.p[i] > '9')
            return 0;
        port = port * 10 + (v.p[i] - '0');
    }
    return port <= 65535;
}

static int is_name_char(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/* The length of the host before ":port": a bracketed literal or a name of unreserved characters. */
static size_t host_name_end(struct view v)
{
    size_t i = 0;

    if (v.n > 0 && v.p[0] == '[') {
        for (i = 1; i < v.n && (http_hex_value(v.p[i]) >= 0 || v.p[i] == ':' || v.p[i] == '.'); i++)
            ;
        return i > 1 && i < v.n && v.p[i] == ']' ? i + 1 : 0;
    }
    while (i < v.n && is_name_char(v.p[i]))
        i++;
    return i;
}

static int rule_host(struct http_head *head, int *status, struct err *e)
{
    const struct http_field *field = http_field(head, "host");

    head->host = (struct view){ (const uint8_t *)"", 0 };
    if (field == NULL && head->minor == 0)
        return 0; /* HTTP/1.0 does not know Host (RFC 9112 3.2) */
    if (field == NULL)
        return refuse(status, 400, e, "no Host field");

    struct view v = field->value;
    size_t end = host_name_end(v);

    if (end == 0 || (end < v.n && v.p[end] != ':') ||
        (end < v.n && !is_port((struct view){ v.p + end + 1, v.n - end - 1 })))
        return refuse(status, 400, e, "malformed Host field");
    head->host = v;
    return 0;
}

/*
 * RFC 9112 6.1 and 6.3. Only one spelling of one coding is taken; the walk is
 * there to tell what is broken (400) from what is not implemented (501).
 */
static int rule_coding(struct http_head *head, int *status, struct err *e)
{
    struct http_list it = { 0 };
    struct view coding;
    unsigned count = 0, chunked = 0;
    int last = 0;

    if (head->minor == 0)
        return refuse(status, 400, e, "Transfer-Encoding in HTTP/1.0");
    if (http_field(head, "content-length") != NULL)
        return refuse(status, 400, e, "both Content-Length and Transfer-Encoding");
    if (http_field_count(head, "transfer-encoding") == 1 &&
        view_equals_nocase(http_value(head, "transfer-encoding"), "chunked")) {
        head->body = HTTP_BODY_CHUNKED;
        return 0;
    }
    while (http_list_next(head, "transfer-encoding", &it, &coding)) {
        const uint8_t *parameter = memchr(coding.p, ';', coding.n);

        if (parameter != NULL)
            coding.n = (size_t)(parameter - coding.p);
        while (coding.n > 0 && http_is_blank(coding.p[coding.n - 1]))
            coding.n--;
        if (!http_is_token(coding))
            return refuse(status, 400, e, "malformed Transfer-Encoding");
        last = view_equals_nocase(coding, "chunked");
        chunked += last ? 1 : 0;
        count++;
    }
    if (count == 0 || chunked > 1 || (chunked == 1 && (!last || count == 1)))
        return refuse(status, 400, e, "malformed Transfer-Encoding");
    return refuse(status, 501, e, "a Transfer-Encoding other than chunked");
}

static int rule_body(struct http_head *head, int *status, struct err *e)
{
    head->body = HTTP_BODY_NONE;
    head->length = 0;
    if (http_field(head, "transfer-encoding") != NULL)
        return rule_coding(head, status, e);

    const struct http_field *field = http_field(head, "content-length");
    uint64_t length = 0;
    int huge = 0;

    if (field == NULL)
        return 0;
    for (size_t i = 0; i < field->value.n; i++) {
        uint8_t c = field->value.p[i];

        if (c < '0' || c > '9')
            return refuse(status, 400, e, "Content-Length is not a number");
        if (length > (INT64_MAX - 9) / 10)
            huge = 1; /* still to be checked to its end: "999...9x" is malformed, not large */
        else
            length = length * 10 + (c - '0');
    }
    if (field->value.n == 0)
        return refuse(status, 400, e, "Content-Length is empty");
    if (huge)
        return refuse(status, 413, e, "Content-Length is beyond all limits");
    head->length = length;
    head->body = length > 0 ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
    return 0;
}

/* RFC 9110 10.1.1: an expectation in HTTP/1.0 is ignored; an unknown one is 417. */
static int rule_expect(struct http_head *head, int *status, struct err *e)
{
    struct http_list it = { 0 };
    struct view expectation;

    head->expect_continue = 0;
    if (head->minor == 0)
        return 0;
    while (http_list_next(head, "expect", &it, &expectation)) {
        if (!view_equals_nocase(expectation, "100-continue"))
            return refuse(status, 417, e, "an expectation other than 100-continue");
        head->expect_continue = head->body != HTTP_BODY_NONE;
    }
    return 0;
}

static int rule_connection(struct http_head *head, int *status, struct err *e)
{
    struct http_list it = { 0 };
    struct view option;
    int close = 0, keep = 0, upgrade = 0;

    while (http_list_next(head, "connection", &it, &option)) {
        if (!http_is_token(option))
            return refuse(status, 400, e, "malformed Connection field");
        close |= view_equals_nocase(option, "close");
        keep |= view_equals_nocase(option, "keep-alive");
        upgrade |= view_equals_nocase(option, "upgrade");
    }
    it = (struct http_list){ 0 };
    head->keep_alive = !close && (head->minor > 0 || keep);
    head->upgrade = upgrade && head->minor > 0 && http_list_next(head, "upgrade", &it, &option);
    return 0;
}

int http_rules_apply(struct http_head *head, int *status, struct err *e)
{
    static int (*const rules[])(struct http_head *, int *, struct err *) = {
        rule_target, rule_once, rule_host, rule_body, rule_expect, rule_connection,
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof rules / sizeof *rules; i++)
        rc = rules[i](head, status, e);
    return rc;
}
