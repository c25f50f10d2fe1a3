/*
 * httphead - a parsed HTTP/1.x request head and what one asks of it: fields by
 * name, comma lists that span several fields. Filled in by httpparse.
 */
#ifndef HC_HTTPHEAD_H
#define HC_HTTPHEAD_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct http_field {
    struct view name;  /* as received; compare without case */
    struct view value; /* without the white space around it; may be empty */
};

enum http_body {
    HTTP_BODY_NONE,    /* no body follows (also for Content-Length: 0) */
    HTTP_BODY_LENGTH,  /* exactly `length` bytes follow, length > 0 */
    HTTP_BODY_CHUNKED, /* see httpchunk.h */
};

/* All views are borrowed from the parser. */
struct http_head {
    struct view method; /* a token, case-sensitive, at most HTTP_METHOD_MAX bytes */
    struct view target; /* as received: begins with '/', or is "*" for OPTIONS */
    struct view path;   /* raw: every '%' is followed by two hexadecimal digits */
    struct view query;  /* raw, behind the '?'; free-form, printable ASCII */
    int minor;          /* 1 or 0: HTTP/1.<minor> */

    const struct http_field *fields; /* in the order received */
    size_t field_count;
    struct view host; /* "name", "name:port", "[v6]:port"; empty only in HTTP/1.0 without Host */

    enum http_body body;
    uint64_t length; /* of the body when HTTP_BODY_LENGTH, else 0; at most INT64_MAX */

    int keep_alive;      /* the client lets the connection live after the answer */
    int expect_continue; /* a body follows, but not before "100 Continue" */
    int upgrade;         /* HTTP/1.1 with Connection: upgrade and an Upgrade field */
};

#define HTTP_METHOD_MAX 32

/* The first field of that name, or NULL. The parser has already refused heads
 * with two of Host, Content-Length, Content-Type, Authorization or Origin. */
const struct http_field *http_field(const struct http_head *head, const char *name);
size_t http_field_count(const struct http_head *head, const char *name);

/* Its value, or the empty view: where absent and empty mean the same. */
struct view http_value(const struct http_head *head, const char *name);

/*
 * Walks the elements of a comma list over all fields of that name in order;
 * white space is trimmed and empty elements are skipped (RFC 9110 5.6.1). A
 * comma within a quoted string does not separate. Start with a zeroed iterator:
 *
 *     struct http_list it = { 0 };
 *     while (http_list_next(head, "upgrade", &it, &element)) ...
 */
struct http_list {
    size_t field, at; /* the field and the offset in its value to go on from */
};
int http_list_next(const struct http_head *head, const char *name, struct http_list *it,
                   struct view *element);

/* 1 when the list has that element; ASCII case does not matter. */
int http_list_has(const struct http_head *head, const char *name, const char *element);

/* 1 when v is a token of RFC 9110 5.6.2 (not empty). */
int http_is_token(struct view v);

/* The reason phrase of a status that this program sends; never NULL. */
const char *http_reason(int status);

#endif
