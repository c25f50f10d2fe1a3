/* What the front answers over HTTP: routes, tokens, origins, bodies; on the fake core. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "err.h"
#include "fake_core.h"
#include "harness.h"

#define HOST "Host: 127.0.0.1\r\n"
#define AUTH "Authorization: token secret\r\n"

static void the_routes_answer(void **state)
{
    struct harness *h = harness_start(NULL);

    (void)state;
    expect(h, "GET", "/api", NULL, 200, "\"version\":\"1.2.3\"");
    expect(h, "GET", "/api/", NULL, 200, "\"version\"");
    expect(h, "GET", "/%61pi", NULL, 200, "\"version\"");
    expect(h, "GET", "/api/status", NULL, 200, "\"kernels\":0");
    expect(h, "GET", "/api/me", NULL, 200, "\"identity\"");
    expect(h, "GET", "/api/me?permissions=%7B%22a%22:%5B%22b%22%5D%7D", NULL, 200,
           "{\"a\":[\"b\"],\"updatable_fields\":[]}");
    expect(h, "GET", "/api/me?permissions=x", NULL, 400, "permissions");
    expect(h, "GET", "/api/kernelspecs", NULL, 200, "\"default\":\"fake\"");
    expect(h, "GET", "/api/kernelspecs?1732000000000", NULL, 200, "\"kernelspecs\":{\"Other.1\"");
    expect(h, "GET", "/api/kernelspecs/FAKE", NULL, 200, "{\"name\":\"FAKE\"");
    expect(h, "GET", "/api/kernelspecs/%66ake/", NULL, 200,
           "\"kernel.js\":\"/kernelspecs/fake/kernel.js\"");
    expect(h, "GET", "/api/kernelspecs?user=bob", NULL, 200, "\"default\"");
    expect(h, "GET", "/api/kernelspecs?user=bob/fake", NULL, 200, "{\"name\":\"fake\"");
    expect(h, "GET", "/api/kernelspecs/none-such", NULL, 404, "none-such");
    expect(h, "GET", "/api/kernels", NULL, 200, "[]");
    expect(h, "POST", "/api/kernels", "{}", 201, "\"execution_state\":\"idle\"");
    expect(h, "GET", "/api/kernels", NULL, 200, "2026-01-01T00:00:00.000000Z");
    expect(h, "GET", "/api/kernels/00000000-0000-4000-8000-000000000001", NULL, 200,
           "\"connections\":0");
    expect(h, "GET", "/api/kernels/1-2-3-4-5", NULL, 404, "Kernel does not exist: 1-2-3-4-5");
    expect(h, "POST", "/api/kernels/00000000-0000-4000-8000-000000000001/interrupt", "{}", 204,
           NULL);
    expect(h, "POST", "/api/kernels/00000000-0000-4000-8000-000000000001/restart", "", 200,
           "\"name\":\"fake\"");
    expect(h, "DELETE", "/api/kernels/00000000-0000-4000-8000-000000000001", NULL, 204, NULL);
    expect(h, "DELETE", "/api/kernels/00000000-0000-4000-8000-000000000001", NULL, 404,
           "does not exist");
    harness_stop(h);
}

static void unknown_routes_are_404_before_the_token(void **state)
{
    static const char *const paths[] = { "/",
                                         "/nope",
                                         "/tree",
                                         "/api/contents",
                                         "/api/kernels/xyz",
                                         "/api/kernels/%2e%2e",
                                         "/api/../api",
                                         "//api",
                                         "/api//",
                                         "/api/kernels/1-2-3-4-5/nope",
                                         "/hub/api",
                                         "/api/kernelspecs/a%2Fb",
                                         "/api/kernelspecs/a%00b" };
    struct harness *h = harness_start(NULL);

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct reply r;
        int fd = dial(h);

        putf(fd, "GET %s HTTP/1.1\r\n" HOST "\r\n", paths[i]);
        get_reply(fd, &r);
        assert_int_equal(r.status, 404);
        assert_non_null(strstr(r.body, "{\"reason\":\"Not Found\",\"message\":\"Not Found"));
        assert_string_equal(reply_header(&r, "Content-Type"), "application/json");
        reply_free(&r);
        hang_up(fd);
    }
    harness_stop(h);
}

static void each_form_of_the_token_opens_and_nothing_else(void **state)
{
    static const struct {
        const char *query, *header;
        int status;
    } rows[] = {
        { "", "", 401 },
        { "?token=secret", "", 200 },
        { "?1&token=%73ecret&2", "", 200 },
        { "?token=other", "Authorization: token secret\r\n", 401 },
        { "?token=", "Authorization: token secret\r\n", 200 },
        { "?token=", "", 401 },
        { "?token=%", "", 401 },
        { "", "Authorization: token secret\r\n", 200 },
        { "", "Authorization: TOKEN   secret\r\n", 200 },
        { "", "Authorization: Bearer secret\r\n", 200 },
        { "", "Authorization: bEARER \t secret\r\n", 200 },
        { "", "Authorization: token secre\r\n", 401 },
        { "", "Authorization: token secret0\r\n", 401 },
        { "", "Authorization: token Secret\r\n", 401 },
        { "", "Authorization: token secret secret\r\n", 401 },
        { "", "Authorization: token\r\n", 401 },
        { "", "Authorization: tokensecret\r\n", 401 },
        { "", "Authorization: Basic c2VjcmV0\r\n", 401 },
        { "", "Cookie: token=secret\r\n", 401 },
        { "", "Authorization: token secret\r\nOrigin: http://evil.example\r\n", 200 },
    };
    struct harness *h = harness_start(NULL);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct reply r;
        int fd = dial(h);

        putf(fd, "GET /api/kernels%s HTTP/1.1\r\n" HOST "%s\r\n", rows[i].query, rows[i].header);
        get_reply(fd, &r);
        if (r.status != rows[i].status)
            fail_msg("row %zu: %d %s", i, r.status, r.body);
        if (r.status == 401)
            assert_non_null(strstr(r.body, "\"reason\":\"Unauthorized\""));
        assert_null(strstr(r.body, "secret"));
        reply_free(&r);
        hang_up(fd);
    }
    harness_stop(h);
}

static void without_a_token_origin_and_host_are_checked(void **state)
{
    struct {
        const char *headers;
        int status;
    } rows[] = {
        { "Host: 127.0.0.1:80\r\n", 200 },
        { "Host: localhost\r\nAuthorization: token \r\n", 200 },
        { "Host: LOCALHOST:1\r\nOrigin: http://localhost:1\r\n", 200 },
        { "Host: [::1]:80\r\n", 200 },
        { "Host: 127.9.9.9\r\n", 200 },
        { "Host: a.localhost\r\n", 200 },
        { "Host: evil.example\r\n", 403 },
        { "Host: evil.example\r\nOrigin: http://evil.example\r\n", 403 },
        { "Host: 127.0.0.1.evil.example\r\n", 403 },
        { "Host: 1270.0.0.1\r\n", 403 },
        { "Host: 10.0.0.1\r\n", 403 },
        { "Host: own.example:99\r\n", 200 },
        { "Host: second.example\r\n", 200 },
        { "Host: localhost\r\nOrigin: http://evil.example\r\n", 404 },
        { "Host: localhost\r\nOrigin: null\r\n", 404 },
        { "Host: localhost:1\r\nOrigin: http://localhost:2\r\n", 404 },
        { "Host: localhost:1\r\nOrigin: https://lab.example\r\n", 200 },
        { "Host: localhost:1\r\nOrigin: https://lab.example.evil\r\n", 404 },
        { "Host: localhost:1\r\nOrigin: http://lab.example\r\n", 404 },
    };
    /* The same name by another scheme is somebody else: known of TLS, and not of plain HTTP,
     * before which a proxy may stand. */
    if (harness_tunnelled()) {
        rows[2].headers = "Host: LOCALHOST:1\r\nOrigin: https://localhost:1\r\n";
        rows[7].headers = "Host: localhost:1\r\nOrigin: http://localhost:1\r\n";
        rows[7].status = 404;
    }
    struct front_config config = { .allow_origin = "https://lab.example",
                                   .allow_hosts = "own.example, second.example" };
    struct harness *h = harness_start_open(&config);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct reply r;
        int fd = dial(h);

        putf(fd, "GET /api/kernels HTTP/1.1\r\n%s\r\n", rows[i].headers);
        get_reply(fd, &r);
        if (r.status != rows[i].status)
            fail_msg("row %zu: %d", i, r.status);
        reply_free(&r);
        hang_up(fd);
    }
    harness_stop(h);
}

