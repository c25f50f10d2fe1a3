/* answer - writes responses (request.h): head, error model, the table of statuses. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "condition.h"
#include "err.h"
#include "httpconn.h"
#include "httphead.h"
#include "jsonwrite.h"
#include "server.h"
#include "websocket.h"

enum { HEAD_MAX = 16 * 1024, ERROR_MAX = 8 * 1024, RETRY_S = 1 };

static struct httpconn *httpconn_of(struct request *r)
{
    return (struct httpconn *)((char *)r - offsetof(struct httpconn, request));
}

static int write_head(struct httpconn *h, const struct answer *a, int close, struct buf *out)
{
    int bare = a->status == 204 || a->status == 304;

    if (buf_addf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n", a->status, http_reason(a->status),
                 server_date()) != 0)
        return -1;
    if (!bare && buf_addf(out, "Content-Length: %zu\r\n", a->body.n) != 0)
        return -1;
    if (!bare && a->type != NULL && buf_addf(out, "Content-Type: %s\r\n", a->type) != 0)
        return -1;
    if (buf_addf(out, "Cache-Control: %s\r\n",
                 a->cache_control != NULL ? a->cache_control : "no-store") != 0)
        return -1;
    if (buf_addf(out, "X-Request-Id: %s\r\n", h->request.origin->request_id) != 0)
        return -1;
    if (close ? buf_add_str(out, "Connection: close\r\n") != 0
              : (!h->minor && buf_add_str(out, "Connection: keep-alive\r\n") != 0))
        return -1;
    if (buf_add_str(out, h->server->headers) != 0 ||
        (a->headers != NULL && buf_add_str(out, a->headers) != 0))
        return -1;
    return buf_add_str(out, "\r\n");
}

void request_answer(struct request *r, const struct answer *a)
{
    struct httpconn *h = httpconn_of(r);
    int close = a->close || !h->keep || h->server->stopping;
    struct view segments[2];
    autobuf struct buf head;

    accesslog_answered(h, a->status, h->head_only || a->status == 204 ? 0 : a->body.n);
    buf_init(&head, HEAD_MAX);
    if (write_head(h, a, close, &head) != 0) {
        conn_abort(h->conn); /* no memory */
        httpconn_answered(h, 1);
        return;
    }
    segments[0] = buf_view(&head);
    segments[1] = a->body;
    conn_write(h->conn, segments, a->body.n > 0 && !h->head_only && a->status != 204 ? 2 : 1);
    if (server_bound_output(h->server, h->conn))
        close = 1;
    httpconn_answered(h, close);
}

/* Returns the status; narrows the body to the part that is asked for. */
static int narrow(const struct http_head *head, const char *etag, struct view *body, char *line,
                  size_t line_size)
{
    size_t size = body->n, offset, length;
    enum range asked = range_asked(head, size, etag, &offset, &length);

    if (asked == RANGE_NONE)
        return 200;
    if (asked == RANGE_UNSATISFIABLE) {
        snprintf(line, line_size, "Content-Range: bytes */%zu\r\n", size);
        return 416;
    }
    snprintf(line, line_size, "Content-Range: bytes %zu-%zu/%zu\r\n", offset, offset + length - 1,
             size);
    *body = (struct view){ body->p + offset, length };
    return 206;
}

void request_content(struct request *r, const struct answer *a, int ranges)
{
    struct answer with = *a;
    char etag[ETAG_TEXT] = "", line[80] = "", headers[200];

    check(a->status == 200 && a->headers == NULL);
    if (!etag_of(a->body, etag)) {
        request_answer(r, a);
        return;
    }
    if (etag_known(r->head, etag))
        with.status = 304;
    else if (ranges && view_equals(r->head->method, "GET"))
        with.status = narrow(r->head, etag, &with.body, line, sizeof line);
    snprintf(headers, sizeof headers, "ETag: %s\r\n%s%s", etag,
             ranges ? "Accept-Ranges: bytes\r\n" : "", line);
    if (with.status == 416)
        with.body = VIEW_STR("{\"reason\":\"Range Not Satisfiable\",\"message\":\"the file ends "
                             "before that range\"}");
    if (with.status == 304)
        with.body = (struct view){ 0 };
    if (with.status == 416)
        with.type = "application/json";
    with.headers = headers;
    request_answer(r, &with);
}

void request_last(struct request *r)
{
    httpconn_of(r)->keep = 0;
}

