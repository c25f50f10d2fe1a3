/*
 * A client's stream through the head parser: in one piece and in small ones it
 * must give the same verdict and the same head. The heads go through everything
 * that reads heads. First byte: the size of the pieces.
 */
#include <stdint.h>
#include <string.h>

#include "err.h"
#include "httpparse.h"
#include "httpurl.h"
#include "wshandshake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void inside(struct view v, struct view target)
{
    check(v.p >= target.p && v.p + v.n <= target.p + target.n);
}

static void use_target(const struct http_head *h)
{
    struct view rest = h->path, segment, under;
    autobuf struct buf out;

    buf_init(&out, h->target.n + 1);
    inside(h->path, h->target);
    inside(h->query, h->target);
    check(http_percent_valid(h->path));
    check(http_percent_decode(h->path, &out, NULL) == 0);
    while (http_path_next(&rest, &segment)) {
        inside(segment, h->path);
        buf_clear(&out);
        if (http_segment_decode(segment, &out, NULL) == 0)
            check(memchr(buf_tail(&out) - buf_len(&out), '/', buf_len(&out)) == NULL);
    }
    if (http_path_under(h->path, VIEW_STR("/a%40b/"), &under))
        check(under.n > 0 && under.p[0] == '/');
    if (h->path.p[0] == '/' && http_path_under(h->path, h->path, &under))
        check(view_equals(under, "/"));
    buf_clear(&out);
    if (http_query_get(h->query, "token", &out, NULL) > 0)
        check(buf_len(&out) <= h->query.n);
}

static void use_fields(const struct http_head *h)
{
    struct http_list it = { 0 };
    struct view element;
    char accept[WS_ACCEPT_TEXT];
    int status = 0;

    check(h->minor == 0 || http_field_count(h, "host") == 1);
    check(h->body != HTTP_BODY_LENGTH || (h->length > 0 && h->length <= INT64_MAX));
    check(h->body != HTTP_BODY_CHUNKED || http_field(h, "content-length") == NULL);
    for (size_t i = 0; i < h->field_count; i++) {
        check(http_is_token(h->fields[i].name));
        check(memchr(h->fields[i].value.p, '\n', h->fields[i].value.n) == NULL);
        check(memchr(h->fields[i].value.p, '\0', h->fields[i].value.n) == NULL);
    }
    while (http_list_next(h, "a", &it, &element))
        check(element.n > 0);
    if (ws_handshake_check(h, accept, &status, NULL) == 0)
        check(strlen(accept) == WS_ACCEPT_TEXT - 1);
    else
        check(status >= 400);
}

static int feed(struct httpparse *p, struct view in, size_t piece, size_t *taken)
{
    int rc = 0;

    *taken = 0;
    while (rc == 0 && *taken < in.n) {
        size_t n = piece < in.n - *taken ? piece : in.n - *taken, used = 0;
        /* A copy of its own size: a read beyond the piece is seen. */
        autofree uint8_t *copy = xcalloc(1, n);

        memcpy(copy, in.p + *taken, n);
        rc = httpparse_feed(p, copy, n, &used, NULL);
        check(used <= n && (rc != 0 || used == n));
        *taken += used;
    }
    check((rc < 0) == (httpparse_status(p) != 0));
    return rc;
}

static void compare(const struct http_head *a, const struct http_head *b)
{
    check(a->field_count == b->field_count && a->body == b->body && a->length == b->length);
    check(a->keep_alive == b->keep_alive && a->upgrade == b->upgrade && a->minor == b->minor);
    check(a->target.n == b->target.n && memcmp(a->target.p, b->target.p, a->target.n) == 0);
    for (size_t i = 0; i < a->field_count; i++) {
        struct view x = a->fields[i].value, y = b->fields[i].value;

        check(x.n == y.n && memcmp(x.p, y.p, x.n) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct http_limits limits = { .line = 200, .headers = 600, .fields = 12 };
    struct view in = { data + 1, n - 1 };
    size_t whole = 0, cut = 0;

    if (n < 2)
        return 0;
    struct httpparse *a = httpparse_new(&limits), *b = httpparse_new(&limits);
    while (in.n > 0) {
        int rc = feed(a, in, in.n, &whole);

        check(feed(b, in, 1 + data[0] % 32, &cut) == rc);
        check(httpparse_status(a) == httpparse_status(b));
        if (rc <= 0)
            break;
        check(whole == cut);
        compare(httpparse_head(a), httpparse_head(b));
        use_target(httpparse_head(a));
        use_fields(httpparse_head(a));
        in.p += whole;
        in.n -= whole;
        httpparse_reset(a);
        httpparse_reset(b);
    }
    httpparse_free(a);
    httpparse_free(b);
    return 0;
}