static void cors_headers_come_with_every_answer(void **state)
{
    static const char *const requests[] = {
        "GET /api HTTP/1.1\r\n" HOST AUTH "\r\n",
        "GET /api HTTP/1.1\r\n" HOST "\r\n",
        "GET /nope HTTP/1.1\r\n" HOST "\r\n",
        "GET /api HTTP/1.1\r\n\r\n",
        "OPTIONS /api/kernels HTTP/1.1\r\n" HOST "\r\n",
        "PUT /api HTTP/1.1\r\n" HOST AUTH "\r\n",
    };
    static const int statuses[] = { 200, 401, 404, 400, 200, 405 };
    struct front_config config = { .allow_origin = "https://lab.example",
                                   .allow_credentials = "true",
                                   .expose_headers = "X-Shown",
                                   .max_age = "77" };
    struct harness *h = harness_start(&config);

    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct reply r;
        int fd = dial(h);

        put(fd, requests[i]);
        get_reply(fd, &r);
        assert_int_equal(r.status, statuses[i]);
        assert_string_equal(reply_header(&r, "Access-Control-Allow-Origin"), "https://lab.example");
        assert_string_equal(reply_header(&r, "Access-Control-Allow-Credentials"), "true");
        assert_string_equal(reply_header(&r, "Access-Control-Expose-Headers"), "X-Shown");
        assert_string_equal(reply_header(&r, "Access-Control-Max-Age"), "77");
        assert_string_equal(reply_header(&r, "X-Content-Type-Options"), "nosniff");
        if (statuses[i] == 200 && i > 0)
            assert_non_null(
                strstr(reply_header(&r, "Access-Control-Allow-Headers"), "authorization"));
        else
            assert_null(reply_header(&r, "Access-Control-Allow-Headers"));
        reply_free(&r);
        hang_up(fd);
    }
    harness_stop(h);
}