void request_empty(struct request *r, int status)
{
    request_answer(r, &(struct answer){ .status = status });
}

void request_json(struct request *r, int status, struct jsonwrite *w, struct buf *body,
                  const char *location)
{
    struct err e = { 0 };
    char headers[1024] = "";

    if (jsonwrite_finish(w, &e) != 0) {
        buf_free(body);
        request_failed(r, &e);
        return;
    }
    if (status == 200 && location == NULL && view_equals(r->head->method, "GET")) {
        request_content(
            r,
            &(struct answer){ .status = 200, .type = "application/json", .body = buf_view(body) },
            0);
        buf_free(body);
        return;
    }
    if (location != NULL)
        snprintf(headers, sizeof headers, "Location: %s\r\n", location);
    request_answer(r, &(struct answer){ .status = status,
                                        .type = "application/json",
                                        .body = buf_view(body),
                                        .headers = headers });
    buf_free(body);
}

static void answer_error(struct request *r, int status, const char *message, unsigned retry_s)
{
    struct httpconn *h = httpconn_of(r);
    char headers[sizeof h->match.allow + 32] = "";
    struct jsonwrite w;
    autobuf struct buf body;

    buf_init(&body, ERROR_MAX);
    w = jsonwrite_to(&body);
    jsonwrite_object(&w);
    jsonwrite_key(&w, "reason");
    jsonwrite_str(&w, http_reason(status));
    jsonwrite_key(&w, "message");
    jsonwrite_str(&w, message);
    if (status == 503) {
        jsonwrite_key(&w, "retry_after");
        jsonwrite_uint(&w, retry_s);
    }
    jsonwrite_end(&w);
    if (jsonwrite_finish(&w, NULL) != 0)
        buf_clear(&body);
    if (status == 405)
        snprintf(headers, sizeof headers, "Allow: %s\r\n", h->match.allow);
    else if (status == 426)
        snprintf(headers, sizeof headers, "Sec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n");
    else if (status == 503)
        snprintf(headers, sizeof headers, "Retry-After: %u\r\n", retry_s);
    request_answer(r, &(struct answer){ .status = status,
                                        .type = "application/json",
                                        .body = buf_view(&body),
                                        .headers = headers });
}

void request_error(struct request *r, int status, const char *fmt, ...)
{
    char message[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    answer_error(r, status, message, RETRY_S);
}

void request_busy(struct request *r, unsigned seconds, const char *message)
{
    answer_error(r, 503, message, seconds);
}

int status_of_error(int code)
{
    static const struct {
        int code, status;
    } table[] = {
        { HC_EPARSE, 400 }, { EINVAL, 400 },    { HC_EAUTH, 401 },  { EACCES, 403 },
        { EPERM, 403 },     { HC_ELIMIT, 403 }, { ENOENT, 404 },    { HC_ESTATE, 409 },
        { EEXIST, 409 },    { HC_EGONE, 410 },  { HC_EAUDIT, 503 }, { EMSGSIZE, 413 },
        { EBUSY, 503 },     { ECANCELED, 503 }, { HC_EFULL, 503 },  { HC_EDENIED, 403 },
        { ETIMEDOUT, 504 },
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].code == code)
            return table[i].status;
    return err_is_shortage(code) ? 503 : 500;
}

void request_failed(struct request *r, const struct err *e)
{
    answer_error(r, status_of_error(e->code), e->msg, RETRY_S);
}

struct websocket *request_upgrade(struct request *r, const char *accept, const char *protocol,
                                  const struct websocket_ops *ops, void *arg)
{
    struct httpconn *h = httpconn_of(r);
    struct websocket *w;
    char head[512];
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
                     "X-Request-Id: %s\r\n%s%s%s\r\n",
                     accept, h->request.origin->request_id,
                     protocol != NULL ? "Sec-WebSocket-Protocol: " : "",
                     protocol != NULL ? protocol : "", protocol != NULL ? "\r\n" : "");
    struct view segment = { (const uint8_t *)head, (size_t)n };

    check(n > 0 && (size_t)n < sizeof head && h->state == HTTPCONN_HANDLER);
    conn_write(h->conn, &segment, 1);
    w = websocket_new(h->server, h->conn, h->tenant, ops, arg);
    accesslog_opened(h, websocket_account(w));
    websocket_set_owner(w, &r->principal, &r->proof);
    httpconn_upgraded(h);
    return w;
}
