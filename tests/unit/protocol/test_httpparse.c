/* Request heads and chunked bodies: the table of malformed requests, cut at any byte. */
#include "httpparse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "httpchunk.h"
#include "vectors.h"

#define BODY_MAX 100000

/* A client's stream that arrives in pieces: bytes [0, cut), then pieces of `piece`. */
struct stream {
    struct view all;
    size_t at, cut, piece;
};

static struct view next_piece(const struct stream *s)
{
    size_t n = s->at < s->cut ? s->cut - s->at : s->piece;

    if (n > s->all.n - s->at)
        n = s->all.n - s->at;
    return (struct view){ s->all.p + s->at, n };
}

static int read_body(struct stream *s, const struct http_head *head, struct buf *body)
{
    struct httpchunk c;
    int rc = 0;

    if (head->body != HTTP_BODY_CHUNKED) {
        size_t n = head->length < s->all.n - s->at ? (size_t)head->length : s->all.n - s->at;

        assert_int_equal(buf_add(body, s->all.p + s->at, n), 0);
        s->at += n;
        return n == head->length;
    }
    httpchunk_init(&c, BODY_MAX);
    while (rc == 0 && s->at < s->all.n) {
        struct view in = next_piece(s), data = { NULL, 0 };
        size_t used = 0;

        rc = httpchunk_feed(&c, in.p, in.n, &used, &data, NULL);
        assert_true(rc < 0 || rc == 1 || used > 0);
        if (rc >= 0)
            assert_int_equal(buf_add_view(body, data), 0);
        s->at += used;
    }
    assert_int_equal(rc < 0, httpchunk_status(&c) != 0);
    return rc < 0 ? -httpchunk_status(&c) : rc;
}

/* Everything that was understood goes into the digest, to be compared between cuts. */
static int read_request(struct stream *s, struct httpparse *p, struct buf *digest)
{
    struct err e = { 0 };
    int rc = 0;

    while (rc == 0 && s->at < s->all.n) {
        struct view in = next_piece(s);
        size_t used = 0;

        rc = httpparse_feed(p, in.p, in.n, &used, &e);
        assert_true(used <= in.n && (rc != 0 || used == in.n));
        s->at += used;
    }
    if (rc < 0) {
        assert_int_equal(rc, -HC_EPARSE);
        assert_true(e.msg[0] != '\0');
        assert_int_equal(buf_add_str(digest, e.msg), 0);
        return -httpparse_status(p);
    }
    assert_int_equal(httpparse_status(p), 0);
    if (rc == 0)
        return 0;

    const struct http_head *h = httpparse_head(p);
    assert_int_equal(buf_add_view(digest, h->method), 0);
    assert_int_equal(buf_add_view(digest, h->path), 0);
    assert_int_equal(buf_add_view(digest, h->query), 0);
    for (size_t i = 0; i < h->field_count; i++) {
        assert_int_equal(buf_add_view(digest, h->fields[i].name), 0);
        assert_int_equal(buf_add_view(digest, h->fields[i].value), 0);
    }
    size_t before = buf_len(digest);
    rc = read_body(s, h, digest);
    if (rc < 0) /* data before a malformed chunk may or may not have come out */
        digest->tail -= buf_len(digest) - before;
    return rc;
}

static void judge(struct view all, size_t cut, size_t piece, char verdict[16], struct buf *digest)
{
    struct stream s = { all, 0, cut, piece };
    struct httpparse *p = httpparse_new(NULL);
    int count = 0, rc = 1;

    while (s.at < all.n && rc == 1) {
        httpparse_reset(p);
        rc = read_request(&s, p, digest);
        count += rc == 1;
    }
    if (rc < 0)
        snprintf(verdict, 16, "%d", -rc);
    else
        snprintf(verdict, 16, "%s %d", rc == 1 ? "ok" : "cut", count);
    p = httpparse_free(p);
    assert_null(p);
}

static void whole_row(const struct vector *v)
{
    autobuf struct buf digest;
    char verdict[16];

    buf_init(&digest, 1 << 20);
    judge(v->bytes, v->bytes.n, 1, verdict, &digest);
    if (strcmp(verdict, v->verdict) != 0)
        fail_msg("'%s' got '%s' instead of '%s'", v->name, verdict, v->verdict);
}

static void every_row_of_the_table_gets_its_verdict(void **state)
{
    (void)state;
    assert_true(vectors_each("http_malformed.tsv", whole_row) > 200);
}

static void compare_cut(const struct vector *v, size_t cut, size_t piece, struct view expected)
{
    autobuf struct buf digest;
    char verdict[16];

    buf_init(&digest, 1 << 20);
    judge(v->bytes, cut, piece, verdict, &digest);
    if (strcmp(verdict, v->verdict) != 0)
        fail_msg("'%s' cut at %zu, then every %zu: '%s'", v->name, cut, piece, verdict);
    assert_int_equal(buf_len(&digest), expected.n);
    if (expected.n > 0)
        assert_memory_equal(buf_view(&digest).p, expected.p, expected.n);
}