static void a_setting_cannot_smuggle_a_header(void **state)
{
    struct front_config config = { .allow_origin = "x\r\nSet-Cookie: a=b", .token = "t" };
    struct loop *none = NULL;
    struct front *f = NULL;
    struct err e = { 0 };

    (void)state;
    assert_true(front_start(none, NULL, NULL, &config, NULL, 0, &f, &e) < 0);
    assert_non_null(strstr(e.msg, "Access-Control-Allow-Origin"));
    config.allow_origin = NULL;
    config.base_url = "no-slash";
    assert_true(front_start(none, NULL, NULL, &config, NULL, 0, &f, &e) < 0);
    assert_null(f);
}

static void wrong_methods_are_405_and_say_which_are_right(void **state)
{
    struct harness *h = harness_start(NULL);
    struct reply r;

    (void)state;
    assert_int_equal(ask(h, "PUT", "/api/kernels", NULL, &r), 405);
    assert_string_equal(reply_header(&r, "Allow"), "GET, POST, OPTIONS");
    assert_non_null(strstr(r.body, "Method Not Allowed"));
    reply_free(&r);
    assert_int_equal(ask(h, "HEAD", "/api", NULL, &r), 405);
    reply_free(&r);
    assert_int_equal(ask(h, "HEAD", "/kernelspecs/fake/kernel.js", NULL, &r), 200);
    assert_string_equal(reply_header(&r, "Content-Length"), "9");
    reply_free(&r);
    assert_int_equal(ask(h, "OPTIONS", "/nope", NULL, &r), 404);
    reply_free(&r);
    assert_int_equal(ask(h, "OPTIONS", "*", NULL, &r), 200);
    assert_int_equal(r.body_n, 0);
    reply_free(&r);
    harness_stop(h);
}

