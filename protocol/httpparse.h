/*
 * httpparse - strict incremental parser of HTTP/1.1 and 1.0 request heads
 * (RFC 9110, 9112). Rejects, never repairs: what two parsers could read in two
 * ways is a request smuggled past a proxy, into a service that runs code.
 *
 * Knowingly stricter than the RFCs: lines end in CRLF only, absolute-form and
 * authority-form targets are refused, Content-Length comes once and as digits,
 * HTTP/1.2 to 1.9 are 505, fields that decide about access come once.
 */
#ifndef HC_HTTPPARSE_H
#define HC_HTTPPARSE_H

#include "cleanup.h"
#include "httphead.h"

struct err;
struct httpparse; /* opaque: fields live in httpparse.c */

struct http_limits {
    size_t line;     /* request line without its CRLF; above: 414 */
    size_t headers;  /* all bytes behind the request line, last CRLF included; above: 431 */
    unsigned fields; /* above: 431 */
};
extern const struct http_limits http_limits_default; /* 8 KiB, 32 KiB, 100 */

/* NULL means the default limits. Caller owns the result, ends it with httpparse_free(). */
struct httpparse *httpparse_new(const struct http_limits *limits);
struct httpparse *httpparse_free(struct httpparse *p); /* accepts NULL, returns NULL */

/*
 * Takes up to len bytes; *used says how many. Returns 1 when the head is
 * complete (bytes behind *used are body, next request or WebSocket frames), 0
 * when more bytes are needed (all were taken), -HC_EPARSE (or -ENOMEM, 503) when
 * the request is refused: e has the reason, httpparse_status() the status to answer
 * with, and the connection must be closed after that answer. Cost is linear in the
 * bytes given, however they are cut. After 1 or a refusal: reset before the next feed.
 */
int httpparse_feed(struct httpparse *p, const void *in, size_t len, size_t *used,
                   struct err *e) MUST_CHECK;

/* Valid after feed returned 1; borrowed until reset or free. */
const struct http_head *httpparse_head(const struct httpparse *p);

/* 400, 413, 414, 417, 431, 501, 503 or 505 after a refusal; 0 otherwise. */
int httpparse_status(const struct httpparse *p);

/* 1 once a byte of a request was taken: tells a slow request from an idle connection. */
int httpparse_started(const struct httpparse *p);

/* Ready for the next request; gives the memory of the last one back. */
void httpparse_reset(struct httpparse *p);

#endif