static void cut_row(const struct vector *v)
{
    autobuf struct buf digest;
    char verdict[16];

    buf_init(&digest, 1 << 20);
    judge(v->bytes, v->bytes.n, 1, verdict, &digest);
    for (size_t piece = 1; piece < 4; piece++)
        compare_cut(v, 0, piece, buf_view(&digest));
    /* Long rows repeat one byte: near their ends the cuts differ from each other. */
    for (size_t cut = 1; cut < v->bytes.n; cut++)
        if (cut < 200 || v->bytes.n - cut < 100 || cut % 1021 == 0)
            compare_cut(v, cut, v->bytes.n, buf_view(&digest));
}

static void every_row_cut_at_any_byte_gives_the_same_result(void **state)
{
    (void)state;
    assert_true(vectors_each("http_malformed.tsv", cut_row) > 200);
}

/* Parses a head that must be complete; the caller frees the parser. */
static struct httpparse *parse(const char *text)
{
    struct httpparse *p = httpparse_new(NULL);
    struct err e = { 0 };
    size_t used;

    if (httpparse_feed(p, text, strlen(text), &used, &e) != 1)
        fail_msg("%s", e.msg);
    assert_int_equal(used, strlen(text));
    return p;
}

static void a_head_comes_out_as_it_was_sent(void **state)
{
    (void)state;
    struct httpparse *p = parse("POST /a%40b/api?x=1?&y HTTP/1.1\r\nHost: h:80\r\nX-Empty:\r\n"
                                "x-blank:  \t a  b \t\r\nContent-Length: 17\r\n\r\n");
    const struct http_head *h = httpparse_head(p);

    assert_true(view_equals(h->method, "POST"));
    assert_true(view_equals(h->target, "/a%40b/api?x=1?&y"));
    assert_true(view_equals(h->path, "/a%40b/api"));
    assert_true(view_equals(h->query, "x=1?&y"));
    assert_true(view_equals(h->host, "h:80"));
    assert_int_equal(h->minor, 1);
    assert_int_equal(h->field_count, 4);
    assert_true(view_equals(h->fields[1].name, "X-Empty"));
    assert_true(view_equals(h->fields[1].value, ""));
    assert_true(view_equals(http_value(h, "X-Blank"), "a  b"));
    assert_true(view_equals(http_value(h, "absent"), ""));
    assert_null(http_field(h, "absent"));
    assert_int_equal(h->body, HTTP_BODY_LENGTH);
    assert_int_equal(h->length, 17);
    httpparse_free(p);
}

static void bytes_behind_the_head_are_left(void **state)
{
    (void)state;
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n\x81\x80";
    struct httpparse *p = httpparse_new(NULL);
    size_t used;

    assert_false(httpparse_started(p));
    assert_int_equal(httpparse_feed(p, text, 1, &used, NULL), 0);
    assert_true(httpparse_started(p));
    assert_int_equal(httpparse_feed(p, text + 1, sizeof text - 2, &used, NULL), 1);
    assert_int_equal(used, sizeof text - 4);
    httpparse_reset(p);
    assert_false(httpparse_started(p));
    assert_int_equal(httpparse_feed(p, "\r\n", 2, &used, NULL), 0);
    assert_false(httpparse_started(p)); /* an empty line is not yet a request */
    httpparse_free(p);
}