static void base_url_is_compared_by_what_it_means(void **state)
{
    struct front_config config = { .base_url = "/a%40b/" };
    struct harness *h = harness_start(&config);
    struct reply r;

    (void)state;
    expect(h, "GET", "/a%40b/api", NULL, 200, "version");
    expect(h, "GET", "/a@b/api", NULL, 200, "version");
    expect(h, "GET", "/%61%40b/api/", NULL, 200, "version");
    expect(h, "GET", "/api", NULL, 404, "begin with its --base-url");
    expect(h, "GET", "/a%2540b/api", NULL, 404, NULL);
    expect(h, "GET", "/a%40b/nope", NULL, 404, "\"message\":\"Not Found\"");
    expect(h, "GET", "/a%40b", NULL, 404, "\"message\":\"Not Found\"");
    assert_int_equal(ask(h, "POST", "/a@b/api/kernels", "null", &r), 201);
    assert_string_equal(reply_header(&r, "Location"),
                        "/a%40b/api/kernels/00000000-0000-4000-8000-000000000001");
    reply_free(&r);
    harness_stop(h);
}

static void resources_come_from_their_directory_only(void **state)
{
    struct harness *h = harness_start(NULL);
    struct reply r;
    char path[200];

    (void)state;
    assert_int_equal(ask(h, "GET", "/kernelspecs/fake/logo-64x64.png", NULL, &r), 200);
    assert_string_equal(reply_header(&r, "Content-Type"), "image/png");
    assert_non_null(strstr(reply_header(&r, "Cache-Control"), "max-age=2592000"));
    assert_memory_equal(r.body, "\x89PNG", 4);
    reply_free(&r);
    snprintf(path, sizeof path, "%s/out", harness_dir(h));
    assert_int_equal(symlink("/etc/hostname", path), 0);
    expect(h, "GET", "/kernelspecs/fake/out", NULL, 404, NULL);
    unlink(path);
    expect(h, "GET", "/kernelspecs/fake/none.png", NULL, 404, NULL);
    expect(h, "GET", "/kernelspecs/fake/../../etc/passwd", NULL, 404, NULL);
    expect(h, "GET", "/kernelspecs/fake/%2e%2e/x", NULL, 404, NULL);
    expect(h, "GET", "/kernelspecs/fake/..%2fx", NULL, 404, NULL);
    expect(h, "GET", "/kernelspecs/fake/%2fetc%2fpasswd", NULL, 404, NULL);
    expect(h, "GET", "/kernelspecs/fake//etc/passwd", NULL, 404, NULL);
    expect(h, "GET", "/kernelspecs/fake/", NULL, 404, NULL);
    expect(h, "GET", "/kernelspecs/none/kernel.js", NULL, 404, NULL);
    harness_stop(h);
}

static void bodies_of_a_new_kernel_are_judged_by_field(void **state)
{
    static const struct {
        const char *body;
        int status;
        const char *part;
    } rows[] = {
        { "", 201, "fake" },
        { "null", 201, "fake" },
        { " \r\n\t{\"name\":\"fake\"} \n", 201, "fake" },
        { "{\"name\":null,\"path\":null,\"kernel_id\":null,\"env\":null}", 201, "fake" },
        { "{\"env\":{\"KERNEL_A\":\"b\",\"_9\":\"\"},\"extra\":[1]}", 201, "fake" },
        { "{\"kernel_id\":\"11111111-1111-4111-8111-111111111111\"}", 201,
          "11111111-1111-4111-8111-111111111111" },
        { "{\"kernel_id\":\"11111111-1111-4111-8111-111111111111\"}", 201,
          "11111111-1111-4111-8111-111111111111" },
        { "{", 400, "Invalid JSON" },
        { "{]", 400, "Invalid JSON" },
        { "[]", 400, "object" },
        { "1", 400, "object" },
        { "{\"name\":1}", 400, "name" },
        { "{\"path\":[]}", 400, "path" },
        { "{\"name\":\"a\\u0000b\"}", 400, "name" },
        { "{\"kernel_id\":\"x\"}", 400, "kernel_id" },
        { "{\"kernel_id\":\"../../etc\"}", 400, "kernel_id" },
        { "{\"env\":\"x\"}", 400, "env" },
        { "{\"env\":{\"A\":1}}", 400, "env.A" },
        { "{\"env\":{\"A B\":\"\"}}", 400, "A B" },
        { "{\"env\":{\"\":\"\"}}", 400, "env" },
        { "{\"env\":{\"1A\":\"\"}}", 400, "1A" },
        { "{\"env\":{\"A=B\":\"\"}}", 400, "env" },
        { "{\"env\":{\"A\":\"x\\u0000y\"}}", 400, "env.A" },
        { "{\"env\":{\"A\\u0000B\":\"y\"}}", 400, NULL },
        { "{\"name\":\"none-such\"}", 500, "NoSuchKernel" },
    };
    struct harness *h = harness_start(NULL);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(h, "POST", "/api/kernels", rows[i].body, rows[i].status, rows[i].part);
    harness_stop(h);
}

static void deep_nesting_and_large_bodies_are_refused(void **state)
{
    struct harness *h = harness_start(NULL);
    char *deep = xcalloc(1, 100001);
    struct reply r;
    int fd = dial(h);

    (void)state;
    memset(deep, '[', 100000);
    expect(h, "POST", "/api/kernels", deep, 400, "Invalid JSON");
    free(deep);
    put(fd, "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Content-Length: 1000000000000\r\n\r\n{{{{");
    get_reply(fd, &r);
    assert_int_equal(r.status, 413);
    assert_non_null(strstr(r.body, "\"message\""));
    assert_true(ended(fd));
    reply_free(&r);
    hang_up(fd);
    fd = dial(h);
    put(fd, "POST /api/kernels HTTP/1.1\r\n" HOST AUTH "Transfer-Encoding: chunked\r\n\r\n");
    put(fd, "fffffff\r\n");
    get_reply(fd, &r);
    assert_int_equal(r.status, 413);
    assert_true(ended(fd));
    reply_free(&r);
    hang_up(fd);
    harness_stop(h);
}

static void limits_and_lists_obey_the_settings(void **state)
{
    struct front_config config = { .no_list_kernels = 1 };
    struct harness *h = harness_start(&config);

    (void)state;
    fake.max_kernels = 1;
    expect(h, "GET", "/api/kernels", NULL, 403, "Forbidden");
    expect(h, "POST", "/api/kernels", "{}", 201, NULL);
    expect(h, "POST", "/api/kernels", "{}", 403, "Resource Limit");
    harness_stop(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_routes_answer),
        cmocka_unit_test(unknown_routes_are_404_before_the_token),
        cmocka_unit_test(each_form_of_the_token_opens_and_nothing_else),
        cmocka_unit_test(without_a_token_origin_and_host_are_checked),
        cmocka_unit_test(cors_headers_come_with_every_answer),
        cmocka_unit_test(a_setting_cannot_smuggle_a_header),
        cmocka_unit_test(wrong_methods_are_405_and_say_which_are_right),
        cmocka_unit_test(base_url_is_compared_by_what_it_means),
        cmocka_unit_test(resources_come_from_their_directory_only),
        cmocka_unit_test(bodies_of_a_new_kernel_are_judged_by_field),
        cmocka_unit_test(deep_nesting_and_large_bodies_are_refused),
        cmocka_unit_test(limits_and_lists_obey_the_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