static void persistence_follows_version_and_connection(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        int keep_alive, upgrade;
    } rows[] = {
        { "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1, 0 },
        { "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 0, 0 },
        { "GET / HTTP/1.1\r\nHost: a\r\nConnection: TE, CLOSE\r\n\r\n", 0, 0 },
        { "GET / HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nConnection: close\r\n\r\n", 0, 0 },
        { "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n", 0, 0 },
        { "GET / HTTP/1.1\r\nHost: a\r\nConnection: ,,\r\n\r\n", 1, 0 },
        { "GET / HTTP/1.1\r\nHost: a\r\nConnection: enclose\r\n\r\n", 1, 0 },
        { "GET / HTTP/1.0\r\nHost: a\r\n\r\n", 0, 0 },
        { "GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n", 1, 0 },
        { "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", 1, 1 },
        { "GET / HTTP/1.1\r\nHost: a\r\nConnection: a, upgrade\r\nUpgrade: x\r\n\r\n", 1, 1 },
        { "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: ,\r\n\r\n", 1, 0 },
        { "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n", 1, 0 },
        { "GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", 0, 0 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct httpparse *p = parse(rows[i].head);

        if (httpparse_head(p)->keep_alive != rows[i].keep_alive ||
            httpparse_head(p)->upgrade != rows[i].upgrade)
            fail_msg("%s", rows[i].head);
        httpparse_free(p);
    }
}

static void a_client_waits_for_100_only_when_a_body_follows(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        int waits;
    } rows[] = {
        { "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", 1 },
        { "PUT / HTTP/1.1\r\nHost: a\r\nexpect: 100-Continue\r\nTransfer-Encoding: chunked\r\n\r\n",
          1 },
        { "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n", 0 },
        { "PUT / HTTP/1.1\r\nHost: a\r\nExpect:\r\nContent-Length: 1\r\n\r\n", 0 },
        { "PUT / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", 0 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct httpparse *p = parse(rows[i].head);

        if (httpparse_head(p)->expect_continue != rows[i].waits)
            fail_msg("%s", rows[i].head);
        httpparse_free(p);
    }
}

static void lists_are_walked_over_all_fields_of_a_name(void **state)
{
    (void)state;
    static const char *const expected[] = { "a", "b c", "\"x, \\\"y\"", "d", "e;q=\",\"" };
    struct httpparse *p = parse("GET / HTTP/1.1\r\nHost: a\r\nL: a,, b c ,\r\nOther: no\r\nL:\r\n"
                                "l: \"x, \\\"y\"\t,d\r\nL: e;q=\",\"\r\n\r\n");
    const struct http_head *h = httpparse_head(p);
    struct http_list it = { 0 };
    struct view element;

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(http_list_next(h, "L", &it, &element), 1);
        assert_true(view_equals(element, expected[i]));
    }
    assert_int_equal(http_list_next(h, "L", &it, &element), 0);
    assert_int_equal(http_list_next(h, "L", &it, &element), 0);
    assert_true(http_list_has(h, "l", "B C"));
    assert_false(http_list_has(h, "l", "b"));
    assert_int_equal(http_field_count(h, "l"), 4);
    httpparse_free(p);
}

static void the_limits_are_the_callers(void **state)
{
    (void)state;
    static const struct http_limits limits = { .line = 16, .headers = 22, .fields = 2 };
    static const struct {
        const char *text;
        int status;
    } rows[] = {
        { "GET /a HTTP/1.1\r\nHost: a\r\nX: bbbb\r\n\r\n", 0 },
        { "GET /aa HTTP/1.1\r\nHost: a\r\nX: bbbb\r\n\r\n", 0 },
        { "GET /aaa HTTP/1.1\r\nHost: a\r\nX: bbbb\r\n\r\n", 414 },
        { "GET /a HTTP/1.1\r\nHost: a\r\nX: bbbbbbbbb\r\n\r\n", 431 },
        { "GET /a HTTP/1.1\r\nHost: a\r\nX:\r\nY:\r\n\r\n", 431 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct httpparse *p = httpparse_new(&limits);
        size_t used;
        int rc = httpparse_feed(p, rows[i].text, strlen(rows[i].text), &used, NULL);

        assert_int_equal(rc, rows[i].status == 0 ? 1 : -HC_EPARSE);
        assert_int_equal(httpparse_status(p), rows[i].status);
        httpparse_free(p);
    }
}

static void chunk_data_are_views_of_the_input(void **state)
{
    (void)state;
    static const char in[] = "3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\nrest";
    struct httpchunk c;
    struct view data;
    size_t used;

    httpchunk_init(&c, 5);
    assert_int_equal(httpchunk_feed(&c, in, sizeof in - 1, &used, &data, NULL), 0);
    assert_ptr_equal(data.p, in + 3);
    assert_int_equal(data.n, 3);
    size_t at = used;
    assert_int_equal(httpchunk_feed(&c, in + at, sizeof in - 1 - at, &used, &data, NULL), 1);
    assert_true(view_equals(data, "de"));
    assert_string_equal(in + at + used, "rest");
}

static void a_chunked_body_above_its_limit_is_413(void **state)
{
    (void)state;
    static const char in[] = "3\r\nabc\r\n3\r\n";
    struct httpchunk c;
    struct view data;
    size_t used;

    httpchunk_init(&c, 5);
    assert_int_equal(httpchunk_feed(&c, in, sizeof in - 1, &used, &data, NULL), -HC_ELIMIT);
    assert_int_equal(httpchunk_status(&c), 413);
    assert_int_equal(httpchunk_feed(&c, "0", 1, &used, &data, NULL), -HC_EPARSE);
    assert_int_equal(httpchunk_status(&c), 413);
}

static void every_status_of_ours_has_a_reason(void **state)
{
    (void)state;
    static const int statuses[] = { 400, 413, 414, 417, 426, 431, 501, 503, 505 };

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        assert_string_not_equal(http_reason(statuses[i]), "Unknown");
    assert_string_equal(http_reason(999), "Unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_table_gets_its_verdict),
        cmocka_unit_test(every_row_cut_at_any_byte_gives_the_same_result),
        cmocka_unit_test(a_head_comes_out_as_it_was_sent),
        cmocka_unit_test(bytes_behind_the_head_are_left),
        cmocka_unit_test(persistence_follows_version_and_connection),
        cmocka_unit_test(a_client_waits_for_100_only_when_a_body_follows),
        cmocka_unit_test(lists_are_walked_over_all_fields_of_a_name),
        cmocka_unit_test(the_limits_are_the_callers),
        cmocka_unit_test(chunk_data_are_views_of_the_input),
        cmocka_unit_test(a_chunked_body_above_its_limit_is_413),
        cmocka_unit_test(every_status_of_ours_has_a_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
